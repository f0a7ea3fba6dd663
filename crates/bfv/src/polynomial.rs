//! Polynomials modulo `X^N + 1` and `q = p0 p1`, as residues modulo the two primes.

use zeroize::Zeroize;

use crate::error::{Error, PeerMisbehaved};
use crate::parameters::Parameters;
use crate::wire::{pack, packed_bytes, unpack};

/// Residues modulo each prime, `[2][N]`: coefficients or transformed values, as the context says.
#[derive(Clone, Debug)]
pub(crate) struct Polynomial(pub(crate) [Vec<u64>; 2]);

impl Polynomial {
    pub(crate) fn zero(parameters: &Parameters) -> Self {
        Self([vec![0; parameters.degree()], vec![0; parameters.degree()]])
    }

    /// The coefficients of a signed polynomial of at most `N` terms.
    pub(crate) fn from_signed(parameters: &Parameters, coefficients: &[i32]) -> Self {
        Self(parameters.ntts().each_ref().map(|ntt| {
            let mut residues: Vec<u64> = ntt.prime().reduce_signed(coefficients).collect();
            residues.resize(parameters.degree(), 0);
            residues
        }))
    }

    /// Adds small signed numbers to the coefficients.
    pub(crate) fn add_signed(&mut self, parameters: &Parameters, numbers: &[i32]) {
        for (residues, ntt) in self.0.iter_mut().zip(parameters.ntts()) {
            let prime = ntt.prime();
            for (residue, number) in residues.iter_mut().zip(prime.reduce_signed(numbers)) {
                *residue = prime.add(*residue, number);
            }
        }
    }

    pub(crate) fn forward(mut self, parameters: &Parameters) -> Self {
        self.0.iter_mut().zip(parameters.ntts()).for_each(|(residues, ntt)| ntt.forward(residues));
        self
    }

    pub(crate) fn inverse(mut self, parameters: &Parameters) -> Self {
        self.0.iter_mut().zip(parameters.ntts()).for_each(|(residues, ntt)| ntt.inverse(residues));
        self
    }

    /// Adds the product of two transformed polynomials to this one.
    pub(crate) fn multiply_add(&mut self, parameters: &Parameters, a: &Self, b: &Self) {
        for (((sum, a), b), ntt) in self.0.iter_mut().zip(&a.0).zip(&b.0).zip(parameters.ntts()) {
            ntt.multiply_add(sum, &[(a, b)]);
        }
    }

    pub(crate) fn write(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        for (residues, bits) in self.0.iter().zip(parameters.prime_bits()) {
            pack(residues.iter().copied(), bits, out);
        }
    }

    /// Reads what [`Polynomial::write`] wrote, refusing residues that are not reduced.
    pub(crate) fn read(parameters: &Parameters, what: &'static str, bytes: &[u8]) -> Result<Self, Error> {
        let degree = parameters.degree();
        let lengths = parameters.prime_bits().map(|bits| packed_bytes(degree, bits));
        let expected = lengths.iter().sum();
        if bytes.len() != expected {
            return Err(PeerMisbehaved::WrongLength { what, expected, actual: bytes.len() }.into());
        }
        let (first, second) = bytes.split_at(lengths[0]);
        let read = |bytes, ntt: &crate::ntt::Ntt| {
            let prime = ntt.prime();
            let residues = unpack(what, bytes, degree, prime.bits())?;
            match residues.iter().position(|&x| x >= prime.value()) {
                Some(index) => Err(Error::from(PeerMisbehaved::NotReduced { what, index, prime: prime.value() })),
                None => Ok(residues),
            }
        };
        let [p0, p1] = parameters.ntts();
        Ok(Self([read(first, p0)?, read(second, p1)?]))
    }
}

impl Zeroize for Polynomial {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
