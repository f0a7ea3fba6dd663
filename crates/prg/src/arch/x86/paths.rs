//! Paths through a group of half-trees with VAES: a level of 32 trees is eight vectors, enough to keep AES busy.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::vaes::{Vaes128, broadcast, encrypt, load, mix, store, twice};
use crate::Block;
use crate::paths::GROUP;

/// Vectors of four nodes in a group.
pub(super) const VECTORS: usize = GROUP / 4;

/// Blocks of a cache line.
const LINE: usize = 4;

/// Levels whose words are asked for ahead. A level takes too long for the processor to see far enough by itself.
const LEVELS_AHEAD: usize = 16;

impl Vaes128 {
    /// One group; `words` holds as many words for each level as there are nodes.
    pub(crate) fn walk_group(&self, nodes: &mut [Block], paths: &[u64], words: &[[u8; 16]], sums: &mut [Block]) {
        let (count, mut work) = (nodes.len(), Walk::default());
        work.nodes[..count].copy_from_slice(nodes);
        work.sums[..count].copy_from_slice(sums);
        work.paths[..count].copy_from_slice(paths);
        let padded;
        let words = if count == GROUP {
            words
        } else {
            padded = pad(words, count);
            &padded
        };
        // SAFETY: this value exists, so the processor has AVX-512F and VAES.
        unsafe { walk(&self.round_keys, &mut work, words.as_chunks().0) };
        nodes.copy_from_slice(&work.nodes[..count]);
        sums.copy_from_slice(&work.sums[..count]);
    }

    /// One group; `words` as for [`Self::walk_group`].
    pub(crate) fn plant_group(
        &self,
        nodes: &mut [Block],
        differences: &[Block],
        paths: &[u64],
        words: &mut [[u8; 16]],
    ) {
        let (count, mut work) = (nodes.len(), Plant::default());
        work.nodes[..count].copy_from_slice(nodes);
        work.differences[..count].copy_from_slice(differences);
        work.paths[..count].copy_from_slice(paths);
        if count == GROUP {
            // SAFETY: this value exists, so the processor has AVX-512F and VAES.
            unsafe { plant(&self.round_keys, &mut work, words.as_chunks_mut().0) };
        } else {
            let mut padded = pad(words, count);
            // SAFETY: as above.
            unsafe { plant(&self.round_keys, &mut work, padded.as_chunks_mut().0) };
            for (words, padded) in words.chunks_exact_mut(count).zip(padded.chunks_exact(GROUP)) {
                words.copy_from_slice(&padded[..count]);
            }
        }
        nodes.copy_from_slice(&work.nodes[..count]);
    }

    /// One group; `words` as for [`Self::walk_group`].
    pub(crate) fn leaves_group(&self, roots: &[Block], words: &[[u8; 16]], out: &mut [[u64; 2]]) {
        let (count, row) = (roots.len(), out.len() / roots.len());
        let mut all = [0; GROUP];
        all[..count].copy_from_slice(roots);
        if count == GROUP {
            // SAFETY: this value exists, so the processor has AVX-512F and VAES.
            unsafe { leaves(&self.round_keys, &all, words.as_chunks().0, out) };
        } else {
            let mut padded = vec![[0; 2]; GROUP * row];
            // SAFETY: as above.
            unsafe { leaves(&self.round_keys, &all, pad(words, count).as_chunks().0, &mut padded) };
            out.copy_from_slice(&padded[..count * row]);
        }
    }

    /// See [`crate::arch::Aes128::hash`].
    pub(crate) fn hash(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<GROUP>();
        for group in groups {
            // SAFETY: this value exists, so the processor has AVX-512F and VAES.
            unsafe { hash(&self.round_keys, group) };
        }
        if !rest.is_empty() {
            let mut group = [0; GROUP];
            group[..rest.len()].copy_from_slice(rest);
            // SAFETY: as above.
            unsafe { hash(&self.round_keys, &mut group) };
            rest.copy_from_slice(&group[..rest.len()]);
        }
    }
}

#[derive(Default)]
struct Walk {
    nodes: [Block; GROUP],
    sums: [Block; GROUP],
    paths: [u64; GROUP],
}

#[derive(Default)]
struct Plant {
    nodes: [Block; GROUP],
    differences: [Block; GROUP],
    paths: [u64; GROUP],
}

/// A group of `count` trees as one of [`GROUP`] trees.
fn pad(words: &[[u8; 16]], count: usize) -> Vec<[u8; 16]> {
    let mut padded = vec![[0; 16]; words.len() / count * GROUP];
    for (padded, words) in padded.chunks_exact_mut(GROUP).zip(words.chunks_exact(count)) {
        padded[..count].copy_from_slice(words);
    }
    padded
}

#[target_feature(enable = "avx512f,vaes")]
fn walk(round_keys: &[Block; 11], work: &mut Walk, words: &[[[u8; 16]; GROUP]]) {
    let keys = broadcast(round_keys);
    let (nodes, sums) = (work.nodes.as_chunks_mut().0, work.sums.as_chunks_mut().0);
    let mut states: [__m512i; VECTORS] = [_mm512_setzero_si512(); VECTORS];
    let mut left_sums = states;
    let mut paths = states;
    for i in 0..VECTORS {
        states[i] = load(&nodes[i]);
        left_sums[i] = load(&sums[i]);
        paths[i] = doubled(&work.paths, i);
    }
    for (level, words) in words.iter().enumerate().map(|(i, word)| (words.len() - 1 - i, word)) {
        let turn = _mm512_set1_epi64(1_u64.wrapping_shl(level as u32).cast_signed());
        let mut outer = states;
        for state in &mut outer {
            *state = mix(*state);
        }
        encrypt(&keys, &mut outer);
        for i in 0..VECTORS {
            prefetch(words, i);
            let hashed = _mm512_xor_si512(outer[i], mix(states[i]));
            let left = _mm512_mask_xor_epi64(hashed, is_marked(states[i]), hashed, load_bytes(words, i));
            let right_turn = _mm512_test_epi64_mask(paths[i], turn);
            left_sums[i] = _mm512_mask_xor_epi64(left_sums[i], right_turn, left_sums[i], left);
            states[i] = _mm512_mask_xor_epi64(left, right_turn, left, states[i]);
        }
    }
    for i in 0..VECTORS {
        store(&mut nodes[i], states[i]);
        store(&mut sums[i], left_sums[i]);
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn plant(round_keys: &[Block; 11], work: &mut Plant, words: &mut [[[u8; 16]; GROUP]]) {
    let keys = broadcast(round_keys);
    let nodes = work.nodes.as_chunks_mut().0;
    let differences = work.differences.as_chunks().0;
    let levels = words.len();
    for (level, words) in words.iter_mut().enumerate() {
        let turn = _mm512_set1_epi64(1_u64.wrapping_shl((levels - 1 - level) as u32).cast_signed());
        // Both parties' nodes of half a group are the eight vectors that keep AES busy.
        for half in [0, VECTORS / 2] {
            let mut mixed = [_mm512_setzero_si512(); VECTORS];
            for i in 0..VECTORS / 2 {
                let node = load(&nodes[half + i]);
                mixed[i] = mix(node);
                mixed[VECTORS / 2 + i] = mix(_mm512_xor_si512(node, load(&differences[half + i])));
            }
            let mut outer = mixed;
            encrypt(&keys, &mut outer);
            for i in 0..VECTORS / 2 {
                let (node, difference) = (load(&nodes[half + i]), load(&differences[half + i]));
                let hashed = _mm512_xor_si512(outer[i], mixed[i]);
                let peer_hashed = _mm512_xor_si512(outer[VECTORS / 2 + i], mixed[VECTORS / 2 + i]);
                let left_turn = _mm512_testn_epi64_mask(doubled(&work.paths, half + i), turn);
                let both = _mm512_xor_si512(hashed, peer_hashed);
                // The child off the path becomes the same for both parties.
                let word = _mm512_mask_xor_epi64(both, left_turn, both, difference);
                store_bytes(words, half + i, word);
                let left = _mm512_mask_xor_epi64(hashed, is_marked(node), hashed, word);
                store(&mut nodes[half + i], _mm512_mask_xor_epi64(left, !left_turn, left, node));
            }
        }
    }
}

/// Depth first, so that what waits is one node of each level.
#[target_feature(enable = "avx512f,vaes")]
fn leaves(round_keys: &[Block; 11], roots: &[Block; GROUP], words: &[[[u8; 16]; GROUP]], out: &mut [[u64; 2]]) {
    let keys = broadcast(round_keys);
    let (depth, row) = (words.len() - 1, out.len() / GROUP);
    let mut nodes = [_mm512_setzero_si512(); VECTORS];
    for (node, roots) in nodes.iter_mut().zip(roots.as_chunks().0) {
        *node = load(roots);
    }
    // The right child of each level that is entered next.
    let mut right = vec![nodes; depth + 1];
    // As many neighbours as fill a cache line of a tree's leaves, which then is written once.
    let mut line = [[0; GROUP]; LINE];
    for leaf in 0..row {
        let first = if leaf == 0 { 0 } else { depth - leaf.trailing_zeros() as usize };
        nodes = right[first];
        for level in first..depth {
            let parents = nodes;
            nodes = corrected(&keys, &parents, &words[level]);
            for i in 0..VECTORS {
                right[level + 1][i] = _mm512_xor_si512(nodes[i], parents[i]);
            }
        }
        let leaves = corrected(&keys, &nodes, &words[depth]);
        for (line, leaves) in line[leaf % LINE].as_chunks_mut().0.iter_mut().zip(leaves) {
            store(line, leaves);
        }
        if leaf % LINE == LINE - 1 || leaf == row - 1 {
            for (tree, out) in out.chunks_exact_mut(row).enumerate() {
                for (out, line) in out[leaf - leaf % LINE..=leaf].iter_mut().zip(&line) {
                    *out = [line[tree] as u64, (line[tree] >> 64) as u64];
                }
            }
        }
    }
}

/// The hash of each node, with the word where the node's lowest bit is set.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn corrected(keys: &[__m512i; 11], nodes: &[__m512i; VECTORS], words: &[[u8; 16]; GROUP]) -> [__m512i; VECTORS] {
    let mut outer = *nodes;
    for node in &mut outer {
        *node = mix(*node);
    }
    encrypt(keys, &mut outer);
    for i in 0..VECTORS {
        let hashed = _mm512_xor_si512(outer[i], mix(nodes[i]));
        outer[i] = _mm512_mask_xor_epi64(hashed, is_marked(nodes[i]), hashed, load_bytes(words, i));
    }
    outer
}

#[target_feature(enable = "avx512f,vaes")]
fn hash(round_keys: &[Block; 11], blocks: &mut [Block; GROUP]) {
    let keys = broadcast(round_keys);
    let blocks = blocks.as_chunks_mut().0;
    let mut mixed = [_mm512_setzero_si512(); VECTORS];
    for i in 0..VECTORS {
        mixed[i] = mix(load(&blocks[i]));
    }
    let mut outer = mixed;
    encrypt(&keys, &mut outer);
    for i in 0..VECTORS {
        store(&mut blocks[i], _mm512_xor_si512(outer[i], mixed[i]));
    }
}

/// Both halves of every block whose lowest bit is set.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn is_marked(nodes: __m512i) -> __mmask8 {
    let low_halves = _mm512_shuffle_epi32::<0b0100_0100>(nodes);
    _mm512_test_epi64_mask(low_halves, _mm512_set1_epi64(1))
}

/// Paths `4 vector .. 4 vector + 4`, each in both halves of its block.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn doubled(paths: &[u64; GROUP], vector: usize) -> __m512i {
    twice(&paths.as_chunks().0[vector])
}

/// Asks for the words that are [`LEVELS_AHEAD`], in this group or the next one in memory.
#[inline]
fn prefetch(words: &[[u8; 16]; GROUP], vector: usize) {
    let ahead = words.as_ptr().wrapping_add(LEVELS_AHEAD * GROUP + 4 * vector);
    // SAFETY: a prefetch reads nothing, and may be given any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(words: &[[u8; 16]; GROUP], vector: usize) -> __m512i {
    let words = &words.as_chunks::<4>().0[vector];
    // SAFETY: the reference covers the 64 bytes read, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_bytes(words: &mut [[u8; 16]; GROUP], vector: usize, value: __m512i) {
    let words = &mut words.as_chunks_mut::<4>().0[vector];
    // SAFETY: the reference covers the 64 bytes written, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}
