//! Paths through many half-trees: the portable form, which takes any hash, and the choice between it and VAES.

use aes::Aes128Enc;

use super::aes::{Aes128, BATCH, encrypt, mix};
use crate::Block;
use crate::paths::GROUP;

impl Aes128 {
    /// See [`crate::paths::walk`].
    pub(crate) fn walk(
        &self,
        nodes: &mut [Block],
        paths: &[u64],
        levels: usize,
        words: &[[u8; 16]],
        sums: &mut [Block],
    ) {
        let groups = nodes.chunks_mut(GROUP).zip(paths.chunks(GROUP)).zip(sums.chunks_mut(GROUP));
        let mut rest = words;
        for ((nodes, paths), sums) in groups {
            let (words, later) = rest.split_at(nodes.len() * levels);
            rest = later;
            match self {
                Self::Crate(aes) => walk_group(|blocks| hash(aes, blocks), nodes, paths, words, sums),
                #[cfg(target_arch = "x86_64")]
                Self::Vaes(aes) => aes.walk_group(nodes, paths, words, sums),
                #[cfg(target_arch = "x86_64")]
                Self::Narrow(aes) => walk_group(|blocks| aes.hash(blocks), nodes, paths, words, sums),
            }
        }
    }

    /// See [`crate::paths::plant`].
    pub(crate) fn plant(
        &self,
        nodes: &mut [Block],
        differences: &[Block],
        paths: &[u64],
        levels: usize,
        words: &mut [[u8; 16]],
    ) {
        let groups = nodes.chunks_mut(GROUP).zip(differences.chunks(GROUP)).zip(paths.chunks(GROUP));
        let mut rest = words;
        for ((nodes, differences), paths) in groups {
            let (words, later) = rest.split_at_mut(nodes.len() * levels);
            rest = later;
            match self {
                Self::Crate(aes) => plant_group(|blocks| hash(aes, blocks), nodes, differences, paths, words),
                #[cfg(target_arch = "x86_64")]
                Self::Vaes(aes) => aes.plant_group(nodes, differences, paths, words),
                #[cfg(target_arch = "x86_64")]
                Self::Narrow(aes) => plant_group(|blocks| aes.hash(blocks), nodes, differences, paths, words),
            }
        }
    }

    /// See [`crate::paths::leaves`].
    pub(crate) fn leaves(&self, roots: &[Block], levels: usize, words: &[[u8; 16]], out: &mut [[u64; 2]]) {
        let groups = roots.chunks(GROUP).zip(words.chunks(GROUP * levels)).zip(out.chunks_mut(GROUP << (levels - 1)));
        for ((roots, words), out) in groups {
            match self {
                Self::Crate(aes) => leaves_group(|blocks| hash(aes, blocks), roots, words, out),
                #[cfg(target_arch = "x86_64")]
                Self::Vaes(aes) => aes.leaves_group(roots, words, out),
                #[cfg(target_arch = "x86_64")]
                Self::Narrow(aes) => leaves_group(|blocks| aes.hash(blocks), roots, words, out),
            }
        }
    }

    /// Replaces every `x` by `H(x)`; see [`crate::paths::hash`].
    pub(crate) fn hash(&self, blocks: &mut [Block]) {
        match self {
            Self::Crate(aes) => hash(aes, blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(aes) => aes.hash(blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Narrow(aes) => aes.hash(blocks),
        }
    }
}

fn hash(aes: &Aes128Enc, blocks: &mut [Block]) {
    for blocks in blocks.chunks_mut(BATCH) {
        let mut outer = [0; BATCH];
        let outer = &mut outer[..blocks.len()];
        for (outer, block) in outer.iter_mut().zip(blocks.iter_mut()) {
            *block = mix(*block);
            *outer = *block;
        }
        encrypt(aes, outer);
        blocks.iter_mut().zip(outer).for_each(|(block, outer)| *block ^= *outer);
    }
}

/// One group; `hash` is [`Aes128::hash`], and `words` holds as many words for each level as there are nodes.
fn walk_group(hash: impl Fn(&mut [Block]), nodes: &mut [Block], paths: &[u64], words: &[[u8; 16]], sums: &mut [Block]) {
    let levels = words.len() / nodes.len();
    for (level, words) in words.chunks_exact(nodes.len()).enumerate() {
        let mut left = [0; GROUP];
        let left = &mut left[..nodes.len()];
        left.copy_from_slice(nodes);
        hash(left);
        for (i, (node, left)) in nodes.iter_mut().zip(left).enumerate() {
            *left ^= Block::from_le_bytes(words[i]) & mask(*node);
            let right_turn = mask(Block::from(paths[i] >> (levels - 1 - level)));
            sums[i] ^= *left & right_turn;
            *node = *left ^ *node & right_turn;
        }
    }
}

/// One group; `hash` and `words` as for [`walk_group`].
fn plant_group(
    hash: impl Fn(&mut [Block]),
    nodes: &mut [Block],
    differences: &[Block],
    paths: &[u64],
    words: &mut [[u8; 16]],
) {
    let levels = words.len() / nodes.len();
    for (level, words) in words.chunks_exact_mut(nodes.len()).enumerate() {
        let mut hashes = [[0; GROUP]; 2];
        for (i, node) in nodes.iter().enumerate() {
            hashes[0][i] = *node;
            hashes[1][i] = node ^ differences[i];
        }
        hash(hashes.as_flattened_mut());
        for (i, node) in nodes.iter_mut().enumerate() {
            let right_turn = mask(Block::from(paths[i] >> (levels - 1 - level)));
            // The child off the path becomes the same for both parties.
            let word = hashes[0][i] ^ hashes[1][i] ^ differences[i] & !right_turn;
            words[i] = word.to_le_bytes();
            *node = hashes[0][i] ^ word & mask(*node) ^ *node & right_turn;
        }
    }
}

/// One group, level by level; `hash` and `words` as for [`walk_group`]. Node `j` of tree `i` is at `j * n + i`.
fn leaves_group(hash: impl Fn(&mut [Block]), roots: &[Block], words: &[[u8; 16]], out: &mut [[u64; 2]]) {
    let (n, row) = (roots.len(), out.len() / roots.len());
    let mut nodes = roots.to_vec();
    for words in words.chunks_exact(n) {
        let mut hashed = nodes.clone();
        hash(&mut hashed);
        for (i, (hashed, node)) in hashed.iter_mut().zip(&nodes).enumerate() {
            *hashed ^= Block::from_le_bytes(words[i % n]) & mask(*node);
        }
        if nodes.len() == n * row {
            nodes = hashed;
            break;
        }
        let families = hashed.chunks_exact(n).zip(nodes.chunks_exact(n));
        nodes = families
            .flat_map(|(left, nodes)| {
                left.iter().copied().chain(left.iter().zip(nodes).map(|(left, node)| left ^ node))
            })
            .collect();
    }
    for (j, leaves) in nodes.chunks_exact(n).enumerate() {
        for (i, leaf) in leaves.iter().enumerate() {
            out[i * row + j] = [*leaf as u64, (leaf >> 64) as u64];
        }
    }
}

/// All ones if the lowest bit is set, else zero.
///
/// The compiler must not learn that the bit is one of two values: it would make a branch of the mask, on a secret.
fn mask(block: Block) -> Block {
    std::hint::black_box(block & 1).wrapping_neg()
}
