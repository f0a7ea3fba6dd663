//! A tweakable correlation-robust hash of blocks from one fixed-key AES permutation.
//!
//! `H(x, i) = P(P(x) ^ i) ^ P(x)`, the construction TMMO of Guo, Katz, Wang and Yu, "Efficient and Secure Multiparty
//! Computation from Fixed-Key Block Ciphers" (IEEE S&P 2020): tweakable and circular correlation robust when `P` is an
//! ideal permutation. A tweak must not serve two inputs under one secret correlation; a running index sees to that.

use std::sync::LazyLock;

use crate::Block;
use crate::arch::Aes128;

/// The permutation's public key: the first fractional bits of pi, so that nobody chose it.
pub(crate) const KEY: [u8; 16] = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344_u128.to_be_bytes();

static PERMUTATION: LazyLock<Aes128> = LazyLock::new(|| Aes128::new(&KEY));

/// Replaces `blocks[i]` by `H(blocks[i], tweak_start + i)`. Fastest for multiples of 64 blocks.
pub fn tweaked(blocks: &mut [Block], tweak_start: u64) {
    PERMUTATION.tweaked_hash(tweak_start, blocks);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_first_bits_of_pi() {
        let fraction = std::f64::consts::PI - 3.0;
        let leading = u64::from_be_bytes(*KEY.first_chunk().expect("16 bytes"));
        assert!((leading as f64 / 2f64.powi(64) - fraction).abs() < 1e-15);
    }

    #[test]
    fn long_inputs_hash_like_short_ones() {
        let mut together: Vec<Block> = (0..1000).collect();
        let mut apart = together.clone();
        tweaked(&mut together, 5);
        for (part, blocks) in apart.chunks_mut(77).enumerate() {
            tweaked(blocks, 5 + 77 * part as u64);
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
