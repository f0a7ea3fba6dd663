//! Gates that need the carry of both parties' shares: whether `a_C + a_S >= 2^w` for `w` low bits of either.
//!
//! Each party adds its part of a mask `r` and both open `p = a_C + a_S + r` modulo `2^w`. A party knows whether its own sum wrapped, both
//! know whether that of the messages did, and the dealer knows whether that of the mask's parts did (`k`). The carry is then, as a number,
//! these three wraps less `k` and less `c = [p < r]`. No bit above the `w` low ones is opened.
//!
//! Numbers are compared by tables that are used once ([`crate::digits`]). Either `k + c` is [a sum in the ring](crate::ring_products) of
//! the result, in two rounds. Or, where keys become shorter by more than [`ROUND_BYTES`], products are bits, and the exclusive or of all
//! that, which is the carry, is opened behind a bit, in a round more. Of that bit, changed by `k`, the dealer shares the number.
//!
//! The client's share of all this comes from its seed, so its key has no body. A table hides nothing behind a hash: both shares are
//! uniform, and an address depends on opened numbers alone.

use std::io::Write;

use privet_prg::Seed;
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::compared::{ROUND_BYTES, deal_digits, ones, product_bytes, pull_products};
use crate::digits::{Digits, add_columns, columns, less, parts, products, to_bytes};
use crate::ring_products::RingProducts;
use crate::streams::Streams;
use crate::{Error, KeyBytes, Party, Role, Seeds, Source, secrets};

/// What makes one of these gates.
pub trait Carried: Copy + Sync {
    /// The input's ring.
    fn input(&self) -> Modulus;
    /// The ring of the result.
    fn output(&self) -> Modulus;
    /// How many low bits of shares are added up, at most 63.
    fn low_bits(&self) -> u32;
    /// This party's share, of which as many low bits count as the input's ring has, as it is added up in that ring.
    fn addend(&self, role: Role, share: u64) -> u64;
    /// The ring in which the parties get the carry.
    fn carry_ring(&self) -> Modulus;
    /// This party's share of the result: from its addend and its share of the carry.
    fn complete(&self, role: Role, addend: u64, carry: u64) -> u64;

    /// This party's first step; see [`Masked`].
    fn start(self, role: Role, seed: &Seed, x: &[u64]) -> (Masked<Self>, Vec<u8>) {
        let (mut streams, low) = (Streams::new(role, seed), Modulus::new(self.low_bits()));
        let addends: Vec<u64> = x.iter().map(|&x| self.addend(role, x)).collect();
        let mut own = streams.masks(x.len(), low);
        own.iter_mut().zip(&addends).for_each(|(own, &addend)| *own += low.reduce(addend));
        let message = low.pack(&own);
        (Masked { gate: self, role, streams, addends, own }, message)
    }

    /// Shares of the gate's value in its output ring; `x`: this party's shares in the input ring or a
    /// larger one. All steps over a channel: two rounds, or three where products are bits.
    ///
    /// # Errors
    /// If the link or the key fails.
    fn evaluate(self, party: &mut Party<'_>, seed: &Seed, body: &mut dyn Source, x: &[u64]) -> Result<Vec<u64>, Error> {
        let (masked, message) = self.start(party.role, seed, x);
        let theirs = party.channel.exchange(&message)?;
        if let Some(digits) = by_bits(&self, x.len()) {
            return masked.by_bits(&digits, &theirs, party, body);
        }
        let (carrying, message) = masked.compare(&theirs, body)?;
        carrying.finish(&party.channel.exchange(&message)?, body)
    }
}

/// The digits of `count` elements whose products are bits, if that is worth its round.
fn by_bits(gate: &impl Carried, count: usize) -> Option<Digits> {
    let digits = Digits::cheapest(gate.low_bits(), |digits| products(digits.count()));
    (in_ring(gate, count) > as_bits(gate, &digits, count) + ROUND_BYTES).then_some(digits)
}

/// Bytes of the key of `count` elements whose products are bits.
fn as_bits(gate: &impl Carried, digits: &Digits, count: usize) -> usize {
    let compared = digits.table_bytes(count) + product_bytes(digits.count(), count);
    compared + secrets::bytes(&[gate.carry_ring()], count)
}

/// Bytes of the key of `count` elements whose products are in the ring.
fn in_ring(gate: &impl Carried, count: usize) -> usize {
    let digits = cut(gate);
    digits.table_bytes(count) + ring_products(gate, &digits).bytes(count)
}

/// The digits that are the cheapest where products are in the ring: in bits of the key and of messages.
fn cut(gate: &impl Carried) -> Digits {
    let bits = gate.carry_ring().bits() as usize;
    Digits::cheapest(gate.low_bits(), |digits| ring_products(gate, digits).count() * bits)
}

fn ring_products(gate: &impl Carried, digits: &Digits) -> RingProducts {
    RingProducts { digits: digits.count(), ring: gate.carry_ring(), based: true }
}

/// Exact length of a batch's key.
pub(crate) fn key_bytes(gate: &impl Carried, count: usize) -> KeyBytes {
    let corrections = match by_bits(gate, count) {
        Some(digits) => as_bits(gate, &digits, count),
        None => in_ring(gate, count),
    };
    KeyBytes { words: 0, corrections }
}

/// Bytes of either party's messages.
pub(crate) fn message_bytes(gate: &impl Carried, count: usize) -> Vec<usize> {
    let (low, bits) = (Modulus::new(gate.low_bits()).packed_bytes(count), count.div_ceil(8));
    match by_bits(gate, count) {
        Some(digits) => vec![low, columns(digits.count()) * bits, bits],
        None => vec![low, columns(cut(gate).count()) * bits],
    }
}

/// The server's part of a batch's key; the client has none but its seed.
pub(crate) fn deal(gate: &impl Carried, count: usize, seeds: &Seeds, _: &mut dyn Write) -> Result<Vec<u8>, Error> {
    let low = Modulus::new(gate.low_bits());
    let mut client = Streams::new(Role::Client, &seeds.client);
    let mut server = Streams::new(Role::Server, &seeds.server);
    let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, low)));
    let points = Zeroizing::new(low.add(&masks[0], &masks[1]));
    let wraps = (masks[0].iter().zip(&masks[1])).map(|(client, server)| (client + server) >> low.bits());
    let wraps = Zeroizing::new(wraps.collect::<Vec<_>>());
    let mut flips = |client: &mut Streams, columns: usize| -> Vec<Bits> {
        (0..columns).map(|_| client.flips(count).xor(&server.flips(count))).collect()
    };
    if let Some(digits) = by_bits(gate, count) {
        let hidden = flips(&mut client, columns(digits.count()));
        let mut corrections = deal_digits(&digits, &points, &hidden, &mut client);
        let flips = flips(&mut client, 1).remove(0);
        corrections.extend(secrets::correct(&[gate.carry_ring()], count, &mut client, |i, out| {
            out[0] = wraps[i] ^ u64::from(flips.get(i));
        }));
        return Ok(corrections);
    }
    let digits = cut(gate);
    let hidden = flips(&mut client, columns(digits.count()));
    let mut parts = client.part_streams(parts(count));
    let mut corrections = digits.deal(&points, &mut parts);
    let products = ring_products(gate, &digits);
    let tables = corrections.len();
    corrections.resize(tables + products.bytes(count), 0);
    products.deal(&hidden, &wraps, &mut parts, &mut corrections[tables..]);
    Ok(corrections)
}

/// A batch whose masked input is on its way; made by [`Carried::start`].
pub struct Masked<G> {
    gate: G,
    role: Role,
    streams: Streams,
    addends: Vec<u64>,
    /// Low bits with the mask, not reduced.
    own: Vec<u64>,
}

impl<G: Carried> Masked<G> {
    /// What is opened, and this party's share of the wraps that are known.
    fn open(&self, theirs: &[u8]) -> Result<[Vec<u64>; 2], Error> {
        let low = Modulus::new(self.gate.low_bits());
        let mut points = low.unpack(theirs, self.own.len())?;
        let wraps = points.iter_mut().zip(&self.own).map(|(point, own)| {
            let sum = low.reduce(*own) + *point;
            *point = low.reduce(sum);
            self.role.public(sum >> low.bits()).wrapping_add(own >> low.bits())
        });
        let wraps = wraps.collect();
        Ok([points, wraps])
    }

    /// Compares digits, given the other party's message; the server reads its tables from `body`. Returns the next message.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn compare(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<(Carrying<G>, Vec<u8>), Error> {
        let [points, wraps] = self.open(theirs)?;
        let digits = cut(&self.gate);
        let looked_up = LookedUp::new(&digits, &points, self.role, &mut self.streams, body)?;
        let message = looked_up.message();
        let LookedUp { parts, own, .. } = looked_up;
        let Self { gate, role, addends, .. } = self;
        Ok((Carrying { gate, role, parts, addends, wraps, own, digits }, message))
    }

    /// What follows where products are bits.
    fn by_bits(
        mut self,
        digits: &Digits,
        theirs: &[u8],
        party: &mut Party<'_>,
        body: &mut dyn Source,
    ) -> Result<Vec<u64>, Error> {
        let [points, wraps] = self.open(theirs)?;
        let (count, role) = (points.len(), self.role);
        let mut looked_up = LookedUp::new(digits, &points, role, &mut self.streams, body)?;
        let theirs = party.channel.exchange(&looked_up.message())?;
        add_columns(&mut looked_up.own, &theirs, count)?;
        let Self { gate, mut streams, addends, .. } = self;
        let monomials = pull_products(role, &looked_up.flips, &mut streams, body)?;
        let mut bit = less(&looked_up.own, &ones(role, count), &monomials);
        bit.xor_assign(&Bits::from_lowest(wraps.iter().map(|wraps| wraps & 1)));
        bit.xor_assign(&streams.flips(count));
        bit.xor_assign(&Bits::from_bytes(&party.channel.exchange(&bit.to_bytes())?, count)?);
        let output = gate.output();
        secrets::fold(&[gate.carry_ring()], count, role, &mut streams, body, |i, flip| {
            let carry = if bit.get(i) { role.public(1).wrapping_sub(flip[0]) } else { flip[0] };
            output.reduce(gate.complete(role, addends[i], carry))
        })
    }
}

/// This party's shares of what digits compare to, behind bits of its own.
pub(crate) struct LookedUp {
    /// Streams of the batch's parts.
    pub(crate) parts: Vec<Streams>,
    /// This party's parts of the bits that hide columns.
    pub(crate) flips: Vec<Bits>,
    pub(crate) own: Vec<Bits>,
}

impl LookedUp {
    fn new(
        digits: &Digits,
        points: &[u64],
        role: Role,
        streams: &mut Streams,
        body: &mut dyn Source,
    ) -> Result<Self, Error> {
        let count = points.len();
        let flips: Vec<Bits> = (0..columns(digits.count())).map(|_| streams.flips(count)).collect();
        let mut parts = streams.part_streams(parts(count));
        let mut own = digits.look_up(points, role, &mut parts, body)?;
        own.iter_mut().zip(&flips).for_each(|(own, flips)| own.xor_assign(flips));
        Ok(Self { parts, flips, own })
    }

    fn message(&self) -> Vec<u8> {
        to_bytes(&self.own)
    }
}

/// A batch whose compared digits are on their way.
pub struct Carrying<G> {
    gate: G,
    role: Role,
    /// What the client's tables and secrets come from.
    parts: Vec<Streams>,
    addends: Vec<u64>,
    wraps: Vec<u64>,
    own: Vec<Bits>,
    digits: Digits,
}

impl<G: Carried> Carrying<G> {
    /// This party's shares of the results, `[n]` in the gate's output ring; the server reads its secrets from `body`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn finish(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let (count, gate, role) = (self.addends.len(), self.gate, self.role);
        add_columns(&mut self.own, theirs, count)?;
        let products = ring_products(&gate, &self.digits);
        let region = match role {
            Role::Client => None,
            Role::Server => Some(body.region(products.bytes(count))?),
        };
        let mut results = products.sum(role, &self.own, &mut self.parts, region)?;
        let (output, wraps) = (gate.output(), self.wraps.iter().zip(&self.addends));
        for (result, (wraps, &addend)) in results.iter_mut().zip(wraps) {
            *result = output.reduce(gate.complete(role, addend, wraps.wrapping_sub(*result)));
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extend, Truncate};

    #[test]
    fn digits_are_the_cheapest() {
        let widths = |digits: Digits| digits.widths().to_vec();
        assert_eq!(widths(cut(&Extend::new(21, 40))), [7, 7, 7]);
        assert_eq!(widths(cut(&Truncate::new(33, 12))), [6, 6]);
        assert_eq!(widths(cut(&Truncate::new(37, 1))), [1]);
        assert_eq!(widths(by_bits(&Truncate::new(33, 12), 200_000).expect("worth a round")), [3, 3, 3, 3]);
        assert_eq!(widths(by_bits(&Extend::new(21, 40), 50_000).expect("worth a round")), [4, 4, 4, 4, 5]);
    }
}
