//! Sums over GF(2) of terms chosen by the bits of their number: how leaves of a tree become a VOLE.

use crate::Block;
use crate::arch;

/// Adds up `2^k` terms of `width` blocks, all of them and by each bit of their number.
///
/// `terms`: shape `[2^k, width]`; `sums`: shape `[k, width]`. Afterwards row `j` of `sums` is the exclusive or of the
/// terms whose number has bit `j`, the first row of `terms` that of all terms, and the other rows mean nothing.
///
/// # Panics
/// If the shapes are not these, or `width` is zero.
pub fn subset_sums(sums: &mut [Block], terms: &mut [Block], width: usize) {
    assert!(width > 0 && sums.len().is_multiple_of(width), "sums of whole rows");
    assert_eq!(terms.len(), width << (sums.len() / width), "two to the number of sums terms");
    (arch::kernels().subset_sums)(sums, terms, width);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_implementation_is_the_definition(k in 0_usize..=8, width in 1_usize..9, words: [Block; 7]) {
            let terms: Vec<Block> = (0..width << k)
                .map(|i| words[i % 7].wrapping_mul(2 * i as Block + 1).rotate_left(i as u32))
                .collect();
            for kernels in arch::every_kernels() {
                let (mut sums, mut folded) = (vec![1; k * width], terms.clone());
                (kernels.subset_sums)(&mut sums, &mut folded, width);
                for i in 0..width {
                    let sum = |keep: &dyn Fn(usize) -> bool| {
                        (0..1 << k).filter(|&x| keep(x)).fold(0, |sum, x| sum ^ terms[x * width + i])
                    };
                    prop_assert_eq!(folded[i], sum(&|_| true), "{}", kernels.name);
                    for j in 0..k {
                        prop_assert_eq!(sums[j * width + i], sum(&|x| x >> j & 1 == 1), "{}", kernels.name);
                    }
                }
            }
        }
    }

    #[test]
    fn the_chosen_implementation_adds_up_two_terms() {
        let (mut sums, mut terms) = ([7, 7], [1, 2, 4, 8]);
        subset_sums(&mut sums, &mut terms, 2);
        assert_eq!((sums, terms[..2].to_vec()), ([4, 8], vec![5, 10]));
    }
}
