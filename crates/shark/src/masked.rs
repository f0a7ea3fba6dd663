//! Values that both parties know behind a mask that neither knows.

use std::ops::Range;

use privet_ring::Modulus;

use crate::{Key, Values};

/// `x^ = x + r` modulo 2^n, public, and this party's half of `r`.
#[derive(Clone)]
pub struct Masked {
    ring: Modulus,
    opened: Vec<u64>,
    mask: Values,
}

impl Masked {
    /// Reduces what was opened.
    pub(crate) fn new(ring: Modulus, opened: &[u128], mask: Values) -> Self {
        Self { ring, opened: opened.iter().map(|x| ring.reduce(*x as u64)).collect(), mask }
    }

    /// The ring of `x`.
    pub fn ring(&self) -> Modulus {
        self.ring
    }

    /// `x^`, `[n]`, reduced.
    pub fn opened(&self) -> &[u64] {
        &self.opened
    }

    /// `r`.
    pub fn mask(&self) -> &Values {
        &self.mask
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.opened.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.opened.is_empty()
    }

    /// `x` itself, valid in the ring: `x^ - r`.
    pub fn values(&self, key: &Key) -> Values {
        self.mask.negate().plus(key, &self.opened)
    }

    /// The values of a range.
    ///
    /// # Panics
    /// If it is out of range.
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self { ring: self.ring, opened: self.opened[range.clone()].to_vec(), mask: self.mask.slice(range) }
    }

    /// `x + constant` behind the same mask.
    pub fn plus(&self, constant: u64) -> Self {
        let opened = self.opened.iter().map(|x| self.ring.reduce(x.wrapping_add(constant))).collect();
        Self { opened, ..self.clone() }
    }
}
