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
//! Where keys become shorter by more than [`ROUND_BYTES`], products are bits and the carry is opened behind one, in a round more
//! ([`ByBits`]).
//!
//! The client's share of all this comes from its seed, so its key has no body. A table hides nothing behind a hash: both shares are
//! uniform, and an address depends on opened numbers alone.

use std::io::Write;

use privet_prg::Seed;
use privet_ring::select::add_products;
use privet_ring::{Bits, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::compared::{Compared, ROUND_BYTES};
use crate::digits::{self, Digits, PART, add_columns, columns, parts, products};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source};

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
    /// rounds, or three where products are bits.
    ///
    /// # Errors
    /// If the link or the key fails.
    fn evaluate(self, party: &mut Party<'_>, seed: &Seed, body: &mut dyn Source, x: &[u64]) -> Result<Vec<u64>, Error> {
        if let Some(gate) = by_bits(&self, x.len()) {
            return gate.evaluate(party, seed, body, x);
        }
        let (masked, message) = self.start(party.role, seed, x);
        let (carrying, message) = masked.compare(&party.channel.exchange(&message)?, body)?;
        carrying.finish(&party.channel.exchange(&message)?, body)
    }
}

/// The same gate, whose carry the parties get as a shared bit and open behind another.
#[derive(Clone, Copy)]
struct ByBits<G>(G);

impl<G: Carried> Compared for ByBits<G> {
    fn input(&self) -> Modulus {
        self.0.input()
    }

    fn output(&self) -> Modulus {
        self.0.output()
    }

    fn compared_bits(&self) -> u32 {
        self.0.compared_bits()
    }

    fn public_point(&self, opened: u64) -> u64 {
        self.0.public_point(opened)
    }

    fn secret_point(&self, mask: u64) -> u64 {
        self.0.secret_point(mask)
    }

    fn secret_rings(&self) -> Vec<Modulus> {
        vec![self.0.carry_ring(); 2]
    }

    /// What `base + c` is if 0 is opened, and if 1 is: whether nothing is carried, behind `flip`.
    fn secrets(&self, masks: [u64; 2], flip: bool, out: &mut [u64]) {
        let base = self.0.base(masks);
        out.copy_from_slice(&[!flip, flip].map(|carry| base.wrapping_add(carry.into())));
    }

    fn choose(&self, role: Role, mask: u64, opened: u64, bit: bool, secrets: &[u64]) -> u64 {
        self.0.complete(role, mask, opened, secrets[usize::from(bit)])
    }
}

/// The gate for `count` elements by bits, if that is worth its round.
fn by_bits<G: Carried>(gate: &G, count: usize) -> Option<ByBits<G>> {
    let bytes = ByBits(*gate).key_bytes(count);
    let worth = bytes.words == 0 && corrections(gate, count) > bytes.corrections + ROUND_BYTES;
    worth.then_some(ByBits(*gate))
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

/// A part of a carry: where `chosen`, a number is added, or subtracted where it is `negated` as well. 64 elements to a word.
struct Term {
    /// The product whose share that is; without one, 1.
    product: Option<usize>,
    chosen: Vec<u64>,
    negated: Vec<u64>,
}

/// Everywhere, and the sign that changes nothing.
fn always(words: usize) -> [Vec<u64>; 2] {
    [vec![u64::MAX; words], vec![0; words]]
}

/// Writes the terms of the carry by opened columns, times a product or 1 (`one`), where `chosen` and with the sign of `negated`. `first`:
/// the first of the products of its digits times `one`.
fn carry(opened: &[&[u64]], one: Option<usize>, first: usize, [chosen, negated]: [&[u64]; 2], out: &mut Vec<Term>) {
    let and = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| x & y).collect::<Vec<_>>();
    let xor = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| x ^ y).collect::<Vec<_>>();
    // A bit that is opened as 1 is 1 less a hidden one, else it is the hidden one.
    let mut known = |opened: &[u64], hidden: usize| {
        out.push(Term { product: one, chosen: and(chosen, opened), negated: negated.to_vec() });
        out.push(Term { product: Some(hidden), chosen: chosen.to_vec(), negated: xor(negated, opened) });
    };
    let [lower @ .., less, equal] = opened else { return known(opened[0], first) };
    known(less, first);
    let (plain, hidden) = (first + 2, first + 1);
    let times = plain + products(lower.len().div_ceil(2));
    carry(lower, one, plain, [&and(chosen, equal), negated], out);
    carry(lower, Some(hidden), times, [chosen, &xor(negated, equal)], out);
}

/// `sums[i] += x[i]` where the term is chosen, with its sign.
fn add(sums: &mut [u64], term: &Term, x: &[u64]) {
    // What is not chosen is subtracted and added again.
    let others: Vec<u64> = term.chosen.iter().map(|word| !word).collect();
    let signs: Vec<u64> = others.iter().zip(&term.negated).map(|(other, negated)| other | negated).collect();
    add_products(sums, &others, x, &signs, x);
}

/// Bytes of the secrets of `count` elements: packed columns, part by part.
fn secret_bytes(digits: &Digits, ring: Modulus, count: usize) -> usize {
    let part = |count| secrets(digits.count()) * ring.packed_bytes(count);
    count / PART * part(PART) + part(count % PART)
}

/// Bytes of a batch's key whose products are in a ring.
fn corrections(gate: &impl Carried, count: usize) -> usize {
    let digits = cut(gate);
    digits.table_bytes(count) + secret_bytes(&digits, gate.carry_ring(), count)
}

/// Exact length of a batch's key.
pub(crate) fn key_bytes(gate: &impl Carried, count: usize) -> KeyBytes {
    match by_bits(gate, count) {
        Some(gate) => gate.key_bytes(count),
        None => KeyBytes { words: 0, corrections: corrections(gate, count) },
    }
}

/// Bytes of either party's messages.
pub(crate) fn message_bytes(gate: &impl Carried, count: usize) -> Vec<usize> {
    if let Some(gate) = by_bits(gate, count) {
        return gate.message_bytes(count);
    }
    vec![gate.input().packed_bytes(count), columns(cut(gate).count()) * count.div_ceil(8)]
}

/// The server's part of a batch's key; the client has none but its seed.
pub(crate) fn deal(gate: &impl Carried, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
    if let Some(gate) = by_bits(gate, count) {
        return gate.deal(count, seeds, words);
    }
    let (digits, ring) = (cut(gate), gate.carry_ring());
    let mut client = Streams::new(Role::Client, &seeds.client);
    let mut server = Streams::new(Role::Server, &seeds.server);
    let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, gate.input())));
    let flips: Vec<Bits> =
        (0..columns(digits.count())).map(|_| client.flips(count).xor(&server.flips(count))).collect();
    let products = Zeroizing::new(digits::multiply(&flips));
    let parts = client.parts(parts(count));

    let mut corrections = vec![0; digits.table_bytes(count) + secret_bytes(&digits, ring, count)];
    let (tables, packed) = corrections.split_at_mut(digits.table_bytes(count));
    let tables = tables.par_chunks_mut(digits.table_bytes(PART));
    let packed = packed.par_chunks_mut(secret_bytes(&digits, ring, PART));
    tables.zip(packed).zip(&parts).enumerate().for_each(|(part, ((tables, packed), seed))| {
        let first = part * PART;
        let here = first..count.min(first + PART);
        let (len, words) = (here.len(), here.len().div_ceil(64));
        let mut streams = Streams::new(Role::Client, seed);
        let mask = |at: usize| gate.input().reduce(masks[0][at].wrapping_add(masks[1][at]));
        digits.plant(here.clone().map(|at| gate.secret_point(mask(at))), &mut streams, tables);

        let (ones, [everywhere, _]) = (vec![1; len], always(words));
        let (mut theirs, mut values) = (Zeroizing::new(vec![0; len]), Zeroizing::new(vec![0; len]));
        for (column, out) in packed.chunks_exact_mut(ring.packed_bytes(len)).enumerate() {
            // The client's share comes packed, and what is left takes its place.
            streams.packed_shares(out);
            ring.unpack_into(&mut theirs, out);
            let bits = match column.checked_sub(1) {
                None => {
                    let bases = here.clone().map(|at| gate.base([masks[0][at], masks[1][at]]));
                    values.iter_mut().zip(bases).for_each(|(value, base)| *value = base);
                    &vec![0; words]
                }
                Some(product) => {
                    values.fill(0);
                    &products[product].words()[first / 64..][..words]
                }
            };
            add_products(&mut values, bits, &ones, &everywhere, &theirs);
            ring.reduce_all(&mut values);
            ring.pack_into(out, &values);
        }
    });
    Ok(corrections)
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
        let mut own = digits.look_up(&points, role, &mut parts, body)?;
        own.iter_mut().zip(&flips).for_each(|(own, flips)| own.xor_assign(flips));
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

        let (ring, output, width) = (gate.carry_ring(), gate.output(), secrets(digits.count()));
        let region = match role {
            Role::Client => None,
            Role::Server => Some(body.region(secret_bytes(digits, ring, count))?),
        };
        let mut results = vec![0; count];
        let chunks = results.par_chunks_mut(PART).zip(&mut self.parts).enumerate();
        let (masks, opened, columns) = (&self.masks, &self.opened, &self.own);
        chunks.try_for_each_init(
            || (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new())),
            |(buffer, column), (part, (results, streams))| {
                let (first, len) = (part * PART, results.len());
                let words = len.div_ceil(64);
                let columns: Vec<&[u64]> =
                    columns.iter().map(|column| &column.words()[first / 64..][..words]).collect();
                let (mut terms, [chosen, negated]) = (Vec::new(), always(words));
                carry(&columns, None, 0, [&chosen, &negated], &mut terms);

                let packed = ring.packed_bytes(len);
                let bytes = match &region {
                    None => {
                        buffer.resize(width * packed, 0);
                        streams.packed_shares(buffer);
                        buffer.as_slice()
                    }
                    Some(region) => region.read(part * secret_bytes(digits, ring, PART), width * packed, buffer)?,
                };
                let (base, products) = bytes.split_at(packed);
                ring.unpack_into(results, base);
                column.clear();
                column.resize(len, role.public(1));
                terms.iter().filter(|term| term.product.is_none()).for_each(|term| add(results, term, column));
                for (product, bytes) in products.chunks_exact(packed).enumerate() {
                    ring.unpack_into(column, bytes);
                    let of_product = terms.iter().filter(|term| term.product == Some(product));
                    of_product.for_each(|term| add(results, term, column));
                }
                for (result, at) in results.iter_mut().zip(first..) {
                    *result = output.reduce(gate.complete(role, masks[at], opened[at], ring.reduce(*result)));
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
            // Digits of one bit: what is compared, what it is compared with, and the bits over what is opened; one element each.
            let elements: Vec<(u64, u64, u64)> = (0..1_u64 << (2 * digits))
                .flat_map(|pair| {
                    (0..1 << columns(digits)).map(move |flip| (pair & ((1 << digits) - 1), pair >> digits, flip))
                })
                .collect();
            let column = |bit: &dyn Fn(u64, u64, u64) -> bool| {
                Bits::from_bools(
                    &elements.iter().map(|&(public, secret, flip)| bit(public, secret, flip)).collect::<Vec<_>>(),
                )
            };
            let flips: Vec<Bits> = (0..columns(digits)).map(|at| column(&|_, _, flip| flip >> at & 1 == 1)).collect();
            let opened: Vec<Bits> = (0..columns(digits))
                .map(|at| {
                    column(&|public, secret, flip| {
                        let [p, s] = [public, secret].map(|x| x >> at.div_ceil(2) & 1);
                        (if at == 0 || at % 2 == 1 { p < s } else { p == s }) ^ (flip >> at & 1 == 1)
                    })
                })
                .collect();
            let products = digits::multiply(&flips);
            let opened: Vec<&[u64]> = opened.iter().map(Bits::words).collect();
            let (mut terms, [chosen, negated]) = (Vec::new(), always(elements.len().div_ceil(64)));
            carry(&opened, None, 0, [&chosen, &negated], &mut terms);
            let mut carries = vec![0; elements.len()];
            for term in &terms {
                let x: Vec<u64> =
                    (0..elements.len()).map(|i| term.product.map_or(1, |at| u64::from(products[at].get(i)))).collect();
                add(&mut carries, term, &x);
            }
            let expected: Vec<u64> = elements.iter().map(|&(public, secret, _)| u64::from(public < secret)).collect();
            assert_eq!(carries, expected);
        }
    }
}
