//! AES-128 with VAES on 256-bit vectors, two blocks to a vector, for processors that have VAES and no AVX-512.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::vaes::schedule;
use crate::Block;
use crate::arch::portable;
use crate::ggm::{Correction, TREES};

/// Vectors in flight: half the register file, and enough for two instructions a cycle that take four cycles each.
const VECTORS: usize = 8;

/// Blocks in flight.
const BATCH: usize = 2 * VECTORS;

/// Levels of [`TREES`] nodes in flight.
const LEVELS: usize = BATCH / TREES;

scheduled!(NarrowVaes128, ["aes", "avx2", "vaes"]);

impl NarrowVaes128 {
    /// See [`crate::arch::Aes128::hash`].
    pub(crate) fn hash(&self, blocks: &mut [Block]) {
        // SAFETY: this value exists, so the processor has AVX2 and VAES.
        unsafe { hash(&self.round_keys, blocks) }
    }
}

#[target_feature(enable = "avx2,vaes")]
fn counters(round_keys: &[Block; 11], first: u64, out: &mut [Block]) {
    let keys = broadcast(round_keys);
    let mut counter = first;
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    for batch in batches {
        counter_batch(&keys, counter, batch);
        counter = counter.wrapping_add(BATCH as u64);
    }
    if !rest.is_empty() {
        let mut batch = [0; BATCH];
        counter_batch(&keys, counter, &mut batch);
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2,vaes")]
fn counter_batch(keys: &[__m256i; 11], first: u64, out: &mut [Block; BATCH]) {
    let mut states = [_mm256_setzero_si256(); VECTORS];
    for (i, state) in states.iter_mut().enumerate() {
        let [even, odd] = [0, 1].map(|block| first.wrapping_add(2 * i as u64 + block).cast_signed());
        *state = _mm256_setr_epi64x(even, 0, odd, 0);
    }
    encrypt(keys, &mut states);
    for (out, state) in out.as_chunks_mut().0.iter_mut().zip(states) {
        store(out, state);
    }
}

#[target_feature(enable = "avx2,vaes")]
fn hashed_bits<const N: usize>(round_keys: &[Block; 11], blocks: &[Block], offset: Block, out: &mut [[u64; N]]) {
    let (keys, offset) = (broadcast(round_keys), broadcast_one(offset));
    for (blocks, words) in blocks.chunks(64).zip(out) {
        *words = [0; N];
        for (batch, blocks) in blocks.chunks(BATCH).enumerate() {
            for (i, low) in some_low_halves(&keys, offset, blocks).into_iter().enumerate() {
                for (bit, word) in words.iter_mut().enumerate() {
                    let top = _mm256_sll_epi64(low, _mm_cvtsi32_si128(63 - bit as i32));
                    let bits = _mm256_movemask_pd(_mm256_castsi256_pd(top)).cast_unsigned();
                    *word |= u64::from(bits) << (BATCH * batch + 4 * i);
                }
            }
        }
        words.iter_mut().for_each(|word| *word &= u64::MAX >> (64 - blocks.len()));
    }
}

#[target_feature(enable = "avx2,vaes")]
fn hashed_words(round_keys: &[Block; 11], blocks: &[Block], offset: Block, out: &mut [u64]) {
    let (keys, offset) = (broadcast(round_keys), broadcast_one(offset));
    for (blocks, words) in blocks.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        let mut halves = [0; BATCH];
        let lows = some_low_halves(&keys, offset, blocks);
        for (halves, low) in halves.as_chunks_mut::<4>().0.iter_mut().zip(lows) {
            // SAFETY: the reference covers the 32 bytes written, and the instruction asks for no alignment.
            unsafe { _mm256_storeu_si256(halves.as_mut_ptr().cast(), low) };
        }
        words.copy_from_slice(&halves[..words.len()]);
    }
}

/// As [`low_halves`], of at most [`BATCH`] blocks.
#[inline]
#[target_feature(enable = "avx2,vaes")]
fn some_low_halves(keys: &[__m256i; 11], offset: __m256i, blocks: &[Block]) -> [__m256i; VECTORS / 2] {
    match blocks.as_array() {
        Some(blocks) => low_halves(keys, offset, blocks),
        None => {
            let mut batch = [0; BATCH];
            batch[..blocks.len()].copy_from_slice(blocks);
            low_halves(keys, offset, &batch)
        }
    }
}

/// The low halves of `AES(x) ^ x` for `x = blocks[i] ^ offset`, four to a vector.
#[inline]
#[target_feature(enable = "avx2,vaes")]
fn low_halves(keys: &[__m256i; 11], offset: __m256i, blocks: &[Block; BATCH]) -> [__m256i; VECTORS / 2] {
    let (blocks, _) = blocks.as_chunks();
    let mut hashes = [_mm256_setzero_si256(); VECTORS];
    for (hash, blocks) in hashes.iter_mut().zip(blocks) {
        *hash = _mm256_xor_si256(load(blocks), offset);
    }
    encrypt(keys, &mut hashes);
    for (hash, blocks) in hashes.iter_mut().zip(blocks) {
        *hash = _mm256_xor_si256(*hash, _mm256_xor_si256(load(blocks), offset));
    }
    let mut lows = [_mm256_setzero_si256(); VECTORS / 2];
    for (low, pair) in lows.iter_mut().zip(hashes.as_chunks::<2>().0) {
        *low = _mm256_permute4x64_epi64::<0b1101_1000>(_mm256_unpacklo_epi64(pair[0], pair[1]));
    }
    lows
}

#[target_feature(enable = "avx2,vaes")]
fn children(
    round_keys: &[Block; 11],
    parents: &mut [[Block; TREES]],
    right: &mut [[Block; TREES]],
    correction: &Correction,
) -> [Block; TREES] {
    portable::correct(parents.as_flattened_mut(), correction);
    let keys = broadcast(round_keys);
    let mut sum = [_mm256_setzero_si256(); 2];
    let (parents, parents_left) = parents.as_chunks_mut::<LEVELS>();
    let (right, right_left) = right.as_chunks_mut::<LEVELS>();
    for (parents, right) in parents.iter_mut().zip(right) {
        children_batch(&keys, parents, right, &mut sum);
    }
    for (parents, right) in parents_left.iter_mut().zip(right_left) {
        // The other nodes of this batch mean nothing, and their children are left out.
        let (mut batch, mut children) = ([[0; TREES]; LEVELS], [[0; TREES]; LEVELS]);
        batch[0] = *parents;
        let mut sums = [_mm256_setzero_si256(); 2];
        children_batch(&keys, &mut batch, &mut children, &mut sums);
        (*parents, *right) = (batch[0], children[0]);
        for (sum, blocks) in sum.iter_mut().zip(parents.as_chunks().0) {
            *sum = _mm256_xor_si256(*sum, load(blocks));
        }
    }
    let mut sums = [0; TREES];
    for (sums, sum) in sums.as_chunks_mut().0.iter_mut().zip(sum) {
        store(sums, sum);
    }
    sums
}

/// Adds the left children to `sum`, of two trees in each vector.
#[inline]
#[target_feature(enable = "avx2,vaes")]
fn children_batch(
    keys: &[__m256i; 11],
    parents: &mut [[Block; TREES]; LEVELS],
    right: &mut [[Block; TREES]; LEVELS],
    sum: &mut [__m256i; 2],
) {
    let (parents, _) = parents.as_flattened_mut().as_chunks_mut();
    let (right, _) = right.as_flattened_mut().as_chunks_mut();
    let mut states = [_mm256_setzero_si256(); VECTORS];
    for (state, parents) in states.iter_mut().zip(parents.iter()) {
        *state = mix(load(parents));
    }
    encrypt(keys, &mut states);
    for (i, (parents, right)) in parents.iter_mut().zip(right).enumerate() {
        let parent = load(parents);
        let child = _mm256_xor_si256(states[i], mix(parent));
        store(right, _mm256_xor_si256(parent, child));
        store(parents, child);
        sum[i % 2] = _mm256_xor_si256(sum[i % 2], child);
    }
}

#[target_feature(enable = "avx2,vaes")]
fn hash(round_keys: &[Block; 11], blocks: &mut [Block]) {
    let keys = broadcast(round_keys);
    let (batches, rest) = blocks.as_chunks_mut::<BATCH>();
    for batch in batches {
        hash_batch(&keys, batch);
    }
    if !rest.is_empty() {
        let mut batch = [0; BATCH];
        batch[..rest.len()].copy_from_slice(rest);
        hash_batch(&keys, &mut batch);
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2,vaes")]
fn hash_batch(keys: &[__m256i; 11], blocks: &mut [Block; BATCH]) {
    let (blocks, _) = blocks.as_chunks_mut();
    let mut states = [_mm256_setzero_si256(); VECTORS];
    for (state, blocks) in states.iter_mut().zip(blocks.iter()) {
        *state = mix(load(blocks));
    }
    encrypt(keys, &mut states);
    for (state, blocks) in states.into_iter().zip(blocks) {
        store(blocks, _mm256_xor_si256(state, mix(load(blocks))));
    }
}

/// In every block, `(high, low)` becomes `(high ^ low, high)`.
#[inline]
#[target_feature(enable = "avx2")]
fn mix(x: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_unpackhi_epi64(x, x), _mm256_slli_si256::<8>(x))
}

#[inline]
#[target_feature(enable = "avx2,vaes")]
fn encrypt(keys: &[__m256i; 11], states: &mut [__m256i; VECTORS]) {
    for state in states.iter_mut() {
        *state = _mm256_xor_si256(*state, keys[0]);
    }
    for key in &keys[1..10] {
        for state in states.iter_mut() {
            *state = _mm256_aesenc_epi128(*state, *key);
        }
    }
    for state in states.iter_mut() {
        *state = _mm256_aesenclast_epi128(*state, keys[10]);
    }
}

/// Every round key in both lanes of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(round_keys: &[Block; 11]) -> [__m256i; 11] {
    let mut keys = [_mm256_setzero_si256(); 11];
    for (key, &block) in keys.iter_mut().zip(round_keys) {
        *key = broadcast_one(block);
    }
    keys
}

/// A block in both lanes of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_one(block: Block) -> __m256i {
    _mm256_broadcastsi128_si256(_mm_set_epi64x((block >> 64) as i64, block as i64))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(blocks: &[Block; 2]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read, and the instruction asks for no alignment.
    unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(blocks: &mut [Block; 2], vector: __m256i) {
    // SAFETY: the reference covers the 32 bytes written, and the instruction asks for no alignment.
    unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), vector) }
}
