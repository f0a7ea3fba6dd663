//! Authenticated bits: one word at each party, whose exclusive or is `b delta`.
//!
//! `delta` is odd, so the lowest bits of the two words are shares of `b`, and the words as a whole are its code: whoever
//! claims the other bit without notice has guessed 63 bits of `delta`.

use privet_ring::Bits;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Key;

/// One party's half of a vector of authenticated bits.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct TaggedBits {
    words: Vec<u64>,
}

impl TaggedBits {
    /// From this party's words, `[n]`.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self { words }
    }

    /// This party's words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// `a ^ b`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn xor(mut self, other: &Self) -> Self {
        assert_eq!(self.len(), other.len(), "exclusive or of two lengths");
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a ^= b);
        self
    }

    /// This party's shares of the bits.
    pub fn shares(&self) -> Bits {
        Bits::from_lowest(self.words.iter().copied())
    }

    /// What both parties have in common if the bits are `opened`: without a forged bit, the same words.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(crate) fn residues(&self, key: &Key, opened: &Bits) -> Vec<u64> {
        assert_eq!(self.len(), opened.len(), "a bit for each word");
        let delta = key.bits();
        self.words.iter().enumerate().map(|(i, word)| word ^ delta & all(opened, i) as u64).collect()
    }
}

/// All ones if bit `i` is set, else zero.
pub(crate) fn all(bits: &Bits, i: usize) -> u128 {
    u128::from(bits.words()[i / 64] >> (i % 64) & 1).wrapping_neg()
}
