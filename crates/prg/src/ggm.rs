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

/// What a level lacks: in every tree `g`, `differences[g]` is to be added to both children of parent `paths[g]`. It is added when the level is
/// read next, so that no pass over the nodes is for it alone.
pub struct Correction {
    /// Numbers of parents.
    pub paths: [u64; TREES],
    /// What is added to their children.
    pub differences: [Block; TREES],
}

impl Correction {
    /// Nothing.
    pub const NONE: Self = Self { paths: [u64::MAX; TREES], differences: [0; TREES] };
}

/// Grows a level of trees whose hash is `hash`: the first half of `nodes` holds the parents, afterwards it holds the left children and the second half
/// the right ones. The parents are corrected first, as children of their own. Returns the exclusive or of each tree's left children.
///
/// No address depends on the correction.
///
/// # Panics
/// If `nodes` is no multiple of `4 * TREES`.
pub fn grow(hash: &TreeHash, nodes: &mut [Block], correction: &Correction) -> [Block; TREES] {
    assert!(nodes.len().is_multiple_of(4 * TREES), "the levels below the roots of {TREES} trees");
    let (parents, right) = nodes.split_at_mut(nodes.len() / 2);
    // Left children of the level above, then right ones: both are counted by their parents.
    let (first, second) = parents.split_at_mut(parents.len() / 2);
    let (right_of_first, right_of_second) = right.split_at_mut(right.len() / 2);
    let halves = [(first, right_of_first), (second, right_of_second)];
    let [first, second] = halves.map(|(parents, right)| {
        hash.permutation().children(parents.as_chunks_mut().0, right.as_chunks_mut().0, correction)
    });
    std::array::from_fn(|g| first[g] ^ second[g])
}

/// Corrects a level, then sets the lowest bit of node `paths[g]` of every tree `g`, and clears that of all others.
///
/// No address depends on the correction or on `paths`. A path that no node has clears the whole tree.
///
/// # Panics
/// If `nodes` is no multiple of `2 * TREES`.
pub fn mark(nodes: &mut [Block], correction: &Correction, paths: &[u64; TREES]) {
    assert!(nodes.len().is_multiple_of(2 * TREES), "children of {TREES} trees");
    (arch::kernels().mark)(nodes, correction, paths);
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

    /// Block `i` of a level with so many parents above it, corrected.
    fn corrected(nodes: &[Block], i: usize, parents: usize, correction: &Correction) -> Block {
        let (j, g) = (i / TREES, i % TREES);
        nodes[i] ^ if (j % parents) as u64 == correction.paths[g] { correction.differences[g] } else { 0 }
    }

    /// `H` of one block.
    fn slow_hash(x: Block) -> Block {
        let (high, low) = (x >> 64, x as u64 as Block);
        let mixed = (high ^ low) << 64 | high;
        Aes128::portable(&KEY).encrypt_one(mixed) ^ mixed
    }

    proptest! {
        #[test]
        fn every_implementation_grows_by_the_definition(
            parents in 0_usize..40, seed: [u8; 16], paths in prop::array::uniform4(0_u64..50), differences: [Block; TREES],
        ) {
            let before = level(parents, seed);
            let correction = Correction { paths, differences };
            for aes in Aes128::every(&KEY) {
                let mut nodes = before.clone();
                let (left, right) = nodes.split_at_mut(TREES * parents);
                let sums = aes.children(left.as_chunks_mut().0, right.as_chunks_mut().0, &correction);
                let mut expected = [0; TREES];
                for i in 0..TREES * parents {
                    let parent = corrected(&before, i, parents, &correction);
                    let child = slow_hash(parent);
                    prop_assert_eq!(nodes[i], child);
                    prop_assert_eq!(nodes[TREES * parents + i], parent ^ child);
                    expected[i % TREES] ^= child;
                }
                prop_assert_eq!(sums, expected);
            }
        }

        #[test]
        fn corrections_are_made_of_both_children(
            parents in 1_usize..20, seed: [u8; 16], paths in prop::array::uniform4(0_u64..25), differences: [Block; TREES],
        ) {
            let hash = TreeHash::new(&KEY);
            let correction = Correction { paths, differences };
            let mut nodes = level(2 * parents, seed);
            let mut expected: Vec<Block> =
                (0..nodes.len()).map(|i| corrected(&nodes, i, parents, &correction)).collect();
            let sums = grow(&hash, &mut nodes, &correction);
            prop_assert_eq!(sums, grow(&hash, &mut expected, &Correction::NONE));
            prop_assert_eq!(nodes, expected);
        }

        #[test]
        fn every_implementation_corrects_and_marks_by_the_definition(
            parents in 1_usize..40, seed: [u8; 16], paths in prop::array::uniform4(0_u64..50), differences: [Block; TREES],
            leaves in prop::array::uniform4(prop_oneof![0_u64..100, Just(u64::MAX)]),
        ) {
            let before = level(parents, seed);
            let correction = Correction { paths, differences };
            for kernels in arch::every_kernels() {
                let mut marked = before.clone();
                (kernels.mark)(&mut marked, &correction, &leaves);
                for (i, &marked) in marked.iter().enumerate() {
                    let (j, g) = (i / TREES, i % TREES);
                    let bit = Block::from(j as u64 == leaves[g]);
                    let expected = corrected(&before, i, parents, &correction) & !1 | bit;
                    prop_assert_eq!(marked, expected, "{}", kernels.name);
                }
            }
        }
    }
}
