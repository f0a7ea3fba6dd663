//! Polynomials modulo `X^N + 1` and some primes, as residues modulo each.

use privet_prg::Prg;
use zeroize::{Zeroize, Zeroizing};

use crate::error::{Error, PeerMisbehaved};
use crate::ntt::Ntt;
use crate::sample;
use crate::wire::{pack, packed_bytes, unpack};

/// Residues modulo each of `L` primes, `[L][N]`.
#[derive(Clone, Debug)]
pub(super) struct Polynomial<const L: usize>(pub(super) [Vec<u64>; L]);

impl<const L: usize> Polynomial<L> {
    pub(super) fn zero(degree: usize) -> Self {
        Self(std::array::from_fn(|_| vec![0; degree]))
    }

    pub(super) fn from_signed(ntts: &[Ntt; L], coefficients: &[i32]) -> Self {
        Self(ntts.each_ref().map(|ntt| ntt.prime().reduce_signed(coefficients).collect()))
    }

    /// Adds fresh errors to the coefficients.
    pub(super) fn add_errors(&mut self, ntts: &[Ntt; L], prg: &mut Prg) {
        let errors = sample::errors(self.0[0].len(), prg);
        let errors = Zeroizing::new(Self::from_signed(ntts, &errors));
        self.add(ntts, &errors);
    }

    pub(super) fn add(&mut self, ntts: &[Ntt; L], other: &Self) {
        for ((sum, other), ntt) in self.0.iter_mut().zip(&other.0).zip(ntts) {
            sum.iter_mut().zip(other).for_each(|(sum, &x)| *sum = ntt.prime().add(*sum, x));
        }
    }

    pub(super) fn forward(mut self, ntts: &[Ntt; L]) -> Self {
        self.0.iter_mut().zip(ntts).for_each(|(residues, ntt)| ntt.forward(residues));
        self
    }

    pub(super) fn inverse(mut self, ntts: &[Ntt; L]) -> Self {
        self.0.iter_mut().zip(ntts).for_each(|(residues, ntt)| ntt.inverse(residues));
        self
    }

    /// Adds products of transformed polynomials to this one.
    pub(super) fn multiply_add(&mut self, ntts: &[Ntt; L], terms: &[(&Self, &Self)]) {
        for (i, (sum, ntt)) in self.0.iter_mut().zip(ntts).enumerate() {
            let terms: Vec<(&[u64], &[u64])> = terms.iter().map(|(a, b)| (&a.0[i][..], &b.0[i][..])).collect();
            ntt.multiply_add(sum, &terms);
        }
    }

    /// The values at `sources`, in their order.
    pub(super) fn permuted(&self, sources: &[u32]) -> Self {
        Self(self.0.each_ref().map(|values| sources.iter().map(|&source| values[source as usize]).collect()))
    }

    pub(super) fn write(&self, bits: u32, out: &mut Vec<u8>) {
        self.0.iter().for_each(|residues| pack(residues.iter().copied(), bits, out));
    }

    /// Reads what [`Polynomial::write`] wrote, refusing residues that are not reduced.
    pub(super) fn read(ntts: &[Ntt; L], degree: usize, what: &'static str, bytes: &[u8]) -> Result<Self, Error> {
        let bits = ntts[0].prime().bits();
        let each = packed_bytes(degree, bits);
        if bytes.len() != L * each {
            return Err(PeerMisbehaved::WrongLength { what, expected: L * each, actual: bytes.len() }.into());
        }
        let mut polynomial = Self(std::array::from_fn(|_| Vec::new()));
        for ((residues, ntt), bytes) in polynomial.0.iter_mut().zip(ntts).zip(bytes.chunks(each)) {
            *residues = unpack(what, bytes, degree, bits)?;
            let prime = ntt.prime().value();
            if let Some(index) = residues.iter().position(|&x| x >= prime) {
                return Err(PeerMisbehaved::NotReduced { what, index, prime }.into());
            }
        }
        Ok(polynomial)
    }
}

impl<const L: usize> Zeroize for Polynomial<L> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
