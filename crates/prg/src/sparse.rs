//! Sums of few terms chosen by a public stream of words: a sparse random linear code.

use crate::Block;
use crate::arch;

/// Terms of every sum.
pub const WEIGHT: usize = 10;

/// Adds to every block of `out` the terms that the next [`WEIGHT`] words of `words` choose.
///
/// A word chooses by its low bits, so `terms` must be a power of two long. `words` holds four words of 32 bits to a
/// block, lowest first. Addresses depend on `words`, which must be public.
///
/// # Panics
/// If `out` is of odd length, `words` has not `WEIGHT / 4` blocks for each of its blocks, or `terms` is no power of two
/// up to 2^32.
pub fn add(out: &mut [Block], terms: &[Block], words: &[Block]) {
    assert!(out.len().is_multiple_of(2), "an even number of sums");
    assert_eq!(words.len(), out.len() / 2 * (WEIGHT / 2), "{WEIGHT} words for every sum");
    assert!(terms.len().is_power_of_two() && terms.len() <= 1 << 32, "a power of two of terms");
    (arch::kernels().add_sparse)(out, terms, words);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Prg, Seed};

    proptest! {
        #[test]
        fn every_implementation_is_the_definition(pairs in 0_usize..50, log_terms in 0_usize..12, seed: [u8; 16]) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let (mut before, mut terms, mut words) = (vec![0; 2 * pairs], vec![0; 1 << log_terms], vec![0; 5 * pairs]);
            prg.fill_blocks(&mut before);
            prg.fill_blocks(&mut terms);
            prg.fill_blocks(&mut words);
            for kernels in arch::every_kernels() {
                let mut out = before.clone();
                (kernels.add_sparse)(&mut out, &terms, &words);
                for (i, (sum, &start)) in out.iter().zip(&before).enumerate() {
                    let expected = (i * WEIGHT..(i + 1) * WEIGHT).fold(start, |sum, at| {
                        let word = words[at / 4] >> (32 * (at % 4)) & 0xffff_ffff;
                        sum ^ terms[(word % terms.len() as Block) as usize]
                    });
                    prop_assert_eq!(*sum, expected, "{}", kernels.name);
                }
            }
        }
    }
}
