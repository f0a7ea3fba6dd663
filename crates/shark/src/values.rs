//! Authenticated values: shares of `x'` and of `Delta x'` modulo 2^128.
//!
//! A value `x` of Z_2^n, `n <= 64`, is `x'` modulo 2^n; the bits above mean nothing, but they are authenticated all the same.
//! Every function that is linear with public coefficients is local, and the same on both kinds of shares: the public
//! constant 1 is shared as (0, `Delta_C`) and (1, `Delta_S`).

use std::ops::Range;

use privet_fss::Source;
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::Key;

/// Elements that a thread takes at once.
const JOB: usize = 8192;

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

    /// The next values that were stored: `count` shares, then as many shares of codes, little-endian.
    ///
    /// # Errors
    /// What `stored` fails with.
    pub fn pull(stored: &mut dyn Source, count: usize) -> Result<Self, privet_fss::Error> {
        let mut values = Self::zeros(count);
        values.parts.iter_mut().try_for_each(|part| pull_shares(stored, part))?;
        Ok(values)
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

    /// `count` times zero.
    pub(crate) fn zeros(count: usize) -> Self {
        Self { parts: [vec![0; count], vec![0; count]] }
    }

    /// Both kinds of shares of a range.
    pub(crate) fn view(&self, range: Range<usize>) -> View<'_> {
        self.parts.each_ref().map(|part| &part[range.clone()])
    }

    /// Both kinds of shares of a range, to be changed.
    pub(crate) fn view_mut(&mut self, range: Range<usize>) -> [&mut [u128]; 2] {
        self.parts.each_mut().map(|part| &mut part[range.clone()])
    }

    /// Adds `other` in place.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_assign(&mut self, other: &Self) {
        assert_eq!(self.len(), other.len(), "vectors of one length");
        self.parts.iter_mut().zip(&other.parts).for_each(|(part, other)| add_all(part, other));
    }

    /// Adds `other` again and again, each of its values to `run` that follow one another.
    ///
    /// # Panics
    /// If `other` or `run` is nothing.
    pub fn add_runs(&mut self, other: &Self, run: usize) {
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            for (run, value) in part.chunks_mut(run).zip(other.iter().cycle()) {
                run.iter_mut().for_each(|x| *x = x.wrapping_add(*value));
            }
        }
    }

    /// Appends `other`.
    pub fn extend(&mut self, other: &Self) {
        self.parts.iter_mut().zip(&other.parts).for_each(|(part, other)| part.extend_from_slice(other));
    }
}

/// Fills `out` with the next shares of a body.
pub(crate) fn pull_shares(body: &mut dyn Source, out: &mut [u128]) -> Result<(), privet_fss::Error> {
    body.pull_into(bytemuck::must_cast_slice_mut(out))?;
    out.iter_mut().for_each(|share| *share = u128::from_le(*share));
    Ok(())
}

/// Adds `terms` to `sums`.
pub(crate) fn add_all(sums: &mut [u128], terms: &[u128]) {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum = sum.wrapping_add(*term));
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
    let mut out = Values::zeros(inputs[0].len());
    let len = out.len();
    combine_into(units, inputs.map(|input| input.view(0..input.len())), out.view_mut(0..len), f);
    out
}

/// A range of a party's half: shares of values, and shares of codes.
pub(crate) type View<'a> = [&'a [u128]; 2];

/// As [`affine`], of ranges, into a range. Few elements take no other thread: waking one takes longer.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn combine_into<const K: usize>(
    units: [u128; 2],
    inputs: [View<'_>; K],
    [shares, codes]: [&mut [u128]; 2],
    f: impl Fn(usize, u128, [u128; K]) -> u128 + Sync,
) {
    let count = shares.len();
    assert!(inputs.iter().flatten().all(|input| input.len() == count), "vectors of one length");
    let part = |kind: usize, first: usize, out: &mut [u128]| {
        let columns = inputs.map(|input| &input[kind][first..][..out.len()]);
        for (i, out) in out.iter_mut().enumerate() {
            let mut row = [0; K];
            for (x, column) in row.iter_mut().zip(&columns) {
                *x = column[i];
            }
            *out = f(first + i, units[kind], row);
        }
    };
    if count < 2 * JOB {
        part(0, 0, shares);
        part(1, 0, codes);
        return;
    }
    let jobs = shares.par_chunks_mut(JOB).zip(codes.par_chunks_mut(JOB)).enumerate();
    jobs.for_each(|(job, (shares, codes))| {
        part(0, job * JOB, shares);
        part(1, job * JOB, codes);
    });
}
