//! Sums of values along paths with VAES: a level of 32 trees is twice eight vectors of AES.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::paths::{VECTORS, doubled, is_marked};
use super::vaes::{Vaes128, broadcast, encrypt, load, mix};
use crate::Block;
use crate::paths::GROUP;
use crate::tags::LEVEL_BYTES;

/// Bytes of a level of a whole group.
const GROUP_BYTES: usize = GROUP * LEVEL_BYTES;

/// Levels whose words are asked for ahead.
const LEVELS_AHEAD: usize = 10;

impl Vaes128 {
    /// One group; `words` holds whole levels for as many trees as there are roots.
    pub(crate) fn walk_tags_group(&self, roots: &[Block], paths: &[u64], words: &[u8], sums: &mut [u64]) {
        let (count, mut work) = (roots.len(), Work::default());
        work.roots[..count].copy_from_slice(roots);
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
        sums.copy_from_slice(&work.sums[..count]);
    }
}

#[derive(Default)]
struct Work {
    roots: [Block; GROUP],
    paths: [u64; GROUP],
    sums: [u64; GROUP],
}

/// A group of `count` trees as one of [`GROUP`] trees.
fn pad(words: &[u8], count: usize) -> Vec<u8> {
    let mut padded = vec![0; words.len() / count * GROUP];
    for (padded, words) in padded.chunks_exact_mut(GROUP_BYTES).zip(words.chunks_exact(count * LEVEL_BYTES)) {
        let (trees, values) = words.split_at(16 * count);
        padded[..trees.len()].copy_from_slice(trees);
        padded[16 * GROUP..][..values.len()].copy_from_slice(values);
    }
    padded
}

/// Sums are kept in the low halves of blocks; the high halves mean nothing.
#[target_feature(enable = "avx512f,vaes")]
fn walk(round_keys: &[Block; 11], work: &mut Work, words: &[[u8; GROUP_BYTES]]) {
    let keys = broadcast(round_keys);
    let mut states: [__m512i; VECTORS] = [_mm512_setzero_si512(); VECTORS];
    let mut sums = states;
    let mut paths = states;
    for (i, roots) in work.roots.as_chunks().0.iter().enumerate() {
        states[i] = load(roots);
        paths[i] = doubled(&work.paths, i);
    }
    for (level, words) in words.iter().enumerate().map(|(i, word)| (words.len() - 1 - i, word)) {
        let turn = _mm512_set1_epi64(1_u64.wrapping_shl(level as u32).cast_signed());
        prefetch(words);
        let mut outer = states;
        for state in &mut outer {
            *state = mix(*state);
        }
        encrypt(&keys, &mut outer);
        let mut left = outer;
        for i in 0..VECTORS {
            let hashed = _mm512_xor_si512(outer[i], mix(states[i]));
            left[i] = _mm512_mask_xor_epi64(hashed, is_marked(states[i]), hashed, tree_words(words, i));
            let right_turn = _mm512_test_epi64_mask(paths[i], turn);
            states[i] = _mm512_mask_xor_epi64(left[i], right_turn, left[i], states[i]);
        }
        let values = values(&keys, &left, words);
        for i in 0..VECTORS {
            let right_turn = _mm512_test_epi64_mask(paths[i], turn);
            sums[i] = _mm512_mask_xor_epi64(sums[i], right_turn, sums[i], values[i]);
        }
    }
    let values = values(&keys, &states, &words[words.len() - 1]);
    for (i, out) in work.sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let sum = _mm512_xor_si512(sums[i], values[i]);
        let low = _mm512_castsi512_si256(_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 0, 0, 0, 0), sum));
        // SAFETY: the reference covers the 32 bytes written, and the instruction asks for no alignment.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), low) };
    }
}

/// The values of nodes, in the low halves.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn values(keys: &[__m512i; 11], nodes: &[__m512i; VECTORS], words: &[u8; GROUP_BYTES]) -> [__m512i; VECTORS] {
    let two = _mm512_setr_epi64(2, 0, 2, 0, 2, 0, 2, 0);
    let mut mixed = *nodes;
    for node in &mut mixed {
        *node = mix(_mm512_xor_si512(*node, two));
    }
    let mut outer = mixed;
    encrypt(keys, &mut outer);
    for i in 0..VECTORS {
        let hashed = _mm512_xor_si512(outer[i], mixed[i]);
        outer[i] = _mm512_mask_xor_epi64(hashed, is_marked(nodes[i]), hashed, value_words(words, i));
    }
    outer
}

/// The words of trees `4 vector .. 4 vector + 4`.
#[inline]
#[target_feature(enable = "avx512f")]
fn tree_words(words: &[u8; GROUP_BYTES], vector: usize) -> __m512i {
    let words = &words.as_chunks::<64>().0[vector];
    // SAFETY: the reference covers the 64 bytes read, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// The value words of trees `4 vector .. 4 vector + 4`, each twice.
#[inline]
#[target_feature(enable = "avx512f")]
fn value_words(words: &[u8; GROUP_BYTES], vector: usize) -> __m512i {
    let words = &words[16 * GROUP..].as_chunks::<32>().0[vector];
    // SAFETY: the reference covers the 32 bytes read, and the instruction asks for no alignment.
    let four = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), _mm512_castsi256_si512(four))
}

/// Asks for the words that are [`LEVELS_AHEAD`], in this group or the next one in memory.
#[inline]
fn prefetch(words: &[u8; GROUP_BYTES]) {
    for line in 0..GROUP_BYTES / 64 {
        let ahead = words.as_ptr().wrapping_add(LEVELS_AHEAD * GROUP_BYTES + 64 * line);
        // SAFETY: a prefetch reads nothing, and may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
    }
}
