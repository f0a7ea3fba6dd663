//! Each ciphertext times a weight of its own: one power at a time.

use rayon::prelude::*;

use crate::arch::{LANES, Row, kernels};
use crate::ciphertext::Ciphertexts;
use crate::error::{Error, Misuse};
use crate::lanes::{Lanes, Residues, load, store};
use crate::linear::batch;
use crate::linear::weights::Weights;
use crate::modulus::Modulus;

/// Bits of a window: 4 entries make the fewest products for weights of about 20 bits.
const WINDOW_BITS: usize = 2;

impl Ciphertexts {
    /// Each ciphertext times the weight at its place: `weights` has one row, as long as this vector. What PP-Stream
    /// does for every weight of a layer; [`Ciphertexts::dot`] is several times quicker where products are added up.
    ///
    /// Not fresh ciphertexts: [`Ciphertexts::randomize`] before they leave.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if the weights are not one row as long as this.
    pub fn scale(&self, weights: &Weights) -> Result<Self, Error> {
        if weights.outputs() != 1 || weights.inputs() != self.len() {
            let actual = weights.outputs() * weights.inputs();
            return Err(Misuse::WrongLength { what: "weights", expected: self.len(), actual }.into());
        }
        let modulus = self.key().modulus();
        let limbs = modulus.limbs();
        let inverses = batch::invert(self.key(), self.residues())?;
        let mut powers = Residues::zero(limbs, self.len());
        let row: Vec<&[i32]> = weights.row(0).chunks(LANES).collect();
        let vectors = powers.eights_mut().zip(self.residues().eights()).zip(inverses.eights()).zip(row);
        vectors.par_bridge().for_each(|(((powers, numbers), inverses), row)| {
            let row: [i32; LANES] = std::array::from_fn(|lane| row.get(lane).copied().unwrap_or(0));
            // By the sign, the number or its inverse.
            let both = [load(limbs, numbers).0.clone(), load(limbs, inverses).0.clone()].concat();
            let mut base = Lanes::zero(limbs);
            (kernels().select)(&mut base.0, &both, &Row(row.map(|weight| u64::from(weight as u32 >> 31))));
            store(&power(modulus, &base, &row.map(i32::unsigned_abs), weights.bits()), powers);
        });
        Ok(Self::new(self.key(), powers))
    }
}

/// The power of each lane to an exponent of its own, of at most `bits` bits.
fn power(modulus: &Modulus, base: &Lanes, exponents: &[u32; LANES], bits: usize) -> Lanes {
    let mut table = modulus.one().0.clone();
    let mut entry = base.clone();
    for _ in 1..1 << WINDOW_BITS {
        table.extend_from_slice(&entry.0);
        modulus.multiply(&mut entry, base);
    }
    let mut factor = Lanes::zero(modulus.limbs());
    let mut power = modulus.one().clone();
    for window in (0..bits.div_ceil(WINDOW_BITS)).rev() {
        let digit = |exponent: u32| u64::from(exponent >> (window * WINDOW_BITS)) & ((1 << WINDOW_BITS) - 1);
        (0..WINDOW_BITS).for_each(|_| modulus.square(&mut power));
        (kernels().select)(&mut factor.0, &table, &Row(exponents.map(digit)));
        modulus.multiply(&mut power, &factor);
    }
    power
}
