//! Bytes that objects and steps take in memory: upper bounds, for planning. What the allocator adds is not in them.

use crate::arch::CHUNK;
use crate::merge::Merge;
use crate::parameters::{Parameters, Resharing};
use crate::product::{Ciphertext, Sum, Weights};

impl Parameters {
    /// Of a [`Ciphertext`].
    pub fn ciphertext_memory(&self) -> u64 {
        2 * self.polynomial_memory() + size_of::<Ciphertext>() as u64
    }

    /// Of a polynomial of [`Weights`].
    pub fn weights_memory(&self) -> u64 {
        self.polynomial_memory() + size_of::<Weights>() as u64
    }

    /// Of a [`Sum`].
    pub fn sum_memory(&self) -> u64 {
        2 * self.polynomial_memory() + size_of::<Sum>() as u64
    }

    /// That [`Ciphertext::from_bytes`] and [`Sum::product`] need beyond bytes and result: some words of both parts.
    pub fn read_memory(&self) -> u64 {
        (2 * 8 * CHUNK) as u64
    }

    /// That [`crate::SecretKey::encrypt`] needs, the message included, beyond the bytes it appends: message, a polynomial, and
    /// some words at a time.
    pub fn encrypt_memory(&self) -> u64 {
        self.words(2) + self.polynomial_memory()
    }

    /// That [`Sum::reply`] needs, the positions included, beyond the sum, the share and the bytes it appends: positions,
    /// masks, and half a vector and a whole one modulo one prime; or, if resharing is exact, a flood of 128 bits, one of its terms, and the words that this
    /// is drawn from.
    pub fn reply_memory(&self) -> u64 {
        match self.resharing() {
            Resharing::Approximate => self.words(4),
            Resharing::Exact => self.words(10),
        }
    }

    /// That [`crate::SecretKey::open`] needs, the positions included, beyond the reply and the share: positions, both parts
    /// of the reply, the product where it is used, and two vectors modulo one prime.
    pub fn open_memory(&self) -> u64 {
        self.words(5) + self.polynomial_memory()
    }

    /// Of a [`crate::PublicKey`]: two polynomials, and for each level of merging, modulo three primes, two keys of two polynomials and a
    /// monomial; and half a word a coefficient for the automorphism.
    pub fn public_key_memory(&self) -> u64 {
        2 * self.polynomial_memory() + u64::from(self.levels()) * (self.words(15) + self.words(1) / 2)
    }

    /// Of a [`Merge`] of up to `2^levels` sums: those that wait for as many more, a polynomial modulo three primes and one modulo two each.
    pub fn merge_memory(&self, levels: u32) -> u64 {
        u64::from(levels + 1) * (self.words(5) + size_of::<Merge<'_>>() as u64)
    }

    /// That [`Merge::add`] and [`Merge::finish`] need beyond what they merge: two digits modulo three primes, what their product leaves
    /// modulo the special prime, and vectors that are kept for the next fold.
    pub fn fold_memory(&self) -> u64 {
        self.words(24)
    }

    fn polynomial_memory(&self) -> u64 {
        self.words(self.primes().len())
    }

    fn words(&self, vectors: usize) -> u64 {
        (8 * vectors * self.degree()) as u64
    }
}
