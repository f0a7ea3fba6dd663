//! The hash `H` of half-trees, under public keys that are fresh for each batch of trees.
//!
//! With `s` the linear map `s(high, low) = (high ^ low, high)` and `P` AES under a public key, `H(x) = P(s(x)) ^ s(x)` is
//! circular correlation robust when AES is an ideal cipher (Guo, Katz, Wang and Yu, IEEE S&P 2020). Whoever tries to find one of
//! `n` secret differences that were hashed under the same key succeeds with `n` times the chance that a single one gives,
//! because each trial is compared with all of them. So no key serves more than [`KEYS_A_PART`] trees, and a batch's keys grow from
//! a seed that is drawn for it: a trial under one key says nothing of trees under any other.

use crate::arch::Aes128;
use crate::paths::GROUP;
use crate::{Block, KeyStream, Seed};

/// Trees of a batch that share a hash: sixteen groups. To schedule a key takes as long as some sixty blocks of AES.
pub const KEYS_A_PART: usize = 16 * GROUP;

/// `H` under one key.
#[derive(Clone)]
pub struct TreeHash(Aes128);

impl TreeHash {
    /// Under this public key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Aes128::new(key))
    }

    /// The permutation, in the code chosen for this machine.
    pub(crate) fn permutation(&self) -> &Aes128 {
        &self.0
    }
}

/// The hashes of a batch, one for each [`KEYS_A_PART`] trees.
#[derive(Clone)]
pub struct TreeHashes {
    keys: KeyStream,
    first: u64,
}

impl TreeHashes {
    /// Those of a batch with this public seed, which must be drawn after everything that the trees are made of, or
    /// independently of it.
    pub fn new(seed: &Seed) -> Self {
        Self { keys: KeyStream::new(seed), first: 0 }
    }

    /// The same batch without its first `trees`.
    ///
    /// # Panics
    /// Unless these are whole parts.
    #[must_use]
    pub fn behind(&self, trees: usize) -> Self {
        assert!(trees.is_multiple_of(KEYS_A_PART), "whole parts of {KEYS_A_PART} trees");
        Self { keys: self.keys.clone(), first: self.first + (trees / KEYS_A_PART) as u64 }
    }

    /// The hash of the part with this index: trees `KEYS_A_PART index` and on.
    pub fn part(&self, index: usize) -> TreeHash {
        let mut key: [Block; 1] = [0];
        self.keys.blocks(self.first + index as u64, &mut key);
        TreeHash::new(&key[0].to_le_bytes())
    }

    /// The hashes of the first `trees` trees.
    pub fn parts(&self, trees: usize) -> Vec<TreeHash> {
        (0..trees.div_ceil(KEYS_A_PART)).map(|index| self.part(index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::paths;

    #[test]
    fn no_two_parts_and_no_two_batches_share_a_hash() {
        let hash_of_zero = |hash: &TreeHash| {
            let mut block = [0];
            paths::hash(hash, &mut block);
            block[0]
        };
        let batches = [1, 2].map(|seed| TreeHashes::new(&Seed::from_block(seed)));
        let hashes: HashSet<Block> =
            batches.iter().flat_map(|batch| batch.parts(5 * KEYS_A_PART)).map(|hash| hash_of_zero(&hash)).collect();
        assert_eq!(hashes.len(), 10);
        let behind = batches[0].behind(3 * KEYS_A_PART);
        assert_eq!(hash_of_zero(&behind.part(1)), hash_of_zero(&batches[0].part(4)));
    }
}
