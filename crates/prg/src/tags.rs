//! Paths through many half-trees whose nodes have values of 64 bits, added up on the way.
//!
//! Trees and their words are those of [`crate::paths`]. Each level has a value word `V` of 8 bytes besides: a node `s` below it
//! has the value `G(s) ^ (s & 1) V`, with `G(s) = H(s ^ 2)` cut to its low 64 bits. The sum over a path is that of the values
//! of the left siblings that it passes by a right turn, and of the node at its end.
//!
//! A level of a group of trees has the words of its trees, then their value words.

use crate::{Block, TreeHash};

/// Bytes of one level of one tree.
pub const LEVEL_BYTES: usize = 24;

/// Walks one path in each tree of one or more groups, whose hash is `hash`, and returns the sums in `sums`.
///
/// `roots`: `[n]`. `paths`: the turns, `[n]`; the last of `levels` turns is bit 0, and 1 goes right. `words`: those of
/// `levels` levels, [`LEVEL_BYTES`] for each tree and level. `sums`: `[n]`.
///
/// No address and no branch depends on any of them.
///
/// # Panics
/// If the lengths do not fit one another, or unless `1 <= levels <= 64`.
pub fn walk(hash: &TreeHash, roots: &[Block], paths: &[u64], levels: usize, words: &[u8], sums: &mut [u64]) {
    assert!((1..=64).contains(&levels), "a path has 1 to 64 turns");
    assert_eq!(paths.len(), roots.len(), "a path for each tree");
    assert_eq!(sums.len(), roots.len(), "a sum for each tree");
    assert_eq!(words.len(), roots.len() * levels * LEVEL_BYTES, "the words of each tree and level");
    hash.permutation().walk_tags(roots, paths, levels, words, sums);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::Aes128;
    use crate::paths::{self, GROUP};
    use crate::{Prg, Seed};

    const KEY: [u8; 16] = *b"any public key..";

    /// The value of a node, by the definition.
    fn value(node: Block, word: u64) -> u64 {
        let mut hash = [node ^ 2];
        paths::hash(&TreeHash::new(&KEY), &mut hash);
        hash[0] as u64 ^ if node & 1 == 1 { word } else { 0 }
    }

    /// One path; `words`: of each level of its tree.
    fn slow_walk(root: Block, path: u64, words: &[(Block, u64)]) -> u64 {
        let (mut node, mut sum) = (root, 0);
        for (level, (word, tag)) in words.iter().enumerate() {
            let (mut next, mut left) = ([node], [0]);
            let turn = path >> (words.len() - 1 - level) & 1;
            paths::walk(&TreeHash::new(&KEY), &mut next, &[turn], 1, &[word.to_le_bytes()], &mut left);
            sum ^= if turn == 1 { value(left[0], *tag) } else { 0 };
            node = next[0];
        }
        sum ^ value(node, words[words.len() - 1].1)
    }

    proptest! {
        #[test]
        fn every_implementation_adds_up_by_the_definition(trees in 0usize..80, levels in 1usize..12, seed: [u8; 16]) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let mut words = vec![0; trees * levels * LEVEL_BYTES];
            prg.fill(&mut words);
            let roots: Vec<Block> = (0..trees).map(|_| prg.block()).collect();
            let paths: Vec<u64> = (0..trees).map(|_| prg.word()).collect();
            let word = |tree: usize, level: usize| {
                let first = tree / GROUP * GROUP;
                let width = GROUP.min(trees - first);
                let level = &words[(first * levels + level * width) * LEVEL_BYTES..][..width * LEVEL_BYTES];
                let (trees, tags) = level.split_at(16 * width);
                (Block::from_le_bytes(trees.as_chunks().0[tree - first]), u64::from_le_bytes(tags.as_chunks().0[tree - first]))
            };
            let expected: Vec<u64> = (0..trees)
                .map(|tree| slow_walk(roots[tree], paths[tree], &(0..levels).map(|level| word(tree, level)).collect::<Vec<_>>()))
                .collect();
            for aes in Aes128::every(&KEY) {
                let mut sums = vec![7; trees];
                aes.walk_tags(&roots, &paths, levels, &words, &mut sums);
                prop_assert_eq!(&sums, &expected);
            }
        }
    }
}
