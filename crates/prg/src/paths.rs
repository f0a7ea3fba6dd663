//! One path in each of many half-trees, corrected on the way: what keys of point functions are made of and read by.
//!
//! The tree is that of [`crate::ggm`] (`left = H(node)`, `right = node ^ left`) with one public correction word for each
//! level, which is added to both children of every node whose lowest bit is set: the distributed point function of Guo,
//! Yang, Wang, Zhang, Xie, Liu and Zhao, "Half-Tree" (EUROCRYPT 2023). Two parties walk trees of the same words from roots
//! that differ by `d` with `d & 1 = 1`. While they follow the path for which the words were made, their nodes differ by
//! `d`; from the step where they leave it, their nodes are equal. So the lowest bits of a node are shares of whether it is
//! on the path.
//!
//! [`GROUP`] trees make a group: all words of its first level, then those of the second, and so on. Only the last group of
//! a batch has fewer trees.

use crate::{Block, TreeHash};

/// Trees whose words lie side by side, and that are walked together: eight 512-bit vectors of nodes.
pub const GROUP: usize = 32;

/// Walks one path in each tree of one or more groups, whose hash is `hash`.
///
/// `nodes`: the roots, afterwards the nodes reached, `[n]`. `paths`: the turns, `[n]`; the last of `levels` turns is bit 0,
/// and 1 goes right. `words`: `[n * levels]` in the order of groups. `sums`: `[n]`; the left siblings of the nodes that the
/// path reaches by a right turn are added to it.
///
/// No address and no branch depends on any of them.
///
/// # Panics
/// If the lengths do not fit one another or `levels > 64`.
pub fn walk(
    hash: &TreeHash,
    nodes: &mut [Block],
    paths: &[u64],
    levels: usize,
    words: &[[u8; 16]],
    sums: &mut [Block],
) {
    assert!(levels <= 64, "a path has at most 64 turns");
    assert_eq!(paths.len(), nodes.len(), "a path for each tree");
    assert_eq!(sums.len(), nodes.len(), "a sum for each tree");
    assert_eq!(words.len(), nodes.len() * levels, "a word for each tree and level");
    hash.permutation().walk(nodes, paths, levels, words, sums);
}

/// Makes the words for one path in each tree of one or more groups.
///
/// `nodes`: one party's roots, afterwards its nodes at the ends of the paths, `[n]`; the other party's are at `differences`
/// from them, before and after. `paths` and `words` as for [`walk`].
///
/// No address and no branch depends on any of them.
///
/// # Panics
/// If the lengths do not fit one another or `levels > 64`.
pub fn plant(
    hash: &TreeHash,
    nodes: &mut [Block],
    differences: &[Block],
    paths: &[u64],
    levels: usize,
    words: &mut [[u8; 16]],
) {
    assert!(levels <= 64, "a path has at most 64 turns");
    assert_eq!(paths.len(), nodes.len(), "a path for each tree");
    assert_eq!(differences.len(), nodes.len(), "a difference for each tree");
    assert_eq!(words.len(), nodes.len() * levels, "a word for each tree and level");
    hash.permutation().plant(nodes, differences, paths, levels, words);
}

/// All leaves of each tree of one or more groups: every level but the last has children, and a node below them becomes a leaf by its
/// hash and its word.
///
/// `roots`: `[n]`. `words`: `[n * levels]` in the order of groups. `out`: `[n, 2^(levels - 1)]`, the low half of each leaf first.
///
/// No address and no branch depends on any of them.
///
/// # Panics
/// If the lengths do not fit one another, or `levels` is not from 1 to 32.
pub fn leaves(hash: &TreeHash, roots: &[Block], levels: usize, words: &[[u8; 16]], out: &mut [[u64; 2]]) {
    assert!((1..=32).contains(&levels), "from 1 to 32 levels");
    assert_eq!(words.len(), roots.len() * levels, "a word for each tree and level");
    assert_eq!(out.len(), roots.len() << (levels - 1), "the leaves of each tree");
    hash.permutation().leaves(roots, levels, words, out);
}

/// Replaces every block `x` by `H(x)`. Fastest for multiples of [`GROUP`].
pub fn hash(hash: &TreeHash, blocks: &mut [Block]) {
    hash.permutation().hash(blocks);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::Aes128;
    use crate::ggm;
    use crate::{Prg, Seed};

    const KEY: [u8; 16] = *b"any public key..";

    /// `H` of one block.
    fn slow_hash(x: Block) -> Block {
        let mut one = [x];
        Aes128::portable(&KEY).hash(&mut one);
        one[0]
    }

    fn blocks(count: usize, prg: &mut Prg) -> Vec<Block> {
        (0..count).map(|_| prg.block()).collect()
    }

    /// Where the word of `level` for `tree` of `trees` is.
    fn place(tree: usize, trees: usize, level: usize, levels: usize) -> usize {
        let start = tree / GROUP * GROUP;
        start * levels + level * GROUP.min(trees - start) + tree - start
    }

    /// One path, by the definition: the node at its end and the sum of left siblings.
    fn slow_walk(root: Block, path: u64, words: &[Block]) -> (Block, Block) {
        let (mut node, mut sum) = (root, 0);
        for (level, word) in words.iter().enumerate() {
            let left = slow_hash(node) ^ if node & 1 == 1 { *word } else { 0 };
            if path >> (words.len() - 1 - level) & 1 == 1 {
                sum ^= left;
                node ^= left;
            } else {
                node = left;
            }
        }
        (node, sum)
    }

    #[test]
    fn the_hash_is_a_left_child() {
        let mut nodes = [3, 5, 7, 1 << 127, 2, 1, 0, 9].repeat(2);
        let children: Vec<Block> = nodes[..8].iter().map(|x| slow_hash(*x)).collect();
        ggm::grow(&TreeHash::new(&KEY), &mut nodes, &ggm::Correction::NONE);
        assert_eq!(nodes[..8], children);
    }

    proptest! {
        #[test]
        fn every_implementation_walks_by_the_definition(trees in 0_usize..80, levels in 0_usize..12, seed: [u8; 16]) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let (roots, start) = (blocks(trees, &mut prg), blocks(trees, &mut prg));
            let words: Vec<[u8; 16]> = blocks(trees * levels, &mut prg).iter().map(|b| b.to_le_bytes()).collect();
            let paths: Vec<u64> = (0..trees).map(|_| prg.word()).collect();
            for aes in Aes128::every(&KEY) {
                let (mut nodes, mut sums) = (roots.clone(), start.clone());
                aes.walk(&mut nodes, &paths, levels, &words, &mut sums);
                for i in 0..trees {
                    let tree_words: Vec<Block> =
                        (0..levels).map(|l| Block::from_le_bytes(words[place(i, trees, l, levels)])).collect();
                    let (node, sum) = slow_walk(roots[i], paths[i], &tree_words);
                    prop_assert_eq!((nodes[i], sums[i]), (node, start[i] ^ sum));
                }
            }
        }

        #[test]
        fn every_implementation_has_the_same_leaves(trees in 0_usize..80, levels in 1_usize..9, seed: [u8; 16]) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let roots = blocks(trees, &mut prg);
            let words: Vec<[u8; 16]> = blocks(trees * levels, &mut prg).iter().map(|b| b.to_le_bytes()).collect();
            let row = 1 << (levels - 1);
            for aes in Aes128::every(&KEY) {
                let mut leaves = vec![[7; 2]; trees * row];
                aes.leaves(&roots, levels, &words, &mut leaves);
                for (i, leaves) in leaves.chunks(row).enumerate() {
                    let tree_words: Vec<Block> =
                        (0..levels).map(|l| Block::from_le_bytes(words[place(i, trees, l, levels)])).collect();
                    for (j, leaf) in leaves.iter().enumerate() {
                        let (node, _) = slow_walk(roots[i], j as u64, &tree_words[..levels - 1]);
                        let expected = slow_hash(node) ^ if node & 1 == 1 { tree_words[levels - 1] } else { 0 };
                        prop_assert_eq!(Block::from(leaf[0]) | Block::from(leaf[1]) << 64, expected);
                    }
                }
            }
        }

        #[test]
        fn every_implementation_plants_one_path(trees in 0_usize..80, levels in 0_usize..12, seed: [u8; 16]) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let roots = blocks(trees, &mut prg);
            let differences: Vec<Block> = blocks(trees, &mut prg).iter().map(|d| d | 1).collect();
            let paths: Vec<u64> = (0..trees).map(|_| prg.word()).collect();
            let mut outputs: Vec<Vec<[u8; 16]>> = Vec::new();
            for aes in Aes128::every(&KEY) {
                let (mut nodes, mut words) = (roots.clone(), vec![[0; 16]; trees * levels]);
                aes.plant(&mut nodes, &differences, &paths, levels, &mut words);
                for i in 0..trees {
                    let tree_words: Vec<Block> =
                        (0..levels).map(|l| Block::from_le_bytes(words[place(i, trees, l, levels)])).collect();
                    let ends = |path| {
                        [roots[i], roots[i] ^ differences[i]].map(|root| slow_walk(root, path, &tree_words).0)
                    };
                    let [near, far] = ends(paths[i]);
                    prop_assert_eq!((nodes[i], near ^ far), (near, differences[i]));
                    for turn in 0..levels {
                        let [near, far] = ends(paths[i] ^ 1 << turn);
                        prop_assert_eq!(near, far);
                    }
                }
                outputs.push(words);
            }
            outputs.dedup();
            prop_assert_eq!(outputs.len(), 1);
        }

        #[test]
        fn every_implementation_hashes_alike(inputs in prop::collection::vec(any::<Block>(), 0..100)) {
            for aes in Aes128::every(&KEY) {
                let mut hashed = inputs.clone();
                aes.hash(&mut hashed);
                prop_assert_eq!(hashed, inputs.iter().map(|x| slow_hash(*x)).collect::<Vec<_>>());
            }
        }
    }
}
