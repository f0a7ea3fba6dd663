//! A correlation-robust hash of blocks from AES under public keys that are fresh for each extension.
//!
//! `H(x) = P(x) ^ x`, one AES call: correlation robust when AES is an ideal cipher (Guo, Katz, Wang and Yu, "Efficient and Secure
//! Multiparty Computation from Fixed-Key Block Ciphers", IEEE S&P 2020). There is no tweak, so no two inputs under one key may
//! be the same: the blocks of OTs are pseudorandom, and repeat with a chance of `2^-128` a pair.
//!
//! Whoever looks for the correlation compares each trial with all hashes that were made under the same key. So a key serves some
//! thousand blocks ([`Keys::at`]), as in Guo, Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates Garbling" (CRYPTO 2020).

use crate::arch::Aes128;
use crate::{Block, KeyStream, Seed};

/// `H` under one key.
pub struct Hash(Aes128);

impl Hash {
    /// The low `N` bits of all `H(blocks[i] ^ offset)`: bit `j` of that hash is bit `i % 64` of `out[i / 64][j]`. Bits beyond the last
    /// block are zero.
    ///
    /// # Panics
    /// Unless `out` has a row for every 64 blocks, rounded up.
    pub fn low_bits<const N: usize>(&self, blocks: &[Block], offset: Block, out: &mut [[u64; N]]) {
        assert_eq!(out.len(), blocks.len().div_ceil(64), "a row for every 64 blocks");
        self.0.hashed_bits(blocks, offset, out);
    }

    /// The low halves of all `H(blocks[i] ^ offset)`.
    ///
    /// # Panics
    /// Unless `out` is as long as `blocks`.
    pub fn words(&self, blocks: &[Block], offset: Block, out: &mut [u64]) {
        assert_eq!(out.len(), blocks.len(), "a word for every block");
        self.0.hashed_words(blocks, offset, out);
    }
}

/// The keys of an extension, from a public seed.
#[derive(Clone)]
pub struct Keys(KeyStream);

impl Keys {
    /// Those of the extension with this seed, which both parties have part in or which is drawn after all secrets.
    pub fn new(seed: &Seed) -> Self {
        Self(KeyStream::new(seed))
    }

    /// The hash of the chunk of OTs that begins with number `first`.
    pub fn at(&self, first: u64) -> Hash {
        let mut key: [Block; 1] = [0];
        self.0.blocks(first, &mut key);
        Hash(Aes128::new(&key[0].to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_chunk_and_every_extension_has_a_hash_of_its_own() {
        let hash_of_nine = |keys: &Keys, first| {
            let mut word = [0];
            keys.at(first).words(&[9], 0, &mut word);
            word[0]
        };
        let keys = [3, 4].map(|seed| Keys::new(&Seed::from_block(seed)));
        let hashes: HashSet<u64> = keys.iter().flat_map(|keys| (0..100).map(|at| hash_of_nine(keys, at))).collect();
        assert_eq!(hashes.len(), 200);
    }
}
