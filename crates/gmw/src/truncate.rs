//! Truncation: drop low bits of each share and go on in the smaller ring.
//!
//! What the low parts of the two shares carry together is lost, or computed and put back. Losing it is free, and what
//! published systems do (SecONNds, section 5.2); but the lost carry depends on the client's own share, so a client that
//! sees many exact outputs for one input learns linear combinations of weights (`docs/reference/protocols/truncate.md`). Putting
//! it back costs a comparison of the low bits.

use std::collections::VecDeque;
use std::ops::Range;

use privet_ot::{Role, Stock};
use privet_ring::{Bits, Modulus, planes};

use crate::compare::carry_out_then;
use crate::lanes::{Carries, LastExchange};
use crate::product::{Opening, numbers};
use crate::{Error, Party};

/// What becomes of the carry between the low parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncation {
    /// Lost: results are off by one unit in the last place at most. Free.
    OneBit,
    /// Computed: results are exact.
    #[default]
    Exact,
}

/// Shares in Z_2^(k - bits) of `floor(x / 2^bits)` or one more; `x`: this party's share in Z_2^k. Local.
///
/// On average the lost carry and the floor take one unit in the last place, which the server adds beforehand, so that
/// errors of many truncations cancel instead of adding up. The top `bits` bits go too: [`crate::extend`] brings them
/// back where a later step needs the wide ring.
pub fn drop_low_bits(role: Role, x: &[u64], bits: u32, ring: Modulus) -> Vec<u64> {
    let unit = if role == Role::Server { 1 << bits } else { 0 };
    x.iter().map(|x| ring.reduce(x.wrapping_add(unit)) >> bits).collect()
}

/// Shares in Z_2^(k - bits) of exactly `floor(x / 2^bits)`; `x`: this party's share in Z_2^k.
///
/// The carry of the low parts is a comparison's result `c_C ^ c_S`; as a ring element it is `c_C + c_S - 2 c_C c_S`.
pub fn truncate_exactly(party: &mut Party<'_>, x: &[u64], bits: u32, ring: Modulus) -> Result<Vec<u64>, Error> {
    put_back(party, x, bits, 0, ring)
}

/// [`truncate_exactly`] of an `x` whose low two bits are not both clear, as those of a multiple of four that was raised by two and is
/// off by one at most; `bits` is at least 2.
///
/// Then the low two bits of the shares do not add up to four. So they carry exactly if the upper one of both is set, and the
/// lowest is not compared.
pub fn truncate_guarded(party: &mut Party<'_>, x: &[u64], bits: u32, ring: Modulus) -> Result<Vec<u64>, Error> {
    put_back(party, x, bits, 1, ring)
}

/// Drops `bits` bits and puts their carry back, which is that of the shares without their lowest `skipped` bits.
fn put_back(party: &mut Party<'_>, x: &[u64], bits: u32, skipped: u32, ring: Modulus) -> Result<Vec<u64>, Error> {
    let (low, high) = (Modulus::new(bits), Modulus::new(ring.bits() - bits));
    let low_parts: Vec<u64> = x.iter().map(|&x| low.reduce(x) >> skipped).collect();
    let mut sum = CarriesAdded { x, bits, high, opened: VecDeque::new(), results: vec![0; x.len()] };
    carry_out_then(party, planes::from_values(&low_parts, bits - skipped), &mut sum)?;
    Ok(sum.results)
}

/// What is above the lowest `bits` bits, and their carries as numbers.
struct CarriesAdded<'a> {
    x: &'a [u64],
    bits: u32,
    high: Modulus,
    /// Carries by place of what waits for the other party.
    opened: VecDeque<[(Range<usize>, Bits, Opening); 2]>,
    results: Vec<u64>,
}

impl LastExchange for CarriesAdded<'_> {
    fn speak(&mut self, stock: &mut Stock, carries: Carries) -> Result<Vec<u8>, Error> {
        let [(first, first_carries), (second, second_carries)] = carries;
        let (first_opening, mut message) = Opening::of(stock, &first_carries, self.high)?;
        let (second_opening, rest) = Opening::of(stock, &second_carries, self.high)?;
        message.extend_from_slice(&rest);
        self.opened.push_back([(first, first_carries, first_opening), (second, second_carries, second_opening)]);
        Ok(message)
    }

    fn expects(&self) -> usize {
        self.opened.front().map_or(0, |opened| opened.iter().map(|(.., opening)| opening.expects()).sum())
    }

    fn listen(&mut self, stock: &Stock, reply: Vec<u8>) -> Result<(), Error> {
        let Self { x, bits, high, opened, results } = self;
        let mut rest = reply.as_slice();
        for (place, carries, opening) in opened.pop_front().expect("a message that was answered") {
            let (reply, after) = rest.split_at(opening.expects());
            let x = &x[place.clone()];
            opening.multiply(stock, &carries, reply, &mut results[place], |block, products, carried| {
                numbers(&carries, &block, carried);
                for ((value, x), carried) in products.iter_mut().zip(&x[block]).zip(carried) {
                    *value = high.reduce((x >> *bits).wrapping_add(*carried).wrapping_sub(*value << 1));
                }
            })?;
            rest = after;
        }
        Ok(())
    }
}
