//! Sign extension of every value of a ring. One round.
//!
//! With `y = x + 2^(n-1)` non-negative and `y^ = y + r` public, `y = y^ - r + 2^n c` as integers, with `c = [y^ < r]`. The
//! parties open `o = 1 ^ c ^ u`, so `c` is `u` or `1 - u`; secrets `r - 2^n u` and `r + 2^n u`. As [`crate::Truncate::exact`], but
//! for all `n` bits.
//!
//! [`crate::Extend`] takes no comparison, and is for values of which half of the ring is known to be empty.

use privet_fss::KeyBytes;
use privet_ring::Modulus;
use zeroize::Zeroizing;

use crate::dealer::{Dealer, FLIP_BYTES, SECRET_BYTES};
use crate::values::affine;
use crate::{Error, Masked, Party, Values, compare};

/// Signed values of Z_2^n as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignExtend {
    ring: Modulus,
}

impl SignExtend {
    /// From `bits` bits.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub fn new(bits: u32) -> Self {
        Self { ring: Modulus::new(bits) }
    }

    /// Bytes of the key of `count` elements.
    pub fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = count * compare::key_bytes(self.ring.bits());
        KeyBytes { words, corrections: count * (FLIP_BYTES + 2 * SECRET_BYTES) }
    }

    /// Bytes of each message that either party sends.
    pub fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![count.div_ceil(8)]
    }

    /// Deals for values behind `masks`.
    ///
    /// # Errors
    /// If a body cannot be written.
    pub fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
        let points = Zeroizing::new(masks.iter().map(|r| self.ring.reduce(*r as u64)).collect::<Vec<_>>());
        dealer.comparisons(self.ring.bits(), &points)?;
        let flips = dealer.flips(masks.len())?;
        let flip = |i: usize| u128::from(flips.get(i)) << self.ring.bits();
        let below = points.iter().enumerate().map(|(i, r)| u128::from(*r).wrapping_sub(flip(i)));
        dealer.secrets(&Zeroizing::new(below.collect::<Vec<_>>()))?;
        let above = points.iter().enumerate().map(|(i, r)| u128::from(*r).wrapping_add(flip(i)));
        Ok(dealer.secrets(&Zeroizing::new(above.collect::<Vec<_>>()))?)
    }

    /// The values `x`, exact integers modulo 2^128.
    ///
    /// # Errors
    /// If the link or the key fails.
    ///
    /// # Panics
    /// If `x` is of another ring.
    pub fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error> {
        assert_eq!(x.ring(), self.ring, "the ring of the input");
        let offset = 1u64 << (self.ring.bits() - 1);
        let raised = x.plus(offset);
        let compared = party.compare(self.ring.bits(), raised.opened())?;
        let flips = party.flips(x.len())?;
        let public = party.open_bits(&compared.xor(&flips))?;
        let [below, above] = [party.secrets(x.len())?, party.secrets(x.len())?];
        Ok(affine(party.key(), [&below, &above], |i, unit, [below, above]| {
            let y = u128::from(raised.opened()[i]).wrapping_sub(offset.into());
            match public.get(i) {
                true => unit.wrapping_mul(y).wrapping_sub(below),
                false => unit.wrapping_mul(y.wrapping_add(1 << self.ring.bits())).wrapping_sub(above),
            }
        }))
    }
}
