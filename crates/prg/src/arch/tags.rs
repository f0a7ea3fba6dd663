//! Sums of values along paths: the portable form, and the choice between it and VAES.

use super::aes::Aes128;
use crate::Block;
use crate::paths::GROUP;
use crate::tags::LEVEL_BYTES;

impl Aes128 {
    /// See [`crate::tags::walk`].
    pub(crate) fn walk_tags(&self, roots: &[Block], paths: &[u64], levels: usize, words: &[u8], sums: &mut [u64]) {
        let groups = roots.chunks(GROUP).zip(paths.chunks(GROUP)).zip(sums.chunks_mut(GROUP));
        for (((roots, paths), sums), words) in groups.zip(words.chunks(GROUP * levels * LEVEL_BYTES)) {
            match self {
                #[cfg(target_arch = "x86_64")]
                Self::Vaes(aes) => aes.walk_tags_group(roots, paths, words, sums),
                _ => self.walk_tags_group(roots, paths, words, sums),
            }
        }
    }

    /// One group, level by level.
    fn walk_tags_group(&self, roots: &[Block], paths: &[u64], words: &[u8], sums: &mut [u64]) {
        let (count, mut nodes) = (roots.len(), [0; GROUP]);
        nodes[..count].copy_from_slice(roots);
        sums.fill(0);
        let levels = words.len() / (count * LEVEL_BYTES);
        let mut values: &[[u8; 8]] = &[];
        for (level, words) in words.chunks_exact(count * LEVEL_BYTES).enumerate() {
            let trees;
            (trees, values) = split(words, count);
            let (mut left, mut turns) = ([0; GROUP], [0; GROUP]);
            turns.iter_mut().zip(paths).for_each(|(turn, path)| *turn = path >> (levels - 1 - level) & 1);
            self.walk(&mut nodes[..count], &turns[..count], 1, trees, &mut left[..count]);
            self.add_tags(&mut left, &turns, values, sums);
        }
        self.add_tags(&mut nodes, &[1; GROUP], values, sums);
    }

    /// Adds the values of those `nodes` whose `turns` are 1. The nodes are used up.
    fn add_tags(&self, nodes: &mut [Block; GROUP], turns: &[u64; GROUP], values: &[[u8; 8]], sums: &mut [u64]) {
        let marks = nodes.map(|node| (node as u64 & 1).wrapping_neg());
        nodes.iter_mut().for_each(|node| *node ^= 2);
        self.hash(nodes);
        for (i, (sum, value)) in sums.iter_mut().zip(values).enumerate() {
            *sum ^= (nodes[i] as u64 ^ u64::from_le_bytes(*value) & marks[i]) & turns[i].wrapping_neg();
        }
    }
}

/// The words of a level for `count` trees: those of the trees, and those of values.
fn split(words: &[u8], count: usize) -> (&[[u8; 16]], &[[u8; 8]]) {
    let (trees, values) = words.split_at(16 * count);
    (trees.as_chunks().0, values.as_chunks().0)
}
