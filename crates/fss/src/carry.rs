//! Gates that open their input behind a mask and need one carry, from tables that are used once.
//!
//! With `x^ = x + r` opened, the carry is `c = [p(x^) < s(r)]`, and a gate needs shares of `base(r) + c`. Numbers are compared digit by
//! digit. For a digit the dealer shares the unit vector of `s`'s digit, up to 128 bits, by exclusive or: the bit at `p`'s digit says
//! whether the digits are equal, and the bits behind it add up to whether `p`'s is less. Both parties open these bits of all digits
//! behind bits that only the dealer knows. With `l` for less and `e` for equal, from the highest digit down,
//!
//! `c = l_m + e_m (l_(m-1) + e_(m-1) (l_(m-2) + ...))`,
//!
//! of which no two terms are 1 at once. As each factor is an opened bit, or 1 less a hidden one, `c` is linear in products of hidden
//! bits ([`products`] of them), which are secrets beside `base`.
//!
//! The client's share of all this comes from its seed, so its key has no body. A table hides nothing behind a hash: both shares are
//! uniform, and an address depends on opened numbers alone.

use privet_prg::Seed;
use privet_ring::{Bits, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::streams::Streams;
use crate::{Error, KeyBytes, Party, Role, Seeds, Source};

/// Elements whose tables and secrets come from one stream, and are worked on by one thread. A multiple of 64, so that each part of a
/// packed column starts on a byte.
const PART: usize = 4096;

/// The widest digit: a table of 128 bits.
const DIGIT_BITS: u32 = 7;

/// What makes one of these gates.
pub trait Carried: Copy + Sync {
    /// The input's ring.
    fn input(&self) -> Modulus;
    /// The ring of the result.
    fn output(&self) -> Modulus;
    /// Width of the comparison.
    fn compared_bits(&self) -> u32;
    /// What of the opened input is compared.
    fn public_point(&self, opened: u64) -> u64;
    /// What of the mask it is compared with.
    fn secret_point(&self, mask: u64) -> u64;
    /// The ring in which the parties get `base + c`.
    fn carry_ring(&self) -> Modulus;
    /// What is added to the carry: from both parts of the mask.
    fn base(&self, masks: [u64; 2]) -> u64;
    /// This party's share of the result: from its part of the mask, `x^` and its share of `base + c`.
    fn complete(&self, role: Role, mask: u64, opened: u64, carried: u64) -> u64;

    /// This party's first step; see [`Masked`].
    fn start(self, role: Role, seed: &Seed, x: &[u64]) -> (Masked<Self>, Vec<u8>) {
        let mut streams = Streams::new(role, seed);
        let masks = Zeroizing::new(streams.masks(x.len(), self.input()));
        let own = self.input().add(x, &masks);
        let message = self.input().pack(&own);
        (Masked { gate: self, role, streams, masks, own }, message)
    }

    /// Shares of the gate's value in its output ring; `x`: this party's shares in the input ring. All steps over a channel: two
    /// rounds.
    ///
    /// # Errors
    /// If the link or the key fails.
    fn evaluate(self, party: &mut Party<'_>, seed: &Seed, body: &mut dyn Source, x: &[u64]) -> Result<Vec<u64>, Error> {
        let (masked, message) = self.start(party.role, seed, x);
        let (carrying, message) = masked.compare(&party.channel.exchange(&message)?, body)?;
        carrying.finish(&party.channel.exchange(&message)?, body)
    }
}

/// Into which digits numbers are cut, and where their tables lie in the words of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digits {
    /// Widths, the lowest digit first.
    widths: Vec<u32>,
    /// The first bit of each table.
    offsets: Vec<u32>,
    /// Words of 64 bits for an element's tables.
    words: usize,
}

impl Digits {
    /// The cheapest for a gate: in bits of the key and of messages.
    fn of(gate: &impl Carried) -> Self {
        let (bits, ring) = (gate.compared_bits(), gate.carry_ring());
        let cost = |digits: &Self| {
            let key = 64 * digits.words + secrets(digits.count()) * ring.bits() as usize;
            key + 2 * columns(digits.count())
        };
        let least = bits.div_ceil(DIGIT_BITS);
        (least..=bits.min(least + 2)).map(|count| Self::even(bits, count)).min_by_key(cost).expect("a bit to compare")
    }

    /// `count` digits of nearly the same width.
    fn even(bits: u32, count: u32) -> Self {
        // The highest are the widest. Tables are laid from there on, so that none lies in two words that would fit one.
        let widths: Vec<u32> = (0..count).rev().map(|digit| bits / count + u32::from(digit < bits % count)).collect();
        let mut offsets = vec![0; widths.len()];
        let mut end = 0;
        for (offset, width) in offsets.iter_mut().zip(&widths).rev() {
            *offset = end;
            end += 1 << width;
        }
        Self { widths, offsets, words: end.div_ceil(64) as usize }
    }

    fn count(&self) -> usize {
        self.widths.len()
    }

    /// Each digit of `point`, with the first bit of its table and the table's length.
    fn cut(&self, mut point: u64) -> impl Iterator<Item = (u32, u32, u32)> {
        self.widths.iter().zip(&self.offsets).map(move |(&width, &offset)| {
            let digit = point as u32 & ((1 << width) - 1);
            point >>= width;
            (digit, offset, 1 << width)
        })
    }

    /// This party's share of whether each digit of `point` is less, and equal: bit 0 for the lowest digit, then two bits for each. `word`:
    /// the element's tables.
    fn look_up(&self, point: u64, word: impl Fn(usize) -> u64) -> u64 {
        self.cut(point).enumerate().fold(0, |found, (index, (digit, offset, len))| {
            let at = offset as usize / 64;
            let table = match len {
                128 => u128::from(word(at)) | u128::from(word(at + 1)) << 64,
                _ => u128::from(word(at) >> (offset % 64)) & ((1 << len) - 1),
            };
            let rest = table >> digit;
            let less = u64::from((rest >> 1).count_ones() & 1);
            match index {
                0 => less,
                _ => found | less << (2 * index - 1) | (rest as u64 & 1) << (2 * index),
            }
        })
    }
}

/// Bits that are opened for an element with this many digits.
fn columns(digits: usize) -> usize {
    2 * digits - 1
}

/// Products of hidden bits for this many digits.
fn products(digits: usize) -> usize {
    (3 << (digits - 1)) - 2
}

/// Secrets of an element: `base` and the products.
fn secrets(digits: usize) -> usize {
    1 + products(digits)
}

/// Writes `one` times all products of the hidden bits `hidden`.
fn multiply(digits: usize, hidden: u64, one: u64, out: &mut [u64]) {
    let Some(lower) = digits.checked_sub(1).filter(|&lower| lower > 0) else {
        out[0] = one * (hidden & 1);
        return;
    };
    let (less, equal) = (hidden >> (2 * lower - 1) & 1, hidden >> (2 * lower) & 1);
    (out[0], out[1]) = (one * less, one * equal);
    let (plain, times) = out[2..].split_at_mut(products(lower));
    multiply(lower, hidden, one, plain);
    multiply(lower, hidden, one * equal, times);
}

/// A share of the carry times what `one` is a share of, from opened bits and shares of the products times that.
fn carry(digits: usize, opened: u64, one: u64, products: &[u64]) -> u64 {
    let known = |at: usize, plain: u64, hidden: u64| match opened >> at & 1 {
        1 => plain.wrapping_sub(hidden),
        _ => hidden,
    };
    let Some(lower) = digits.checked_sub(1).filter(|&lower| lower > 0) else {
        return known(0, one, products[0]);
    };
    let (plain, times) = products[2..].split_at(self::products(lower));
    let hidden = carry(lower, opened, products[1], times);
    let below = match opened >> (2 * lower) & 1 {
        1 => carry(lower, opened, one, plain).wrapping_sub(hidden),
        _ => hidden,
    };
    known(2 * lower - 1, one, products[0]).wrapping_add(below)
}

/// Bytes of the tables of `count` elements.
fn table_bytes(digits: &Digits, count: usize) -> usize {
    8 * digits.words * count
}

/// Bytes of the secrets of `count` elements: packed columns, part by part.
fn secret_bytes(digits: &Digits, ring: Modulus, count: usize) -> usize {
    let part = |count| secrets(digits.count()) * ring.packed_bytes(count);
    count / PART * part(PART) + part(count % PART)
}

/// Exact length of a batch's key.
pub(crate) fn key_bytes(gate: &impl Carried, count: usize) -> KeyBytes {
    let digits = Digits::of(gate);
    let corrections = table_bytes(&digits, count) + secret_bytes(&digits, gate.carry_ring(), count);
    KeyBytes { words: 0, corrections }
}

/// Bytes of either party's messages.
pub(crate) fn message_bytes(gate: &impl Carried, count: usize) -> Vec<usize> {
    vec![gate.input().packed_bytes(count), columns(Digits::of(gate).count()) * count.div_ceil(8)]
}

/// Seeds that a batch draws for its parts.
pub(crate) fn parts(count: usize) -> usize {
    count.div_ceil(PART)
}

/// The server's part of a batch's key; the client has none but its seed.
pub(crate) fn deal(gate: &impl Carried, count: usize, seeds: &Seeds) -> Vec<u8> {
    let (digits, ring) = (Digits::of(gate), gate.carry_ring());
    let mut client = Streams::new(Role::Client, &seeds.client);
    let mut server = Streams::new(Role::Server, &seeds.server);
    let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, gate.input())));
    let flips: Vec<Bits> =
        (0..columns(digits.count())).map(|_| client.flips(count).xor(&server.flips(count))).collect();
    let hidden = Zeroizing::new(gathered(&flips, count));
    let parts = client.parts(parts(count));

    let width = secrets(digits.count());
    let mut corrections = vec![0; table_bytes(&digits, count) + secret_bytes(&digits, ring, count)];
    let (tables, packed) = corrections.split_at_mut(table_bytes(&digits, count));
    let tables = tables.par_chunks_mut(table_bytes(&digits, PART));
    let packed = packed.par_chunks_mut(secret_bytes(&digits, ring, PART));
    tables.zip(packed).zip(&parts).enumerate().for_each(|(part, ((tables, packed), seed))| {
        let first = part * PART;
        let here = first..count.min(first + PART);
        let len = here.len();
        let mut streams = Streams::new(Role::Client, seed);
        let mut words = Zeroizing::new(vec![0; digits.words * len]);
        streams.pads(&mut words);
        for (i, at) in here.clone().enumerate() {
            let mask = gate.input().reduce(masks[0][at].wrapping_add(masks[1][at]));
            for (digit, offset, _) in digits.cut(gate.secret_point(mask)) {
                let bit = (offset + digit) as usize;
                words[bit / 64 * len + i] ^= 1 << (bit % 64);
            }
        }
        tables.chunks_exact_mut(8).zip(words.iter()).for_each(|(out, word)| out.copy_from_slice(&word.to_le_bytes()));

        let mut shares = Zeroizing::new(vec![0; width * len]);
        streams.shares(&mut shares);
        let mut values = Zeroizing::new(vec![0; width]);
        let mut columns = Zeroizing::new(vec![0; width * len]);
        for ((i, at), shares) in here.enumerate().zip(shares.chunks_exact(width)) {
            values[0] = gate.base([masks[0][at], masks[1][at]]);
            multiply(digits.count(), hidden[at], 1, &mut values[1..]);
            for (column, (value, share)) in values.iter().zip(shares).enumerate() {
                columns[column * len + i] = ring.reduce(value.wrapping_sub(*share));
            }
        }
        let packed = packed.chunks_exact_mut(ring.packed_bytes(len));
        packed.zip(columns.chunks_exact(len)).for_each(|(packed, column)| ring.pack_into(packed, column));
    });
    corrections
}

/// The bits of each element in one number, the first column's lowest.
fn gathered(columns: &[Bits], count: usize) -> Vec<u64> {
    let mut gathered = vec![0; count];
    for (at, column) in columns.iter().enumerate() {
        for (numbers, word) in gathered.chunks_mut(64).zip(column.words()) {
            numbers.iter_mut().enumerate().for_each(|(i, number)| *number |= (word >> i & 1) << at);
        }
    }
    gathered
}

/// A batch whose masked input is on its way; made by [`Carried::start`].
pub struct Masked<G> {
    gate: G,
    role: Role,
    streams: Streams,
    masks: Zeroizing<Vec<u64>>,
    own: Vec<u64>,
}

impl<G: Carried> Masked<G> {
    /// Compares digits, given the other party's message; the server reads its tables from `body`. Returns the next message.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn compare(self, theirs: &[u8], body: &mut dyn Source) -> Result<(Carrying<G>, Vec<u8>), Error> {
        let Self { gate, role, mut streams, masks, own } = self;
        let (digits, count) = (Digits::of(&gate), own.len());
        let opened = gate.input().add(&own, &gate.input().unpack(theirs, count)?);
        let flips: Vec<Bits> = (0..columns(digits.count())).map(|_| streams.flips(count)).collect();
        let mut parts: Vec<Streams> =
            streams.parts(self::parts(count)).iter().map(|seed| Streams::new(Role::Client, seed)).collect();
        let region = match role {
            Role::Client => None,
            Role::Server => Some(body.region(table_bytes(&digits, count))?),
        };
        let mut found = vec![0; count];
        let chunks = found.par_chunks_mut(PART).zip(opened.par_chunks(PART)).zip(&mut parts).enumerate();
        chunks.try_for_each_init(
            || (Vec::new(), Zeroizing::new(Vec::new())),
            |(buffer, words), (part, ((found, opened), streams))| {
                let len = found.len();
                words.resize(digits.words * len, 0);
                match &region {
                    None => streams.pads(words),
                    Some(region) => {
                        let bytes =
                            region.read(part * table_bytes(&digits, PART), table_bytes(&digits, len), buffer)?;
                        words
                            .iter_mut()
                            .zip(bytes.as_chunks().0)
                            .for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
                    }
                }
                for (i, (found, &opened)) in found.iter_mut().zip(opened).enumerate() {
                    *found = digits.look_up(gate.public_point(opened), |word| words[word * len + i]);
                }
                Ok::<_, Error>(())
            },
        )?;
        let hidden = |(at, flips): (usize, &Bits)| {
            let mut column = Bits::from_lowest(found.iter().map(|found| found >> at));
            column.xor_assign(flips);
            column
        };
        let own: Vec<Bits> = flips.iter().enumerate().map(hidden).collect();
        let message = own.iter().flat_map(Bits::to_bytes).collect();
        Ok((Carrying { gate, role, parts, masks, opened, own, digits }, message))
    }
}

/// A batch whose compared digits are on their way.
pub struct Carrying<G> {
    gate: G,
    role: Role,
    /// What the client's tables and secrets come from.
    parts: Vec<Streams>,
    masks: Zeroizing<Vec<u64>>,
    opened: Vec<u64>,
    own: Vec<Bits>,
    digits: Digits,
}

impl<G: Carried> Carrying<G> {
    /// This party's shares of the results, `[n]` in the gate's output ring; the server reads its secrets from `body`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn finish(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let (count, gate, role, digits) = (self.opened.len(), self.gate, self.role, &self.digits);
        let bytes = count.div_ceil(8);
        let mut rest = theirs;
        for column in &mut self.own {
            let (theirs, later) = rest.split_at(bytes.min(rest.len()));
            column.xor_assign(&Bits::from_bytes(theirs, count)?);
            rest = later;
        }
        Bits::from_bytes(rest, 0)?;
        let bits = gathered(&self.own, count);

        let (ring, output, width) = (gate.carry_ring(), gate.output(), secrets(digits.count()));
        let region = match role {
            Role::Client => None,
            Role::Server => Some(body.region(secret_bytes(digits, ring, count))?),
        };
        let mut results = vec![0; count];
        let chunks = results.par_chunks_mut(PART).zip(&mut self.parts).enumerate();
        let (masks, opened) = (&self.masks, &self.opened);
        chunks.try_for_each_init(
            || (Vec::new(), Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new())),
            |(buffer, shares, column), (part, (results, streams))| {
                let (first, len) = (part * PART, results.len());
                shares.resize(width * len, 0);
                match &region {
                    None => streams.shares(shares),
                    Some(region) => {
                        let packed = ring.packed_bytes(len);
                        let start = part * secret_bytes(digits, ring, PART);
                        let bytes = region.read(start, width * packed, buffer)?;
                        column.resize(len, 0);
                        for (at, bytes) in bytes.chunks_exact(packed).enumerate() {
                            ring.unpack_into(column, bytes);
                            shares.iter_mut().skip(at).step_by(width).zip(column.iter()).for_each(|(out, x)| *out = *x);
                        }
                    }
                }
                for (i, (result, shares)) in results.iter_mut().zip(shares.chunks_exact(width)).enumerate() {
                    let at = first + i;
                    let carry = carry(digits.count(), bits[at], role.public(1), &shares[1..]);
                    let carried = ring.reduce(shares[0].wrapping_add(carry));
                    *result = output.reduce(gate.complete(role, masks[at], opened[at], carried));
                }
                Ok::<_, Error>(())
            },
        )?;
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extend, Truncate};

    #[test]
    fn digits_are_the_cheapest_and_tables_do_not_overlap() {
        let widths = |gate: &dyn Fn() -> Digits| gate().widths;
        assert_eq!(widths(&|| Digits::of(&Extend::new(21, 40))), [7, 7, 7]);
        assert_eq!(widths(&|| Digits::of(&Truncate::new(33, 12))), [6, 6]);
        assert_eq!(widths(&|| Digits::of(&Truncate::new(37, 1))), [1]);
        for bits in 1..64 {
            let digits = Digits::of(&Extend::new(bits, 64));
            assert_eq!(digits.widths.iter().sum::<u32>(), bits);
            assert!(digits.widths.iter().all(|&width| (1..=DIGIT_BITS).contains(&width)));
            let mut used = vec![false; 64 * digits.words];
            for (&width, &offset) in digits.widths.iter().zip(&digits.offsets) {
                assert_eq!(offset % (1 << width), 0, "a table of {width} bits from {offset} on");
                for bit in &mut used[offset as usize..][..1 << width] {
                    assert!(!std::mem::replace(bit, true));
                }
            }
        }
    }

    #[test]
    fn the_carry_is_right_for_every_pair_of_digits_and_every_hidden_bit() {
        for digits in 1..=4 {
            let pairs = 0..1_u64 << (2 * digits);
            for pair in pairs {
                // Digits of one bit: what is compared, and what it is compared with.
                let (public, secret) = (pair & ((1 << digits) - 1), pair >> digits);
                let mut bits = 0;
                for digit in 0..digits {
                    let [p, s] = [public, secret].map(|x| x >> digit & 1);
                    let (less, equal) = (u64::from(p < s), u64::from(p == s));
                    bits |= if digit == 0 { less } else { less << (2 * digit - 1) | equal << (2 * digit) };
                }
                for hidden in 0..1 << columns(digits) {
                    let mut products = vec![0; products(digits)];
                    multiply(digits, hidden, 1, &mut products);
                    assert_eq!(carry(digits, bits ^ hidden, 1, &products), u64::from(public < secret));
                }
            }
        }
    }
}
