//! Trees of the "half-tree" construction, four at a time: the two children of a node add up to the node.
//!
//! Correlated GGM of Guo, Yang, Wang, Zhang, Xie, Liu and Zhao, "Half-Tree: Halving the Cost of Tree Expansion in COT and
//! DPF" (EUROCRYPT 2023): `left = H(parent)`, `right = parent ^ left`, one AES call per parent. With `s` the linear map
//! `s(high, low) = (high ^ low, high)` and `P` AES under a public key, `H(x) = P(s(x)) ^ s(x)` is circular correlation
//! robust when AES is an ideal cipher ([`TreeHash`]; Guo, Katz, Wang and Yu, IEEE S&P 2020).
//!
//! A level of [`TREES`] trees is one slice: node `j` of tree `g` is at `TREES * j + g`, and of `m` nodes the one with
//! number `j` has its children at `j` and `m + j` of the next level. So a leaf's number has its path as bits, the first
//! step lowest.

use crate::arch;
use crate::{Block, TreeHash};

/// Trees that grow side by side: the blocks of one 512-bit vector.
pub const TREES: usize = 4;

/// Grows a level of trees whose hash is `hash`: the first half of `nodes` holds the parents, afterwards it holds the left children and the second half
/// the right ones. Returns the exclusive or of each tree's left children.
///
/// # Panics
/// If `nodes` is no multiple of `2 * TREES`.
pub fn grow(hash: &TreeHash, nodes: &mut [Block]) -> [Block; TREES] {
    assert!(nodes.len().is_multiple_of(2 * TREES), "two levels of {TREES} trees");
    let (parents, right) = nodes.split_at_mut(nodes.len() / 2);
    hash.permutation().children(parents.as_chunks_mut().0, right.as_chunks_mut().0)
}

/// Adds `differences[g]` to both children of parent `paths[g]` in every tree `g`; `nodes` is a level after [`grow`].
///
/// No address depends on `paths`.
///
/// # Panics
/// If `nodes` is no multiple of `2 * TREES`.
pub fn correct(nodes: &mut [Block], paths: &[u64; TREES], differences: &[Block; TREES]) {
    assert!(nodes.len().is_multiple_of(2 * TREES), "two levels of {TREES} trees");
    (arch::kernels().correct)(nodes, paths, differences);
}

/// Sets the lowest bit of node `paths[g]` of every tree `g`, and clears that of all others.
///
/// No address depends on `paths`. A path that no node has clears the whole tree.
///
/// # Panics
/// If `nodes` is no multiple of `TREES`.
pub fn mark(nodes: &mut [Block], paths: &[u64; TREES]) {
    assert!(nodes.len().is_multiple_of(TREES), "{TREES} trees");
    (arch::kernels().mark)(nodes, paths);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::Aes128;
    use crate::{Prg, Seed};

    const KEY: [u8; 16] = *b"any public key..";

    fn level(parents: usize, seed: [u8; 16]) -> Vec<Block> {
        let mut nodes = vec![0; 2 * TREES * parents];
        Prg::from_seed(&Seed::from_bytes(seed)).fill_blocks(&mut nodes);
        nodes
    }

    /// `H` of one block.
    fn slow_hash(x: Block) -> Block {
        let (high, low) = (x >> 64, x as u64 as Block);
        let mixed = (high ^ low) << 64 | high;
        Aes128::portable(&KEY).encrypt_one(mixed) ^ mixed
    }

    proptest! {
        #[test]
        fn every_implementation_grows_by_the_definition(parents in 0_usize..40, seed: [u8; 16]) {
            let before = level(parents, seed);
            for aes in Aes128::every(&KEY) {
                let mut nodes = before.clone();
                let (left, right) = nodes.split_at_mut(TREES * parents);
                let sums = aes.children(left.as_chunks_mut().0, right.as_chunks_mut().0);
                let mut expected = [0; TREES];
                for i in 0..TREES * parents {
                    let child = slow_hash(before[i]);
                    prop_assert_eq!(nodes[i], child);
                    prop_assert_eq!(nodes[TREES * parents + i], before[i] ^ child);
                    expected[i % TREES] ^= child;
                }
                prop_assert_eq!(sums, expected);
            }
        }

        #[test]
        fn every_implementation_corrects_and_marks_by_the_definition(
            parents in 1_usize..40, seed: [u8; 16], paths in prop::array::uniform4(0_u64..50), differences: [Block; TREES],
        ) {
            let before = level(parents, seed);
            for kernels in arch::every_kernels() {
                let mut corrected = before.clone();
                (kernels.correct)(&mut corrected, &paths, &differences);
                let mut marked = before.clone();
                (kernels.mark)(&mut marked, &paths);
                for (i, &node) in before.iter().enumerate() {
                    let (j, g) = (i / TREES, i % TREES);
                    let on_path = (j % parents) as u64 == paths[g];
                    let expected = node ^ if on_path { differences[g] } else { 0 };
                    prop_assert_eq!(corrected[i], expected, "{}", kernels.name);
                    let bit = Block::from(j as u64 == paths[g]);
                    prop_assert_eq!(marked[i], node & !1 | bit, "{}", kernels.name);
                }
            }
        }
    }
}
