//! What makes ciphertexts random: `n`-th residues modulo `n^2`.

use std::sync::atomic::{AtomicU64, Ordering};

use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::arch::LANES;
use crate::error::{Error, Misuse, PeerMisbehaved};
use crate::integer::{random_below, to_limbs};
use crate::keys::PublicKey;
use crate::lanes::{Lanes, Residues, store};
use crate::power::{FixedBases, WINDOW_BITS, power_uniform, random_digits};

/// Windows of each base in a [`NoiseTable`]: exponents have 5 bits. Fewer bits take more bases, and so hide under keys with
/// more prime factors; the products of a draw are as many.
const POSITIONS: usize = 1;

/// Bits of randomness in a noise beyond those of the key, twice the logarithm of the distance from uniform that they
/// leave.
const EXTRA_BITS: usize = 256;

/// Random `n`-th residues, each to be used once: whoever knows two ciphertexts with the same noise knows the difference
/// of their plaintexts. So it cannot be cloned, and whatever uses it takes it away.
pub struct Noise {
    key: PublicKey,
    residues: Residues,
}

impl Noise {
    pub(crate) fn new(key: &PublicKey, residues: Residues) -> Self {
        Self { key: key.clone(), residues }
    }

    /// `r^n` for fresh `r`, uniform below `n`: one power of the key's length each. It hides perfectly, because every unit
    /// modulo `n` is an `n`-th power, as the key's proof says. [`NoiseTable`] and the private key's owner are quicker.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system gives no entropy.
    pub fn powers(key: &PublicKey, count: usize) -> Result<Self, Error> {
        let powers = powers(key, count, &mut Prg::from_os()?);
        let mut residues = Residues::zero(key.modulus().limbs(), count);
        residues.eights_mut().zip(&powers).for_each(|(numbers, powers)| store(powers, numbers));
        Ok(Self::new(key, residues))
    }

    /// For how many ciphertexts.
    pub fn len(&self) -> usize {
        self.residues.len()
    }

    /// Whether for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Noise for `count` ciphertexts, taken from this.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if there is less.
    pub fn split_off(&mut self, count: usize) -> Result<Self, Error> {
        if count > self.len() {
            return Err(Misuse::WrongLength { what: "noise", expected: count, actual: self.len() }.into());
        }
        Ok(Self { key: self.key.clone(), residues: self.residues.split_off(count) })
    }

    pub(crate) fn key(&self) -> &PublicKey {
        &self.key
    }

    pub(crate) fn residues(&self) -> &Residues {
        &self.residues
    }
}

/// Noise at a fifth of the price of a power, for whoever has the public key alone: products of powers of about 461
/// random `n`-th residues `u_i = r_i^n` to fresh exponents of 5 bits, from tables of `u_i`'s powers.
///
/// The exponents together have 256 bits more than the key, and the map from exponents to products is as good as
/// universal, so by the leftover hash lemma the noise is within `2^-128` of uniform among the `n`-th residues, even for
/// one who knows the factors of `n`, for every key that [`PublicKey::from_bytes`] accepts. docs/reference/protocols/stream.md has the
/// proof, and why a short exponent (Damgard, Jurik and Nielsen, 2010) would not do here.
pub struct NoiseTable {
    key: PublicKey,
    bases: FixedBases,
    /// Draws that are left: what they tell together is stated for [`TABLE_DRAWS`].
    left: AtomicU64,
}

/// Draws from one table, which are together within [`TABLE_BITS`] less 36 bits of uniform. Further noise is made of powers.
pub const TABLE_DRAWS: u64 = 1 << 36;

/// A draw is within 2 to minus this of uniform.
pub const TABLE_BITS: f64 = 128.0;

impl NoiseTable {
    /// Tables for a key, made with about 461 powers. They take 9 MB for 2048 bits, 21 MB for 3072.
    ///
    /// # Errors
    /// [`PeerMisbehaved::Key`] if a random number shares a factor with the key, which then has a small one; [`Error::Io`] if
    /// the operating system gives no entropy.
    pub fn new(key: &PublicKey) -> Result<Self, Error> {
        Self::with_draws(key, TABLE_DRAWS)
    }

    pub(crate) fn with_draws(key: &PublicKey, draws: u64) -> Result<Self, Error> {
        let count = (key.size().bits() + EXTRA_BITS).div_ceil(POSITIONS * WINDOW_BITS);
        let powers = powers(key, count, &mut Prg::from_os()?);
        // The argument is about units, and whether a base was drawn would show in the factor that it shares.
        if !key.all_invertible(&powers) {
            return Err(PeerMisbehaved::Key { reason: "it shares a factor with a random number" }.into());
        }
        let bases = FixedBases::new(key.modulus(), &powers, count, POSITIONS);
        Ok(Self { key: key.clone(), bases, left: AtomicU64::new(draws) })
    }

    /// Draws that are left.
    #[cfg(test)]
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Noise for `count` ciphertexts, eight at a time on the threads of the pool. A table that has served makes it of powers.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system gives no entropy.
    pub fn draw(&self, count: usize) -> Result<Noise, Error> {
        let less = |left: u64| left.checked_sub(count as u64);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return Noise::powers(&self.key, count);
        }
        let modulus = self.key.modulus();
        let mut prg = Prg::from_os()?;
        let seeds: Vec<Seed> = (0..count.div_ceil(LANES)).map(|_| prg.seed()).collect();
        let mut residues = Residues::zero(modulus.limbs(), count);
        residues.eights_mut().zip(&seeds).par_bridge().for_each(|(numbers, seed)| {
            let digits = random_digits(self.bases.windows(), &mut Prg::from_seed(seed));
            store(&self.bases.product(modulus, &digits), numbers);
        });
        Ok(Noise::new(&self.key, residues))
    }
}

/// `r^n` for at least `count` random `r`, eight to a vector.
fn powers(key: &PublicKey, count: usize, prg: &mut Prg) -> Vec<Lanes> {
    let modulus = key.modulus();
    let limbs = modulus.limbs();
    let mut vectors: Vec<_> = (0..count.div_ceil(LANES))
        .map(|_| {
            let mut lanes = Lanes::zero(limbs);
            for lane in 0..LANES {
                let r = zeroize::Zeroizing::new(random_below(key.n(), prg));
                lanes.set(lane, &to_limbs(r.as_words(), limbs));
            }
            lanes
        })
        .collect();
    vectors.par_iter_mut().for_each(|lanes| {
        modulus.enter(lanes);
        *lanes = power_uniform(modulus, lanes, key.size().bits(), key.n().as_words());
    });
    vectors
}
