//! Bit-matrix transposes.
//!
//! Both run in constant time: no branch and no address depends on the bits.

use crate::Block;
use crate::arch;

/// Transposes 128 rows of `n` bits into `n` blocks of 128 bits: bit `j` of `out[i]` is bit `i` of row `j`.
///
/// `rows`: shape `[128, n / 128]`, row-major; bit `i` of a row is bit `i % 128` of its block `i / 128`.
/// `out`: shape `[n]`.
///
/// # Panics
/// If the two lengths differ or are no multiple of 128.
pub fn columns(rows: &[Block], out: &mut [Block]) {
    assert_eq!(rows.len(), out.len(), "a transpose keeps the number of bits");
    assert_eq!(rows.len() % 128, 0, "128 rows of whole blocks");
    (arch::kernels().columns)(rows, out);
}

/// Transposes a 64 x 64 bit matrix in place: bit `j` of word `i` becomes bit `i` of word `j`.
pub fn square(words: &mut [u64; 64]) {
    arch::square(words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prg, Seed};

    fn bits(blocks: usize, seed: u8) -> Vec<Block> {
        let mut rows = vec![0; blocks];
        Prg::from_seed(&Seed::from_bytes([seed; 16])).fill_blocks(&mut rows);
        rows
    }

    /// The definition, bit by bit.
    fn slow_columns(rows: &[Block]) -> Vec<Block> {
        let width = rows.len() / 128;
        let bit = |row: usize, i: usize| rows[row * width + i / 128] >> (i % 128) & 1;
        (0..rows.len()).map(|i| (0..128).map(|j| bit(j, i) << j).sum()).collect()
    }

    #[test]
    fn every_implementation_is_the_definition() {
        for kernels in arch::every_kernels() {
            for width in [1, 2, 3, 4, 5, 7, 8, 9, 12, 64] {
                let rows = bits(128 * width, width as u8);
                let mut out = vec![0; rows.len()];
                (kernels.columns)(&rows, &mut out);
                assert!(out == slow_columns(&rows), "{} on rows of {width} blocks", kernels.name);
            }
        }
    }

    #[test]
    fn a_square_is_its_definition_and_its_own_inverse() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([3; 16]));
        let mut words = [0; 64];
        prg.fill_words(&mut words);
        let original = words;
        square(&mut words);
        for (i, word) in words.iter().enumerate() {
            for (j, from) in original.iter().enumerate() {
                assert_eq!(word >> j & 1, from >> i & 1);
            }
        }
        square(&mut words);
        assert_eq!(words, original);
    }

    #[test]
    fn no_blocks_transpose_to_none() {
        columns(&[], &mut []);
    }
}
