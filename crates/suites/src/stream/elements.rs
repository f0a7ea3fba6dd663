//! What a linear stage computes on: some elements of a tensor, hidden by either cipher.
//!
//! Operations ([`super::parts`]) are written once, in the steps below. Under Paillier an element is a
//! ciphertext ([`Encrypted`]); over BFV, where all that is encrypted went ahead, it is a masked number of the program's
//! ring ([`Masked`]).

use privet_paillier::{Ciphertexts, Weights, Windows};
use privet_ring::Modulus;

use super::packed::Samples;
use crate::Error;
use crate::ops::{InRing, Node};

/// Weights of a dot product: `[rows, inner]`, signed, of at most so many bits with the sign.
pub(super) struct Matrix {
    pub rows: usize,
    pub inner: usize,
    /// How many columns neighbouring windows read together: all of them, or the channels of a place of an image.
    pub run: usize,
    pub bits: usize,
    pub values: Vec<i64>,
}

impl Matrix {
    /// Weights that everybody knows, as wide as the largest.
    pub fn public(rows: usize, values: Vec<i64>) -> Self {
        let largest = values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        let bits = ((u64::BITS - largest.leading_zeros()) as usize + 1).max(2);
        let inner = values.len() / rows;
        Self { rows, inner, run: inner, bits, values }
    }

    fn weights(&self) -> Result<Weights, Error> {
        let narrow = self.values.iter().map(|&value| i32::try_from(value)).collect::<Result<_, _>>();
        let values = narrow.map_err(|_| Error::Misuse("a weight has more than 31 bits".into()))?;
        Ok(Weights::new(self.rows, self.inner, self.bits, values)?)
    }
}

/// Hidden elements in some order.
pub(super) trait Elements: Clone {
    /// How many.
    fn count(&self) -> usize;

    /// Those at `places`, which may repeat.
    fn pick(&self, places: &[usize]) -> Result<Self, Error>;

    /// These and then others.
    fn join(self, others: &Self) -> Result<Self, Error>;

    /// Element by element.
    fn plus(&self, other: &Self) -> Result<Self, Error>;

    /// Constants added, one to each.
    fn plus_constants(self, constants: &[i64]) -> Result<Self, Error>;

    /// Element `i` times value `i` of a matrix of one row.
    fn times(&self, factors: &Matrix) -> Result<Self, Error>;

    /// Products of each row with each window (places among these; none reads as zero): `[rows, windows]`.
    fn dot(&self, matrix: &Matrix, windows: Vec<Option<usize>>) -> Result<Self, Error>;

    /// A whole operation on whole tensors, where that is quicker.
    fn whole(_node: Node<'_>, _inputs: &[&Self], _weights: &privet_program::Weights) -> Option<Self> {
        None
    }
}

/// Ciphertexts under Paillier, each of one element of all samples.
#[derive(Clone)]
pub(super) struct Encrypted {
    pub ciphertexts: Ciphertexts,
    pub samples: Samples,
}

impl Encrypted {
    fn of(&self, ciphertexts: Ciphertexts) -> Self {
        Self { ciphertexts, samples: self.samples }
    }
}

impl Elements for Encrypted {
    fn count(&self) -> usize {
        self.ciphertexts.len()
    }

    fn pick(&self, places: &[usize]) -> Result<Self, Error> {
        Ok(self.of(self.ciphertexts.select(places)?))
    }

    fn join(mut self, others: &Self) -> Result<Self, Error> {
        self.ciphertexts.append(others.ciphertexts.clone())?;
        Ok(self)
    }

    fn plus(&self, other: &Self) -> Result<Self, Error> {
        let mut sum = self.clone();
        sum.ciphertexts.add(&other.ciphertexts)?;
        Ok(sum)
    }

    fn plus_constants(mut self, constants: &[i64]) -> Result<Self, Error> {
        let plaintexts = constants.iter().map(|&value| self.samples.constant(value)).collect::<Result<Vec<_>, _>>()?;
        self.ciphertexts.add_plain(&plaintexts)?;
        Ok(self)
    }

    fn times(&self, factors: &Matrix) -> Result<Self, Error> {
        Ok(self.of(self.ciphertexts.scale(&factors.weights()?)?))
    }

    fn dot(&self, matrix: &Matrix, windows: Vec<Option<usize>>) -> Result<Self, Error> {
        let windows = Windows::in_runs(matrix.inner, matrix.run, windows)?;
        Ok(self.of(self.ciphertexts.dot(&matrix.weights()?, &windows)?))
    }
}

/// Masked numbers, modulo the program's ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Masked {
    pub ring: Modulus,
    pub values: Vec<u64>,
}

impl Elements for Masked {
    fn count(&self) -> usize {
        self.values.len()
    }

    fn pick(&self, places: &[usize]) -> Result<Self, Error> {
        Ok(Self { ring: self.ring, values: places.iter().map(|&at| self.values[at]).collect() })
    }

    fn join(mut self, others: &Self) -> Result<Self, Error> {
        self.values.extend_from_slice(&others.values);
        Ok(self)
    }

    fn plus(&self, other: &Self) -> Result<Self, Error> {
        Ok(Self { ring: self.ring, values: self.ring.add(&self.values, &other.values) })
    }

    fn plus_constants(mut self, constants: &[i64]) -> Result<Self, Error> {
        for (value, &constant) in self.values.iter_mut().zip(constants) {
            *value = self.ring.reduce(value.wrapping_add(constant.cast_unsigned()));
        }
        Ok(self)
    }

    fn times(&self, factors: &Matrix) -> Result<Self, Error> {
        let product = |(&value, &factor): (&u64, &i64)| self.ring.reduce(value.wrapping_mul(factor.cast_unsigned()));
        Ok(Self { ring: self.ring, values: self.values.iter().zip(&factors.values).map(product).collect() })
    }

    fn dot(&self, matrix: &Matrix, windows: Vec<Option<usize>>) -> Result<Self, Error> {
        let read: Vec<u64> = windows.into_iter().map(|at| at.map_or(0, |at| self.values[at])).collect();
        let count = read.len() / matrix.inner;
        let mut values = Vec::with_capacity(matrix.rows * count);
        for row in matrix.values.chunks(matrix.inner) {
            for window in read.chunks(matrix.inner) {
                let products = window.iter().zip(row).map(|(&x, &weight)| x.wrapping_mul(weight.cast_unsigned()));
                values.push(self.ring.reduce(products.fold(0, u64::wrapping_add)));
            }
        }
        Ok(Self { ring: self.ring, values })
    }

    fn whole(node: Node<'_>, inputs: &[&Self], weights: &privet_program::Weights) -> Option<Self> {
        let ring = inputs[0].ring;
        let read: Vec<&[u64]> = inputs.iter().map(|input| input.values.as_slice()).collect();
        let mut values = match node.local() {
            Some(local) => InRing::run(ring, &*local, &read, Some(weights)),
            None => node.linear()?.affine(read[0], weights, ring),
        };
        ring.reduce_all(&mut values);
        Some(Self { ring, values })
    }
}
