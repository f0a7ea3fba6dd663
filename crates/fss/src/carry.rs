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

use crate::digits::{Digits, PART, add_columns, columns, gathered, hidden, parts, products};
use crate::streams::Streams;
use crate::{Error, KeyBytes, Party, Role, Seeds, Source};

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

/// The digits that are the cheapest for a gate: in bits of the key and of messages.
fn cut(gate: &impl Carried) -> Digits {
    let ring = gate.carry_ring();
    Digits::cheapest(gate.compared_bits(), |digits| secrets(digits.count()) * ring.bits() as usize)
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

/// Bytes of the secrets of `count` elements: packed columns, part by part.
fn secret_bytes(digits: &Digits, ring: Modulus, count: usize) -> usize {
    let part = |count| secrets(digits.count()) * ring.packed_bytes(count);
    count / PART * part(PART) + part(count % PART)
}

/// Exact length of a batch's key.
pub(crate) fn key_bytes(gate: &impl Carried, count: usize) -> KeyBytes {
    let digits = cut(gate);
    let corrections = digits.table_bytes(count) + secret_bytes(&digits, gate.carry_ring(), count);
    KeyBytes { words: 0, corrections }
}

/// Bytes of either party's messages.
pub(crate) fn message_bytes(gate: &impl Carried, count: usize) -> Vec<usize> {
    vec![gate.input().packed_bytes(count), columns(cut(gate).count()) * count.div_ceil(8)]
}

/// The server's part of a batch's key; the client has none but its seed.
pub(crate) fn deal(gate: &impl Carried, count: usize, seeds: &Seeds) -> Vec<u8> {
    let (digits, ring) = (cut(gate), gate.carry_ring());
    let mut client = Streams::new(Role::Client, &seeds.client);
    let mut server = Streams::new(Role::Server, &seeds.server);
    let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, gate.input())));
    let flips: Vec<Bits> =
        (0..columns(digits.count())).map(|_| client.flips(count).xor(&server.flips(count))).collect();
    let hidden = Zeroizing::new(gathered(&flips, count));
    let parts = client.parts(parts(count));

    let width = secrets(digits.count());
    let mut corrections = vec![0; digits.table_bytes(count) + secret_bytes(&digits, ring, count)];
    let (tables, packed) = corrections.split_at_mut(digits.table_bytes(count));
    let tables = tables.par_chunks_mut(digits.table_bytes(PART));
    let packed = packed.par_chunks_mut(secret_bytes(&digits, ring, PART));
    tables.zip(packed).zip(&parts).enumerate().for_each(|(part, ((tables, packed), seed))| {
        let first = part * PART;
        let here = first..count.min(first + PART);
        let len = here.len();
        let mut streams = Streams::new(Role::Client, seed);
        let mask = |at: usize| gate.input().reduce(masks[0][at].wrapping_add(masks[1][at]));
        digits.plant(here.clone().map(|at| gate.secret_point(mask(at))), &mut streams, tables);

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
        let (digits, count) = (cut(&gate), own.len());
        let opened = gate.input().add(&own, &gate.input().unpack(theirs, count)?);
        let flips: Vec<Bits> = (0..columns(digits.count())).map(|_| streams.flips(count)).collect();
        let mut parts = streams.part_streams(self::parts(count));
        let points: Vec<u64> = opened.iter().map(|&opened| gate.public_point(opened)).collect();
        let found = digits.look_up(&points, role, &mut parts, body)?;
        let own = hidden(&found, &flips);
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
        add_columns(&mut self.own, theirs, count)?;
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
    fn digits_are_the_cheapest() {
        let widths = |digits: &dyn Fn() -> Digits| digits().widths().to_vec();
        assert_eq!(widths(&|| cut(&Extend::new(21, 40))), [7, 7, 7]);
        assert_eq!(widths(&|| cut(&Truncate::new(33, 12))), [6, 6]);
        assert_eq!(widths(&|| cut(&Truncate::new(37, 1))), [1]);
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
