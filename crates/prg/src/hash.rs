//! A tweakable correlation-robust hash of blocks from one fixed-key AES permutation.
//!
//! `H(x, i) = P(P(x) ^ i) ^ P(x)`, the construction TMMO of Guo, Katz, Wang and Yu, "Efficient and Secure Multiparty
//! Computation from Fixed-Key Block Ciphers" (IEEE S&P 2020): tweakable and circular correlation robust when `P` is an
//! ideal permutation. A tweak must not serve two inputs under one secret correlation; a running index sees to that.

use std::sync::LazyLock;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block as AesBlock};

use crate::Block;
use crate::counter::BATCH;

/// The permutation's public key: the first fractional bits of pi, so that nobody chose it.
const KEY: [u8; 16] = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344_u128.to_be_bytes();

static PERMUTATION: LazyLock<Aes128Enc> = LazyLock::new(|| Aes128Enc::new(&Array(KEY)));

/// Replaces `blocks[i]` by `H(blocks[i], tweak_start + i)`. Fastest for multiples of 64 blocks.
pub fn tweaked(blocks: &mut [Block], tweak_start: u64) {
    let mut tweak = Block::from(tweak_start);
    let mut batches = blocks.chunks_exact_mut(BATCH);
    for batch in &mut batches {
        hash_batch(batch, tweak);
        tweak += BATCH as Block;
    }
    let rest = batches.into_remainder();
    if !rest.is_empty() {
        // A whole batch costs less than half a batch block by block.
        let mut batch = [0; BATCH];
        let computed = if rest.len() <= 4 { rest.len() } else { BATCH };
        batch[..rest.len()].copy_from_slice(rest);
        hash_batch(&mut batch[..computed], tweak);
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

/// At most `BATCH` blocks.
fn hash_batch(blocks: &mut [Block], tweak: Block) {
    permute(blocks);
    let mut outer = [0; BATCH];
    let outer = &mut outer[..blocks.len()];
    for (i, (out, inner)) in outer.iter_mut().zip(blocks.iter()).enumerate() {
        *out = inner ^ (tweak + i as Block);
    }
    permute(outer);
    blocks.iter_mut().zip(outer).for_each(|(block, outer)| *block ^= *outer);
}

fn permute(blocks: &mut [Block]) {
    blocks.iter_mut().for_each(|block| *block = block.to_le());
    let (bytes, _) = bytemuck::must_cast_slice_mut::<Block, u8>(blocks).as_chunks_mut();
    PERMUTATION.encrypt_blocks(AesBlock::cast_slice_from_core_mut(bytes));
    blocks.iter_mut().for_each(|block| *block = Block::from_le(*block));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permuted(block: Block) -> Block {
        let mut bytes = Array(block.to_le_bytes());
        Aes128Enc::new(&Array(KEY)).encrypt_block(&mut bytes);
        Block::from_le_bytes(bytes.0)
    }

    #[test]
    fn the_key_is_the_first_bits_of_pi() {
        // pi - 3 = 0.14159265358979323846...; 64 bits of it are what a double-double check can see.
        let fraction = std::f64::consts::PI - 3.0;
        let leading = u64::from_be_bytes(*KEY.first_chunk().expect("16 bytes"));
        assert!((leading as f64 / 2f64.powi(64) - fraction).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn a_batch_is_its_definition_block_by_block(blocks: Vec<Block>, start in 0..u64::MAX / 2) {
            let mut hashed = blocks.clone();
            tweaked(&mut hashed, start);
            for (i, (block, hash)) in blocks.iter().zip(hashed).enumerate() {
                let inner = permuted(*block);
                prop_assert_eq!(hash, permuted(inner ^ Block::from(start + i as u64)) ^ inner);
            }
        }
    }

    #[test]
    fn long_inputs_hash_like_short_ones() {
        let mut together: Vec<Block> = (0..1000).collect();
        let mut apart = together.clone();
        tweaked(&mut together, 5);
        for (start, part) in apart.chunks_mut(77).enumerate() {
            tweaked(part, 5 + 77 * start as u64);
        }
        assert_eq!(together, apart);
    }

    #[test]
    fn the_tweak_matters() {
        let (mut a, mut b) = ([9], [9]);
        tweaked(&mut a, 1);
        tweaked(&mut b, 2);
        assert_ne!(a, b);
    }
}
