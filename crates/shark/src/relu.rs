//! ReLU of a masked value, after a truncation or not, into a ring that may be wider. One round.
//!
//! Notation as in [`crate::sign`]. If `d = 1`, then `y` as an integer is `Z = y^ - S`, with `S = s` if `t^ = 1` and
//! `S = s - 2^(n-f) t` if not: below half the ring, the two top bits tell whether `y + s` wrapped. So
//! `max(y, 0) = d Z = v Z + d^ (1 - 2v) Z` is linear in what the dealer shares: `v`, both `S` and both `v S`. These are
//! integers, and so is the result, whatever ring it goes on in. In the ring of `y` itself both `S` are `s`; if nothing is
//! dropped either, `s` is the input's own mask.

use std::ops::Range;

use privet_fss::KeyBytes;
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::bits::all;
use crate::dealer::{CHUNK, Dealer, SECRET_BYTES};
use crate::sign::{Choice, Sign};
use crate::values::affine;
use crate::{Error, Key, Masked, Party, Values};

/// `max(y, 0)` for `y = x / 2^f`, rounded down or up, from Z_2^n into Z_2^m, `m >= n - f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relu {
    sign: Sign,
    output: Modulus,
}

impl Relu {
    /// From `bits` bits of which the low `dropped` are dropped, into `wide` bits.
    ///
    /// # Panics
    /// Unless `dropped < bits <= 64` and `bits - dropped <= wide <= 64`.
    pub fn new(bits: u32, dropped: u32, wide: u32) -> Self {
        let sign = Sign::new(bits, dropped);
        assert!(sign.truncated().bits() <= wide, "a ReLU does not shrink its ring");
        Self { sign, output: Modulus::new(wide) }
    }

    /// The ring in which the results are valid.
    pub fn output(&self) -> Modulus {
        self.output
    }

    /// Bytes of the key of `count` elements.
    pub fn key_bytes(&self, count: usize) -> KeyBytes {
        let secrets = 2 * self.cases() - usize::from(self.has_mask());
        self.sign.key_bytes(count) + KeyBytes { words: 0, corrections: count * secrets * SECRET_BYTES }
    }

    /// Bytes of each message that either party sends.
    pub fn message_bytes(&self, count: usize) -> Vec<usize> {
        self.sign.message_bytes(count)
    }

    /// Deals for values behind `masks`. Returns the bits `v` of the results' [`Choice`].
    ///
    /// # Errors
    /// If a body cannot be written.
    pub fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<Bits, Error> {
        let hidden = self.sign.deal(dealer, masks)?;
        for range in chunks(masks.len()) {
            let subtrahends =
                |top: bool| -> Vec<u128> { masks[range.clone()].iter().map(|r| self.subtrahend(*r, top)).collect() };
            let chosen = |subtrahends: &[u128]| -> Vec<u128> {
                let keep = |(s, v): (&u128, bool)| s & u128::from(v).wrapping_neg();
                subtrahends.iter().zip(range.clone().map(|i| hidden.get(i))).map(keep).collect()
            };
            for top in [true, false].into_iter().take(self.cases()) {
                let subtrahends = Zeroizing::new(subtrahends(top));
                if !self.has_mask() {
                    dealer.secrets(&subtrahends)?;
                }
                dealer.secrets(&Zeroizing::new(chosen(&subtrahends)))?;
            }
        }
        Ok(hidden)
    }

    /// The values `max(y, 0)`. One round.
    ///
    /// # Errors
    /// If the link or the key fails.
    ///
    /// # Panics
    /// If `x` is of another ring.
    pub fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error> {
        Ok(self.evaluate_with_sign(party, x)?.0)
    }

    /// The values `max(y, 0)` and the bits `y >= 0`, for no more than the values.
    ///
    /// # Errors
    /// If the link or the key fails.
    ///
    /// # Panics
    /// If `x` is of another ring.
    pub fn evaluate_with_sign(&self, party: &mut Party<'_>, x: &Masked) -> Result<(Values, Choice), Error> {
        let choice = self.sign.evaluate(party, x)?;
        let mut values = Values::with_capacity(x.len());
        for range in chunks(x.len()) {
            let mut cases = Vec::new();
            for _ in 0..self.cases() {
                let subtrahend = match self.has_mask() {
                    true => x.mask().slice(range.clone()),
                    false => party.secrets(range.len())?,
                };
                cases.push([subtrahend, party.secrets(range.len())?]);
            }
            values.extend(&self.choose(party.key(), &choice.slice(range.clone()), &x.opened()[range], &cases));
        }
        Ok((values, choice))
    }

    /// `d Z`; `cases`: `S` and `v S` for `t^ = 1`, then for `t^ = 0` if that differs.
    fn choose(&self, key: &Key, choice: &Choice, opened: &[u64], cases: &[[Values; 2]]) -> Values {
        let [[s_1, chosen_1], [s_0, chosen_0]] = [&cases[0], &cases[cases.len() - 1]];
        affine(key, [&choice.hidden, s_1, s_0, chosen_1, chosen_0], |i, unit, [v, s_1, s_0, chosen_1, chosen_0]| {
            let y = u128::from(self.sign.shift(opened[i]));
            let top = u128::from(self.sign.top(opened[i])).wrapping_neg();
            let subtrahend = s_0 ^ (s_0 ^ s_1) & top;
            let chosen = chosen_0 ^ (chosen_0 ^ chosen_1) & top;
            let hidden = v.wrapping_mul(y).wrapping_sub(chosen);
            let whole = unit.wrapping_mul(y).wrapping_sub(subtrahend);
            hidden ^ (hidden ^ whole.wrapping_sub(hidden)) & all(&choice.public, i)
        })
    }

    /// `S` for a mask and the top bit of `y^`.
    fn subtrahend(&self, mask: u128, top: bool) -> u128 {
        let s = u128::from(self.sign.shift(mask as u64));
        let wrapped = u128::from(self.cases() == 2 && !top && self.sign.top(mask as u64));
        s.wrapping_sub(wrapped << self.sign.truncated().bits())
    }

    /// Whether the subtrahend depends on the top bit.
    fn cases(&self) -> usize {
        if self.output.bits() > self.sign.truncated().bits() { 2 } else { 1 }
    }

    /// Whether the subtrahend is the mask of the input.
    fn has_mask(&self) -> bool {
        self.cases() == 1 && self.sign.dropped() == 0
    }
}

/// Ranges of elements whose secrets are held at once.
fn chunks(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(CHUNK).map(move |first| first..count.min(first + CHUNK))
}
