//! The sign of a masked value, after a truncation or not, as a public bit and an authenticated one.
//!
//! With `x^ = x + r` in Z_2^n public, `y^ = x^ >> f` and `s = r >> f` are `y + s` in the ring of `n - f` bits, where `y` is
//! `floor(x / 2^f)` or one more (if the low bits of `x` and `r` carry). With the top bits `t^`, `t` of `y^`, `s` and `e` the
//! comparison `[low(s) <= low(y^)]` over the bits below, `d = [y >= 0] = t^ ^ t ^ e`. The parties open `o = e ^ u`; then
//! `d = d^ ^ v` with `d^ = t^ ^ o` public and `v = t ^ u` a bit that the dealer shares.

use privet_fss::KeyBytes;
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::bits::all;
use crate::dealer::{Dealer, FLIP_BYTES, SECRET_BYTES};
use crate::values::affine;
use crate::{Error, Key, Masked, Party, Values, compare};

/// `y >= 0` for signed `x` of Z_2^n, where `y` is `x / 2^f` rounded down, or up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    ring: Modulus,
    dropped: u32,
    truncated: Modulus,
}

/// A bit `d = d^ ^ v` for each element: `d^` public, `v` authenticated.
#[derive(Clone)]
pub struct Choice {
    /// `d^`.
    pub public: Bits,
    /// `v`, exactly 0 or 1.
    pub hidden: Values,
}

impl Choice {
    /// `d`, exactly 0 or 1: `d^ + (1 - 2 d^) v`.
    pub fn values(&self, key: &Key) -> Values {
        affine(key, [&self.hidden], |i, unit, [v]| v ^ (v ^ unit.wrapping_sub(v)) & all(&self.public, i))
    }
}

impl Sign {
    /// Of values of `bits` bits, the low `dropped` of which are dropped first.
    ///
    /// # Panics
    /// Unless `dropped < bits <= 64`.
    pub fn new(bits: u32, dropped: u32) -> Self {
        assert!(dropped < bits, "a truncation leaves some bits");
        Self { ring: Modulus::new(bits), dropped, truncated: Modulus::new(bits - dropped) }
    }

    /// The ring of `x`.
    pub fn input(&self) -> Modulus {
        self.ring
    }

    /// Low bits that are dropped.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// The ring of `y`.
    pub fn truncated(&self) -> Modulus {
        self.truncated
    }

    /// `y^` or `s`.
    pub(crate) fn shift(&self, x: u64) -> u64 {
        self.ring.reduce(x) >> self.dropped
    }

    /// What of `y^` and `s` is compared.
    fn point(&self, x: u64) -> u64 {
        self.shift(x) & (self.truncated().mask() >> 1)
    }

    /// Whether the top bit of `y^` or `s` is set.
    pub(crate) fn top(&self, x: u64) -> bool {
        self.truncated().sign(self.shift(x)) == 1
    }

    /// Bytes of the key of `count` elements.
    pub fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = compare::batch_bytes(self.truncated().bits() - 1, count);
        KeyBytes { words, corrections: count * (FLIP_BYTES + SECRET_BYTES) }
    }

    /// Bytes of each message that either party sends.
    pub fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![count.div_ceil(8)]
    }

    /// Deals for values behind `masks`. Returns the bits `v`.
    pub fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<Bits, Error> {
        let points = Zeroizing::new(masks.iter().map(|r| self.point(*r as u64)).collect::<Vec<_>>());
        dealer.comparisons(self.truncated().bits() - 1, &points)?;
        let mut hidden = dealer.flips(masks.len())?;
        hidden.xor_assign(&Bits::from_lowest(masks.iter().map(|r| u64::from(self.top(*r as u64)))));
        let values = Zeroizing::new(hidden.iter().map(u128::from).collect::<Vec<_>>());
        dealer.secrets(&values)?;
        Ok(hidden)
    }

    /// The bits `y >= 0`. One round.
    ///
    /// # Panics
    /// If `x` is of another ring.
    pub fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Choice, Error> {
        assert_eq!(x.ring(), self.ring, "the ring of the input");
        let points: Vec<u64> = x.opened().iter().map(|x| self.point(*x)).collect();
        let compared = party.compare(self.truncated().bits() - 1, &points)?;
        let flips = party.flips(x.len())?;
        let mut public = party.open_bits(&compared.xor(&flips))?;
        public.xor_assign(&Bits::from_lowest(x.opened().iter().map(|x| u64::from(self.top(*x)))));
        Ok(Choice { public, hidden: party.secrets(x.len())? })
    }
}
