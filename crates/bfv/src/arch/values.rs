//! Numbers that begin with a cache line: a vector of eight is in one line, where vectors at other places take two to read.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

use privet_prg::wipe;
use pulp::bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use zeroize::Zeroize;

/// Numbers in a line.
const LINE: usize = 8;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u64; LINE]);

// SAFETY: numbers may have any bits, and zero is one.
unsafe impl Zeroable for Line {}

// SAFETY: it is as long as its numbers, so no bytes lie between or after them.
unsafe impl Pod for Line {}

/// Values of a polynomial modulo a prime: a multiple of eight.
#[derive(Clone, Debug, Default)]
pub struct Values(Vec<Line>);

impl Values {
    /// Zeros.
    ///
    /// # Panics
    /// Unless `len` is a multiple of eight.
    pub(crate) fn zero(len: usize) -> Self {
        let mut values = Self::default();
        values.resize(len);
        values
    }

    /// None yet, with room for so many.
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self(Vec::with_capacity(len.div_ceil(LINE)))
    }

    /// Appends those of whole lines.
    pub(crate) fn extend_from(&mut self, lines: &Self) {
        self.0.extend_from_slice(&lines.0);
    }

    /// Makes it so long: with zeros, or what was there.
    pub(crate) fn resize(&mut self, len: usize) {
        assert!(len.is_multiple_of(LINE), "whole lines");
        self.0.resize(len / LINE, Line([0; LINE]));
    }
}

impl Deref for Values {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        cast_slice(&self.0)
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [u64] {
        cast_slice_mut(&mut self.0)
    }
}

impl FromIterator<u64> for Values {
    /// Zeros fill the last line up.
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut values = values.into_iter();
        let mut lines = Vec::with_capacity(values.size_hint().0.div_ceil(LINE));
        while let Some(first) = values.next() {
            let mut line = [first; LINE];
            line[1..].iter_mut().for_each(|x| *x = values.next().unwrap_or(0));
            lines.push(Line(line));
        }
        Self(lines)
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = &'a u64;
    type IntoIter = std::slice::Iter<'a, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Zeroize for Values {
    fn zeroize(&mut self) {
        wipe(self);
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
