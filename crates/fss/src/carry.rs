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

use crate::compared::{OpenedDigits, ROUND_BYTES, deal_digits, less_by_digits, product_bytes};
use crate::digits::{Digits, columns, parts, products};
use crate::ring_products::RingProducts;
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, secrets};

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

    /// Shares of the gate's value in its output ring; `x`: this party's shares in the input ring or a larger one. Two rounds, or three
    /// where products are bits.
    fn evaluate(self, party: &mut Party<'_>, seed: &Seed, body: &mut dyn Source, x: &[u64]) -> Result<Vec<u64>, Error> {
        let (role, count, low) = (party.role, x.len(), Modulus::new(self.low_bits()));
        let mut streams = Streams::new(role, seed);
        let addends: Vec<u64> = x.iter().map(|&x| self.addend(role, x)).collect();
        // Low bits with the mask, not reduced.
        let mut masked = streams.masks(count, low);
        masked.iter_mut().zip(&addends).for_each(|(masked, &addend)| *masked += low.reduce(addend));
        let mut points = low.unpack(&party.channel.exchange(&low.pack(&masked))?, count)?;
        // What is opened, and this party's share of the wraps that are known.
        let wraps = points.iter_mut().zip(&masked).map(|(point, masked)| {
            let sum = low.reduce(*masked) + *point;
            *point = low.reduce(sum);
            role.public(sum >> low.bits()).wrapping_add(masked >> low.bits())
        });
        let (wraps, output) = (wraps.collect::<Vec<_>>(), self.output());
        if let Some(digits) = by_bits(&self, count) {
            let mut bit = less_by_digits(&digits, &points, &mut streams, party, body)?;
            bit.xor_assign(&Bits::from_lowest(wraps.iter().map(|wraps| wraps & 1)));
            bit.xor_assign(&streams.flips(count));
            bit.xor_assign(&Bits::from_bytes(&party.channel.exchange(&bit.to_bytes())?, count)?);
            return secrets::fold(&[self.carry_ring()], count, role, &mut streams, body, |i, flip| {
                let carry = if bit.get(i) { role.public(1).wrapping_sub(flip[0]) } else { flip[0] };
                output.reduce(self.complete(role, addends[i], carry))
            });
        }
        let digits = cut(&self);
        let mut opened = OpenedDigits::new(&digits, &points, &mut streams, party, body)?;
        let products = ring_products(&self, &digits);
        let region = match role {
            Role::Client => None,
            Role::Server => Some(body.region(products.bytes(count))?),
        };
        let mut results = products.sum(role, &opened.columns, &mut opened.parts, region)?;
        for (result, (wraps, &addend)) in results.iter_mut().zip(wraps.iter().zip(&addends)) {
            *result = output.reduce(self.complete(role, addend, wraps.wrapping_sub(*result)));
        }
        Ok(results)
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

impl<G: Carried> Gate for G {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let corrections = match by_bits(self, count) {
            Some(digits) => as_bits(self, &digits, count),
            None => in_ring(self, count),
        };
        KeyBytes { words: 0, corrections }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        let (low, bits) = (Modulus::new(self.low_bits()).packed_bytes(count), count.div_ceil(8));
        match by_bits(self, count) {
            Some(digits) => vec![low, columns(digits.count()) * bits, bits],
            None => vec![low, columns(cut(self).count()) * bits],
        }
    }

    fn parts(&self, count: usize) -> usize {
        parts(count)
    }

    /// The server's part of a batch's key; the client has none but its seed.
    fn deal(&self, count: usize, seeds: &Seeds, _: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let low = Modulus::new(self.low_bits());
        let [mut client, mut server] = seeds.streams();
        let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, low)));
        let points = Zeroizing::new(low.add(&masks[0], &masks[1]));
        let wraps = (masks[0].iter().zip(&masks[1])).map(|(client, server)| (client + server) >> low.bits());
        let wraps = Zeroizing::new(wraps.collect::<Vec<_>>());
        let mut flips = |client: &mut Streams, columns: usize| -> Vec<Bits> {
            (0..columns).map(|_| client.flips(count).xor(&server.flips(count))).collect()
        };
        if let Some(digits) = by_bits(self, count) {
            let hidden = flips(&mut client, columns(digits.count()));
            let mut corrections = deal_digits(&digits, &points, &hidden, &mut client);
            let flips = flips(&mut client, 1).remove(0);
            corrections.extend(secrets::correct(&[self.carry_ring()], count, &mut client, |i, out| {
                out[0] = wraps[i] ^ u64::from(flips.get(i));
            }));
            return Ok(corrections);
        }
        let digits = cut(self);
        let hidden = flips(&mut client, columns(digits.count()));
        let mut parts = client.part_streams(parts(count));
        let mut corrections = digits.deal(&points, &mut parts);
        let products = ring_products(self, &digits);
        let tables = corrections.len();
        corrections.resize(tables + products.bytes(count), 0);
        products.deal(&hidden, &wraps, &mut parts, &mut corrections[tables..]);
        Ok(corrections)
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
