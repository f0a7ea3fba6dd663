//! Authenticated values: shares of `x'` and of `Delta x'` modulo 2^128.
//!
//! A value `x` of Z_2^n, `n <= 64`, is `x'` modulo 2^n; the bits above mean nothing, but they are authenticated all the same.
//! Every function that is linear with public coefficients is local, and the same on both kinds of shares: the public
//! constant 1 is shared as (0, `Delta_C`) and (1, `Delta_S`).

use std::ops::Range;

use rayon::prelude::*;
use zeroize::Zeroize;

use crate::Key;

/// Elements that a thread takes at once.
const JOB: usize = 4096;

/// One party's half of a vector of authenticated values; wiped on drop.
#[derive(Clone, Default)]
pub struct Values {
    /// Shares of the values, and shares of their codes.
    pub(crate) parts: [Vec<u128>; 2],
}

impl Values {
    /// From shares of values and shares of codes, `[n]` each.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn from_parts(shares: Vec<u128>, codes: Vec<u128>) -> Self {
        assert_eq!(shares.len(), codes.len(), "a code for each value");
        Self { parts: [shares, codes] }
    }

    /// This party's shares of the values.
    pub fn shares(&self) -> &[u128] {
        &self.parts[0]
    }

    /// This party's shares of the codes.
    pub fn codes(&self) -> &[u128] {
        &self.parts[1]
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.parts[0].len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Public values.
    pub fn public(key: &Key, values: &[u64]) -> Self {
        Self { parts: key.units().map(|unit| values.iter().map(|x| unit.wrapping_mul((*x).into())).collect()) }
    }

    /// `x + y`.
    pub fn add(&self, other: &Self) -> Self {
        linear([self, other], |_, [x, y]| x.wrapping_add(y))
    }

    /// `x - y`.
    pub fn sub(&self, other: &Self) -> Self {
        linear([self, other], |_, [x, y]| x.wrapping_sub(y))
    }

    /// `-x`.
    pub fn negate(&self) -> Self {
        linear([self], |_, [x]| x.wrapping_neg())
    }

    /// `factor x`; a shift to the left is a factor `1 << f`.
    pub fn scale(&self, factor: u128) -> Self {
        linear([self], |_, [x]| x.wrapping_mul(factor))
    }

    /// `factors[i] x[i]`.
    pub fn weigh(&self, factors: &[u64]) -> Self {
        linear([self], |i, [x]| x.wrapping_mul(factors[i].into()))
    }

    /// `x + constants`.
    pub fn plus(&self, key: &Key, constants: &[u64]) -> Self {
        affine(key, [self], |i, unit, [x]| x.wrapping_add(unit.wrapping_mul(constants[i].into())))
    }

    /// The values at `indices`.
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn gather(&self, indices: &[usize]) -> Self {
        Self { parts: self.parts.each_ref().map(|part| indices.iter().map(|&i| part[i]).collect()) }
    }

    /// The values of a range.
    ///
    /// # Panics
    /// If it is out of range.
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self { parts: self.parts.each_ref().map(|part| part[range.clone()].to_vec()) }
    }

    /// The sum over each group of indices.
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn sums(&self, groups: &[Vec<usize>]) -> Self {
        let sum = |part: &[u128], group: &[usize]| group.iter().fold(0u128, |sum, &i| sum.wrapping_add(part[i]));
        Self { parts: self.parts.each_ref().map(|part| groups.iter().map(|group| sum(part, group)).collect()) }
    }

    /// None yet, with room for `count`.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { parts: [Vec::with_capacity(count), Vec::with_capacity(count)] }
    }

    /// Appends `other`.
    pub fn extend(&mut self, other: &Self) {
        self.parts.iter_mut().zip(&other.parts).for_each(|(part, other)| part.extend_from_slice(other));
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        self.parts.zeroize();
    }
}

/// An elementwise function of vectors of values; `f` gets the index and one kind of shares, and is linear in them.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn linear<const K: usize>(inputs: [&Values; K], f: impl Fn(usize, [u128; K]) -> u128 + Sync) -> Values {
    combine([0, 0], inputs, |i, _, x| f(i, x))
}

/// As [`linear`], where `f` also gets this party's share of the constant 1.
pub(crate) fn affine<const K: usize>(
    key: &Key,
    inputs: [&Values; K],
    f: impl Fn(usize, u128, [u128; K]) -> u128 + Sync,
) -> Values {
    combine(key.units(), inputs, f)
}

fn combine<const K: usize>(
    units: [u128; 2],
    inputs: [&Values; K],
    f: impl Fn(usize, u128, [u128; K]) -> u128 + Sync,
) -> Values {
    let count = inputs[0].len();
    assert!(inputs.iter().all(|input| input.len() == count), "vectors of one length");
    let part = |kind: usize| {
        let mut out = vec![0; count];
        out.par_chunks_mut(JOB).enumerate().for_each(|(job, out)| {
            let (first, unit) = (job * JOB, units[kind]);
            let columns = inputs.map(|input| &input.parts[kind][first..][..out.len()]);
            for (i, out) in out.iter_mut().enumerate() {
                let mut row = [0; K];
                for (x, column) in row.iter_mut().zip(&columns) {
                    *x = column[i];
                }
                *out = f(first + i, unit, row);
            }
        });
        out
    };
    Values { parts: [part(0), part(1)] }
}
