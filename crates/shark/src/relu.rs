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
use crate::dealer::{Dealer, SECRET_BYTES};
use crate::sign::{Choice, Sign};
use crate::values::{View, combine_into};
use crate::{Error, Gate, Key, Masked, Party, Values};

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

    /// Deals for values behind `masks`. Returns the bits `v` of the results' [`Choice`].
    pub fn deal_with_sign(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<Bits, Error> {
        let hidden = self.sign.deal(dealer, masks)?;
        for range in chunks(masks.len()) {
            let mut secrets = Zeroizing::new(Vec::with_capacity(range.len() * self.secrets()));
            for top in [true, false].into_iter().take(self.cases()) {
                let subtrahends = masks[range.clone()].iter().map(|r| self.subtrahend(*r, top));
                let chosen = subtrahends.clone().zip(range.clone());
                if !self.has_mask() {
                    secrets.extend(subtrahends);
                }
                secrets.extend(chosen.map(|(s, i)| s & all(&hidden, i)));
            }
            dealer.secrets(&secrets)?;
        }
        Ok(hidden)
    }

    /// The values `max(y, 0)` and the bits `y >= 0`, for no more than the values.
    ///
    /// # Panics
    /// If `x` is of another ring.
    pub fn evaluate_with_sign(&self, party: &mut Party<'_>, x: &Masked) -> Result<(Values, Choice), Error> {
        let choice = self.sign.evaluate(party, x)?;
        let mut values = Values::zeros(x.len());
        let mut secrets = Values::zeros(x.len().min(CHUNK) * self.secrets());
        for range in chunks(x.len()) {
            party.fill_secrets(secrets.view_mut(0..range.len() * self.secrets()))?;
            let mut secrets = (0..self.secrets()).map(|i| secrets.view(i * range.len()..(i + 1) * range.len()));
            let mut next = || secrets.next().expect("as many as were dealt");
            let mut case = || [if self.has_mask() { x.mask().view(range.clone()) } else { next() }, next()];
            let with_top = case();
            let without = if self.cases() == 2 { case() } else { with_top };
            self.choose(party.key(), &choice, x.opened(), range.clone(), [with_top, without], values.view_mut(range));
        }
        Ok((values, choice))
    }

    /// `d Z` of a range; `cases`: its `S` and `v S` for `t^ = 1`, and those for `t^ = 0`.
    fn choose(
        &self,
        key: &Key,
        choice: &Choice,
        opened: &[u64],
        range: Range<usize>,
        [[s_1, chosen_1], [s_0, chosen_0]]: [[View<'_>; 2]; 2],
        out: [&mut [u128]; 2],
    ) {
        let inputs = [choice.hidden.view(range.clone()), s_1, s_0, chosen_1, chosen_0];
        combine_into(key.units(), inputs, out, |i, unit, [v, s_1, s_0, chosen_1, chosen_0]| {
            let i = range.start + i;
            let y = u128::from(self.sign.shift(opened[i]));
            let top = u128::from(self.sign.top(opened[i])).wrapping_neg();
            let subtrahend = s_0 ^ (s_0 ^ s_1) & top;
            let chosen = chosen_0 ^ (chosen_0 ^ chosen_1) & top;
            let hidden = v.wrapping_mul(y).wrapping_sub(chosen);
            let whole = unit.wrapping_mul(y).wrapping_sub(subtrahend);
            hidden ^ (hidden ^ whole.wrapping_sub(hidden)) & all(&choice.public, i)
        });
    }

    /// `S` for a mask and the top bit of `y^`.
    fn subtrahend(&self, mask: u128, top: bool) -> u128 {
        let s = u128::from(self.sign.shift(mask as u64));
        let wrapped = u128::from(self.cases() == 2 && !top && self.sign.top(mask as u64));
        s.wrapping_sub(wrapped << self.sign.truncated().bits())
    }

    /// Secrets of an element besides those of its sign.
    fn secrets(&self) -> usize {
        2 * self.cases() - usize::from(self.has_mask())
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

impl Gate for Relu {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        self.sign.key_bytes(count) + KeyBytes { words: 0, corrections: count * self.secrets() * SECRET_BYTES }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        self.sign.message_bytes(count)
    }

    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
        self.deal_with_sign(dealer, masks).map(drop)
    }

    fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error> {
        Ok(self.evaluate_with_sign(party, x)?.0)
    }
}

/// Elements whose secrets are held at once: some hundred kilobytes. Part of the protocol: the dealer cuts alike.
const CHUNK: usize = 8192;

/// Ranges of elements whose secrets are held at once.
fn chunks(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(CHUNK).map(move |first| first..count.min(first + CHUNK))
}
