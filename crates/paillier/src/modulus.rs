//! Arithmetic modulo up to eight odd numbers, a number in each lane (Montgomery, 1985).
//!
//! There is no final subtraction. Moduli leave at least eight bits of the radix free, so a product of any two numbers
//! below `8 n` is below `2 n` again, and time does not depend on values.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::arch::{BLOCK, LANES, LIMB_BITS, MOST_LIMBS, Row, kernels};
use crate::integer::{Integer, nonzero, to_limbs};
use crate::lanes::Lanes;

/// Bits of the radix that a modulus leaves free.
const FREE_BITS: usize = 8;

/// Limbs for a modulus of `bits`.
pub(crate) const fn limbs_for(bits: usize) -> usize {
    (bits + FREE_BITS).div_ceil(LIMB_BITS).next_multiple_of(BLOCK)
}

/// An odd modulus for each lane; wiped on drop. `R` is `2^(52 limbs)`.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Modulus {
    rows: Vec<Row>,
    /// `-1 / n` modulo 2^52.
    inverse: Row,
    /// `R^2 mod n`.
    square: Lanes,
    /// `R mod n`.
    one: Lanes,
}

impl Modulus {
    /// The same modulus in every lane.
    pub(crate) fn uniform(modulus: &Integer, limbs: usize) -> Self {
        let (rows, square) = (to_limbs(modulus.as_words(), limbs), radix_square(modulus, limbs));
        Self::from_lanes(Lanes::broadcast(&rows), Lanes::broadcast(&square))
    }

    /// A modulus for each lane; lanes without one repeat the last.
    pub(crate) fn each(moduli: &[Integer], limbs: usize) -> Self {
        let rows: Vec<_> = moduli.iter().map(|modulus| Zeroizing::new(to_limbs(modulus.as_words(), limbs))).collect();
        let squares: Vec<_> = moduli.iter().map(|modulus| Zeroizing::new(radix_square(modulus, limbs))).collect();
        let at = |lane: usize| lane.min(moduli.len() - 1);
        Self::from_lanes(Lanes::gather(limbs, |l| &rows[at(l)]), Lanes::gather(limbs, |l| &squares[at(l)]))
    }

    fn from_lanes(modulus: Lanes, square: Lanes) -> Self {
        let one = Lanes::zero(modulus.0.len());
        let inverse = Row(modulus.0[0].0.map(negative_inverse));
        let mut whole = Self { rows: modulus.0.clone(), inverse, square: square.clone(), one };
        let mut one = square;
        whole.leave(&mut one);
        whole.one = one;
        whole
    }

    /// Limbs of a number.
    pub(crate) fn limbs(&self) -> usize {
        self.rows.len()
    }

    /// One, in Montgomery's form.
    pub(crate) fn one(&self) -> &Lanes {
        &self.one
    }

    /// `x = x y / R`, that is the product of numbers in Montgomery's form.
    pub(crate) fn multiply(&self, x: &mut Lanes, y: &Lanes) {
        self.multiply_rows(&mut x.0, &y.0);
    }

    /// `x = x y / R`.
    pub(crate) fn multiply_rows(&self, x: &mut [Row], y: &[Row]) {
        let mut copy = [Row::ZERO; MOST_LIMBS];
        let copy = &mut copy[..x.len()];
        copy.copy_from_slice(x);
        (kernels().multiply)(x, copy, y, &self.rows, &self.inverse);
    }

    /// `x = x^2 / R`.
    pub(crate) fn square(&self, x: &mut Lanes) {
        let mut copy = [Row::ZERO; MOST_LIMBS];
        let copy = &mut copy[..x.0.len()];
        copy.copy_from_slice(&x.0);
        (kernels().multiply)(&mut x.0, copy, copy, &self.rows, &self.inverse);
    }

    /// Takes numbers below `R` into Montgomery's form.
    pub(crate) fn enter(&self, x: &mut Lanes) {
        self.multiply(x, &self.square);
    }

    /// Takes numbers out of Montgomery's form. They end up below the modulus, but for a zero, which may become the
    /// modulus.
    pub(crate) fn leave(&self, x: &mut Lanes) {
        let mut one = Lanes::zero(self.limbs());
        one.0[0] = Row([1; LANES]);
        self.multiply(x, &one);
    }

    /// The product of all lanes, in every lane, up to a power of `R`; all must have the same modulus.
    pub(crate) fn fold(&self, x: &mut Lanes) {
        for distance in [1, 2, 4] {
            let mut turned = x.clone();
            turned.0.iter_mut().for_each(|row| row.0.rotate_left(distance));
            self.multiply(x, &turned);
        }
    }

    /// `x = 2 x` in the lanes whose mask is 1, and not 0, as [`Modulus::add`].
    pub(crate) fn double_where(&self, x: &mut Lanes, ones: &[u64; LANES]) {
        let mut carry = [0; LANES];
        for x in &mut x.0 {
            for (lane, carry) in carry.iter_mut().enumerate() {
                let sum = (x.0[lane] << ones[lane]) + *carry;
                x.0[lane] = sum & ((1 << LIMB_BITS) - 1);
                *carry = sum >> LIMB_BITS;
            }
        }
    }

    /// `x = x + y`, of which three in a row may go into a product.
    pub(crate) fn add(&self, x: &mut Lanes, y: &Lanes) {
        let mut carry = [0; LANES];
        for (x, y) in x.0.iter_mut().zip(&y.0) {
            for (lane, carry) in carry.iter_mut().enumerate() {
                let sum = x.0[lane] + y.0[lane] + *carry;
                x.0[lane] = sum & ((1 << LIMB_BITS) - 1);
                *carry = sum >> LIMB_BITS;
            }
        }
    }
}

/// `R^2 mod n`.
fn radix_square(modulus: &Integer, limbs: usize) -> Vec<u64> {
    let bits = 2 * LIMB_BITS * limbs;
    let words = bits / 64 + 1;
    let radix = Integer::from_words((0..words).map(|i| if i == bits / 64 { 1 << (bits % 64) } else { 0 }));
    to_limbs(radix.rem(&nonzero(modulus)).as_words(), limbs)
}

/// `-1 / n` modulo 2^52 by Newton's iteration.
fn negative_inverse(lowest: u64) -> u64 {
    let inverse = (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(lowest))));
    inverse.wrapping_neg() & ((1 << LIMB_BITS) - 1)
}
