//! Sums with one term of each of [`PARTS`] parts, chosen by a public stream of words: a sparse random linear code whose reads stay
//! in a small part for as long as it takes.

use crate::{Block, KeyStream};

/// Words that are multiplied by the same matrix, side by side: a row of leaves, which is a 512-bit vector and a line of a cache.
pub const LANES: usize = crate::ggm::TREES;

/// A block of every lane.
pub type Lanes = [Block; LANES];

/// Parts, and so terms of every sum.
pub const PARTS: usize = 12;

/// Parts that are added in one pass over the sums.
pub const PARTS_A_PASS: usize = 4;

/// Sums that are added to at once.
pub const ROWS: usize = 256;

/// Blocks of words for them.
pub const WORD_BLOCKS: usize = PARTS_A_PASS * ROWS / 8;

/// Adds to sum `i` of row `r` of `out` the terms that words `i`, `ROWS + i`, `2 ROWS + i` and so on of 16 bits choose of the first, second, third
/// of `parts`, and so on. The row's words are [`WORD_BLOCKS`] blocks of `stream` from block `first + r stride` on.
///
/// A word chooses by its low bits; `parts` lie one after the other. A block holds eight words, lowest first. Addresses depend on
/// `stream`, which must be public.
///
/// # Panics
/// Unless the length of a part is a power of two up to 2^16.
pub fn add(out: &mut [[Lanes; ROWS]], parts: &[Lanes], stream: &KeyStream, first: u64, stride: u64) {
    let len = parts.len() / PARTS_A_PASS;
    assert!(len.is_power_of_two() && len <= 1 << 16 && parts.len() == PARTS_A_PASS * len, "a power of two of terms");
    stream.cipher().add_sparse(out, parts, first, stride);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::{self, Aes128};
    use crate::{Prg, Seed};

    proptest! {
        #[test]
        fn every_cipher_adds_what_its_stream_chooses(
            log_terms in 0_usize..=16, rows in 0_usize..4, first in 0..u64::MAX, stride: u64, seed: [u8; 16],
        ) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let mut before = vec![[[0; LANES]; ROWS]; rows];
            let mut parts = vec![[0; LANES]; PARTS_A_PASS << log_terms];
            prg.fill_blocks(before.as_flattened_mut().as_flattened_mut());
            prg.fill_blocks(parts.as_flattened_mut());
            let (mut expected, portable) = (before.clone(), Aes128::portable(&seed));
            for (row, sums) in expected.iter_mut().enumerate() {
                let mut words = [0; WORD_BLOCKS];
                portable.counters(first.wrapping_add(stride.wrapping_mul(row as u64)), &mut words);
                (arch::every_kernels()[0].add_sparse)(sums, &parts, &words);
            }
            for aes in Aes128::every(&seed) {
                let mut out = before.clone();
                aes.add_sparse(&mut out, &parts, first, stride);
                prop_assert!(out == expected);
            }
        }

        #[test]
        fn every_implementation_is_the_definition(log_terms in 0_usize..=16, seed: [u8; 16]) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let (mut before, mut words) = ([[0; LANES]; ROWS], [0; WORD_BLOCKS]);
            let mut parts = vec![[0; LANES]; PARTS_A_PASS << log_terms];
            prg.fill_blocks(before.as_flattened_mut());
            prg.fill_blocks(parts.as_flattened_mut());
            prg.fill_blocks(&mut words);
            for kernels in arch::every_kernels() {
                let mut out = before;
                (kernels.add_sparse)(&mut out, &parts, &words);
                for (i, (sum, &start)) in out.iter().zip(&before).enumerate() {
                    let expected = parts.chunks(1 << log_terms).enumerate().fold(start, |sum, (part, terms)| {
                        let at = part * ROWS + i;
                        let word = (words[at / 8] >> (16 * (at % 8))) as usize;
                        std::array::from_fn(|lane| sum[lane] ^ terms[word % terms.len()][lane])
                    });
                    prop_assert_eq!(*sum, expected, "{}", kernels.name);
                }
            }
        }
    }
}
