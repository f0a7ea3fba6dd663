//! Truncation: drop low bits of each share and go on in the smaller ring.
//!
//! What the low parts of the two shares carry together is lost, or computed and put back. Losing it is free, and what
//! published systems do (SecONNds, section 5.2); but the lost carry depends on the client's own share, so a client that
//! sees many exact outputs for one input learns linear combinations of weights (`docs/reference/protocols/truncate.md`). Putting
//! it back costs a comparison of the low bits.

use privet_ot::Role;
use privet_ring::{Bits, Modulus};

use crate::product::{bit_product_then, numbers};
use crate::{Error, Party, carry};

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
    let carries: Bits = carry(party, &low_parts, bits - skipped)?;
    bit_product_then(party, &carries, high, |block, products, carried| {
        numbers(&carries, &block, carried);
        for ((value, x), carried) in products.iter_mut().zip(&x[block]).zip(carried) {
            *value = high.reduce((x >> bits).wrapping_add(*carried).wrapping_sub(*value << 1));
        }
    })
}
