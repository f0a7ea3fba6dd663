//! Rotations of sums: an automorphism, and a key switch back to the client's key.
//!
//! After `X -> X^g` the second part of a ciphertext belongs to `s(X^g)`. It is cut into its residues modulo `q`'s primes, each a
//! digit with small coefficients, and every digit meets the half of the key that was made for it, modulo `q P`. Dividing by
//! the special prime `P` divides the key's errors as well.

use std::collections::BTreeMap;

use crate::arch::Values;
use crate::automorphism::sources;
use crate::error::{Error, Misuse};
use crate::polynomial::{Multiplier, Polynomial};

use super::order::rotating;
use super::parameters::{LIMBS, Parameters, WITH_SPECIAL};
use super::product::Sum;

/// What can be done to the slots of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rotation {
    /// Both rows move left by this many slots, at least one and less than a row.
    Left(usize),
    /// The rows change places.
    Swap,
}

impl Rotation {
    /// `g` of the automorphism `X -> X^g`.
    pub(super) fn exponent(self, parameters: &Parameters) -> usize {
        match self {
            Self::Left(steps) => rotating(parameters.degree(), steps),
            Self::Swap => 2 * parameters.degree() - 1,
        }
    }
}

/// The rotations that a client gave keys for.
pub struct Rotations {
    parameters: Parameters,
    keys: BTreeMap<Rotation, Key>,
}

struct Key {
    /// For each transformed value, where it comes from.
    sources: Vec<u32>,
    /// `[B, A]` for each digit.
    digits: [[Multiplier<WITH_SPECIAL>; 2]; LIMBS],
}

impl Rotations {
    /// No rotation yet.
    pub fn new(parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone(), keys: BTreeMap::new() }
    }

    /// What they are for.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Reads the key of a rotation.
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] if it has the wrong length or a residue that is not reduced.
    pub fn add(&mut self, rotation: Rotation, bytes: &[u8]) -> Result<(), Error> {
        let parameters = &self.parameters;
        let (expected, actual) = (parameters.rotation_key_bytes(), bytes.len());
        if actual != expected {
            return Err(crate::PeerMisbehaved::WrongLength { what: "rotation key", expected, actual }.into());
        }
        let inner = parameters.inner();
        let mut parts = bytes.chunks(expected / LIMBS);
        let mut digits = Vec::with_capacity(LIMBS);
        for part in &mut parts {
            let parts = Polynomial::read_masked(&inner.ntts, parameters.degree(), "rotation key", part)?;
            digits.push(parts.map(|part| part.multiplier(&inner.ntts)));
        }
        let sources = sources(parameters.degree(), rotation.exponent(parameters));
        let digits = digits.try_into().unwrap_or_else(|_| unreachable!("a part for each digit"));
        self.keys.insert(rotation, Key { sources, digits });
        Ok(())
    }

    /// Rotates the slots of a sum.
    ///
    /// # Errors
    /// [`Misuse::NoRotation`] without its key, [`Misuse::ParametersDiffer`] for a sum of other parameters.
    pub fn rotate(&self, sum: Sum, rotation: Rotation) -> Result<Sum, Error> {
        let key = self.keys.get(&rotation).ok_or(Misuse::NoRotation)?;
        Misuse::check_parameters(self.parameters.agrees_with(&sum.parameters))?;
        let inner = self.parameters.inner();
        let mut c0 = sum.c0.permuted(&key.sources);
        let digits = self.digits(&sum.c1.permuted(&key.sources));
        let [b, a] = [0, 1].map(|part| {
            let mut switched = Polynomial::zero(self.parameters.degree());
            let terms: Vec<_> = digits.iter().zip(&key.digits).map(|(digit, key)| (digit, &key[part])).collect();
            switched.multiply_add(&inner.ntts, &terms);
            switched.divide(&inner.ntts, inner.limbs(), &inner.inverse_special)
        });
        c0.add(inner.limbs(), &b);
        Ok(Sum { parameters: self.parameters.clone(), c0, c1: a })
    }

    /// The digits of a transformed polynomial modulo `q`, each modulo all primes, transformed.
    fn digits(&self, polynomial: &Polynomial<LIMBS>) -> [Polynomial<WITH_SPECIAL>; LIMBS] {
        let inner = self.parameters.inner();
        std::array::from_fn(|i| {
            let prime = inner.ntts[i].prime();
            let scaled: Values = polynomial.0[i].iter().map(|&x| prime.scale(x, inner.inverse_rest[i])).collect();
            let mut digit = scaled.clone();
            inner.ntts[i].inverse(&mut digit);
            Polynomial(std::array::from_fn(|j| {
                if j == i {
                    return scaled.clone();
                }
                let ntt = &inner.ntts[j];
                // All primes have one width, so a digit is below twice any of them.
                let mut reduced: Values = digit.iter().map(|&x| ntt.prime().add(x, 0)).collect();
                ntt.forward(&mut reduced);
                reduced
            }))
        })
    }
}
