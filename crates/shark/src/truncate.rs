//! Truncation of masked values, and the way into a wider ring.
//!
//! Notation as in [`crate::sign`]: `y^ - s` is `floor(x / 2^f)` in the ring of `n - f` bits, or one more if the low bits carry.
//!
//! - [`Truncate::near`] leaves it at that, with no message and one secret `s`. It rounds up if the low bits of `x^` are below
//!   those of `x`: right on average, but both parties see `x^`, so each result is a comparison of a secret with a public
//!   number. Somebody who sees enough results of one `x` finds its low bits.
//! - [`Truncate::exact`] takes away the carry `c = [low(x^) < low(r)]` of the `f` low bits. The parties open `o = 1 ^ c ^ u`, so
//!   `c` is `u` or `1 - u`; secrets `s + u` and `s - u`.
//! - [`Extend::non_negative`] and [`Extend::signed`] are for values that leave half of the ring unused, after an offset
//!   `0 <= y < 2^(n-f-1)`. There `y = y^ - S` as an integer, with the two `S` of [`crate::relu`]. No message. A value outside
//!   comes out wrong or right as its mask decides.
//! - [`Extend::exact`] is for every value of the ring: with the offset `2^(n-1)`, `x = x^ - r + 2^n c` for the carry
//!   `c = [x^ < r]`, which is opened behind `u` as above; secrets `r - 2^n u` and `r + 2^n u`.

use privet_fss::KeyBytes;
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::dealer::{Dealer, FLIP_BYTES, SECRET_BYTES};
use crate::sign::Sign;
use crate::values::affine;
use crate::{Error, Gate, Masked, Party, Values, compare};

/// `x / 2^f` from Z_2^n into Z_2^(n-f).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncate {
    sign: Sign,
    exact: bool,
}

impl Truncate {
    /// Rounds down or up. No round.
    ///
    /// # Panics
    /// Unless `1 <= dropped < bits <= 64`.
    pub fn near(bits: u32, dropped: u32) -> Self {
        assert!(dropped >= 1, "a truncation drops some bits");
        Self { sign: Sign::new(bits, dropped), exact: false }
    }

    /// Rounds down. One round.
    ///
    /// # Panics
    /// Unless `1 <= dropped < bits <= 64`.
    pub fn exact(bits: u32, dropped: u32) -> Self {
        Self { exact: true, ..Self::near(bits, dropped) }
    }

    /// The ring in which the results are valid.
    pub fn output(&self) -> Modulus {
        self.sign.truncated()
    }

    /// The bits that are dropped.
    fn low(&self, x: u64) -> u64 {
        x & ((1 << self.sign.dropped()) - 1)
    }
}

impl Gate for Truncate {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = compare::batch_bytes(self.sign.dropped(), count);
        match self.exact {
            true => KeyBytes { words, corrections: count * (FLIP_BYTES + 2 * SECRET_BYTES) },
            false => KeyBytes { words: 0, corrections: count * SECRET_BYTES },
        }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        if self.exact { vec![count.div_ceil(8)] } else { Vec::new() }
    }

    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
        let shifted = |i: usize| u128::from(self.sign.shift(masks[i] as u64));
        if !self.exact {
            return Ok(dealer.secrets(&Zeroizing::new((0..masks.len()).map(shifted).collect::<Vec<_>>()))?);
        }
        let points = Zeroizing::new(masks.iter().map(|r| self.low(*r as u64)).collect::<Vec<_>>());
        dealer.comparisons(self.sign.dropped(), &points)?;
        let flips = dealer.flips(masks.len())?;
        let flip = |i: usize| u128::from(flips.get(i));
        let sums: Vec<u128> = (0..masks.len()).map(|i| shifted(i).wrapping_add(flip(i))).collect();
        let differences: Vec<u128> = (0..masks.len()).map(|i| shifted(i).wrapping_sub(flip(i))).collect();
        dealer.secrets(&Zeroizing::new(sums))?;
        Ok(dealer.secrets(&Zeroizing::new(differences))?)
    }

    fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error> {
        assert_eq!(x.ring(), self.sign.input(), "the ring of the input");
        let shifted: Vec<u64> = x.opened().iter().map(|x| self.sign.shift(*x)).collect();
        if !self.exact {
            let secrets = party.secrets(x.len())?;
            return Ok(affine(party.key(), [&secrets], |i, unit, [s]| {
                unit.wrapping_mul(shifted[i].into()).wrapping_sub(s)
            }));
        }
        let points: Vec<u64> = x.opened().iter().map(|x| self.low(*x)).collect();
        let compared = party.compare(self.sign.dropped(), &points)?;
        let flips = party.flips(x.len())?;
        let public = party.open_bits(&compared.xor(&flips))?;
        let [sums, differences] = [party.secrets(x.len())?, party.secrets(x.len())?];
        Ok(affine(party.key(), [&sums, &differences], |i, unit, [sum, difference]| {
            let high = u128::from(shifted[i]);
            match public.get(i) {
                true => unit.wrapping_mul(high).wrapping_sub(sum),
                false => unit.wrapping_mul(high.wrapping_sub(1)).wrapping_sub(difference),
            }
        }))
    }
}

/// `y = x / 2^f`, rounded down or up, as an exact integer modulo 2^128. Unless the gate is exact, a value out of bounds comes out wrong,
/// and nothing tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extend {
    sign: Sign,
    /// Added to `x` to make every `y` one of `[0, 2^(n-f-1))` or, if exact, of `[0, 2^n)`.
    offset: u64,
    exact: bool,
}

impl Extend {
    /// For `y` in `[0, 2^(bits-dropped-1))`. No round.
    ///
    /// # Panics
    /// Unless `dropped < bits <= 64`.
    pub fn non_negative(bits: u32, dropped: u32) -> Self {
        Self { sign: Sign::new(bits, dropped), offset: 0, exact: false }
    }

    /// For signed `y` in `[-2^(bits-dropped-2), 2^(bits-dropped-2))`. No round.
    ///
    /// # Panics
    /// Unless `dropped + 2 <= bits <= 64`.
    pub fn signed(bits: u32, dropped: u32) -> Self {
        assert!(dropped + 2 <= bits, "a signed value and a bit of slack");
        Self { offset: 1 << (bits - 2), ..Self::non_negative(bits, dropped) }
    }

    /// For every signed value of the ring, of which nothing is dropped. One round.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub fn exact(bits: u32) -> Self {
        Self { sign: Sign::new(bits, 0), offset: 1 << (bits - 1), exact: true }
    }

    fn bits(&self) -> u32 {
        self.sign.input().bits()
    }
}

impl Gate for Extend {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let (words, flip) = if self.exact { (compare::batch_bytes(self.bits(), count), FLIP_BYTES) } else { (0, 0) };
        KeyBytes { words, corrections: count * (flip + 2 * SECRET_BYTES) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        if self.exact { vec![count.div_ceil(8)] } else { Vec::new() }
    }

    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
        let shifted = |i: usize| u128::from(self.sign.shift(masks[i] as u64));
        // What the two secrets differ by: a wrap of the mask's top bit or, if exact, of the whole sum.
        let (wrapped, below): (Vec<u128>, Vec<u128>) = if self.exact {
            let points = Zeroizing::new((0..masks.len()).map(|i| shifted(i) as u64).collect::<Vec<_>>());
            dealer.comparisons(self.bits(), &points)?;
            let flips = dealer.flips(masks.len())?;
            flips.iter().map(|flip| u128::from(flip) << self.bits()).map(|wrap| (wrap.wrapping_neg(), wrap)).unzip()
        } else {
            let top = |r: &u128| u128::from(self.sign.top(*r as u64)) << self.sign.truncated().bits();
            masks.iter().map(|r| (0, top(r).wrapping_neg())).unzip()
        };
        for differences in [wrapped, below].map(Zeroizing::new) {
            let secrets = differences.iter().enumerate().map(|(i, difference)| shifted(i).wrapping_add(*difference));
            dealer.secrets(&Zeroizing::new(secrets.collect::<Vec<_>>()))?;
        }
        Ok(())
    }

    fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error> {
        assert_eq!(x.ring(), self.sign.input(), "the ring of the input");
        let x = x.plus(self.offset);
        let (first, added) = if self.exact {
            let compared = party.compare(self.bits(), x.opened())?;
            let flips = party.flips(x.len())?;
            (party.open_bits(&compared.xor(&flips))?, 1 << self.bits())
        } else {
            (Bits::from_lowest(x.opened().iter().map(|x| u64::from(self.sign.top(*x)))), 0)
        };
        let secrets = [party.secrets(x.len())?, party.secrets(x.len())?];
        let offset = u128::from(self.offset >> self.sign.dropped());
        Ok(affine(party.key(), [&secrets[0], &secrets[1]], |i, unit, [with, without]| {
            let high = u128::from(self.sign.shift(x.opened()[i])).wrapping_sub(offset);
            match first.get(i) {
                true => unit.wrapping_mul(high).wrapping_sub(with),
                false => unit.wrapping_mul(high.wrapping_add(added)).wrapping_sub(without),
            }
        }))
    }
}
