//! A tweakable correlation-robust hash of blocks from AES under public keys that are fresh for each extension.
//!
//! `H(x, i) = P(P(x) ^ i) ^ P(x)`, the construction TMMO of Guo, Katz, Wang and Yu, "Efficient and Secure Multiparty
//! Computation from Fixed-Key Block Ciphers" (IEEE S&P 2020): tweakable and circular correlation robust when AES is an
//! ideal cipher. A tweak must not serve two inputs under one secret correlation, unless they differ by distinct multiples of
//! it (entries of a table); a running index sees to that.
//!
//! Whoever looks for the correlation compares each trial with all hashes that were made under the same key. So a key serves some
//! thousand blocks ([`Keys::at`]).

use crate::arch::Aes128;
use crate::{Block, KeyStream, Seed};

/// `H` under one key.
pub struct Tweaked(Aes128);

impl Tweaked {
    /// Replaces `blocks[i]` by `H(blocks[i], tweak_start + i)`. Fastest for multiples of 64 blocks.
    pub fn hash(&self, blocks: &mut [Block], tweak_start: u64) {
        self.0.tweaked_hash(tweak_start, blocks);
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

    /// The hash of the blocks whose tweaks begin with `first`.
    pub fn at(&self, first: u64) -> Tweaked {
        let mut key: [Block; 1] = [0];
        self.0.blocks(first, &mut key);
        Tweaked(Aes128::new(&key[0].to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(&Seed::from_block(3))
    }

    #[test]
    fn long_inputs_hash_like_short_ones() {
        let mut together: Vec<Block> = (0..1000).collect();
        let mut apart = together.clone();
        let hash = keys().at(7);
        hash.hash(&mut together, 5);
        for (part, blocks) in apart.chunks_mut(77).enumerate() {
            hash.hash(blocks, 5 + 77 * part as u64);
        }
        assert_eq!(together, apart);
    }

    #[test]
    fn the_tweak_matters_and_so_does_the_place() {
        let mut blocks = [[9]; 4];
        keys().at(0).hash(&mut blocks[0], 1);
        keys().at(0).hash(&mut blocks[1], 2);
        keys().at(1).hash(&mut blocks[2], 1);
        Keys::new(&Seed::from_block(4)).at(0).hash(&mut blocks[3], 1);
        for (i, one) in blocks.iter().enumerate() {
            assert!(blocks[i + 1..].iter().all(|other| one != other));
        }
    }
}
