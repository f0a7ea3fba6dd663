//! AES-128 with VAES on 512-bit vectors: four blocks to a vector.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::Block;
use crate::ggm::{Correction, TREES};

/// Vectors in flight: with the round keys they fill the register file.
const COUNTER_VECTORS: usize = 16;

/// As above; hashing keeps twice as many values.
const HASH_VECTORS: usize = 8;

scheduled!(Vaes128, ["aes", "avx2", "avx512f", "vaes"]);

/// The key expansion of FIPS 197, section 5.2.
#[target_feature(enable = "aes")]
pub(super) fn schedule(key: Block) -> [Block; 11] {
    let mut keys = [key; 11];
    macro_rules! expand {
        ($($round:literal: $constant:literal),*) => {
            $(keys[$round] = next_key::<$constant>(keys[$round - 1]);)*
        };
    }
    expand!(1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 32, 7: 64, 8: 128, 9: 27, 10: 54);
    keys
}

#[inline]
#[target_feature(enable = "aes")]
fn next_key<const CONSTANT: i32>(key: Block) -> Block {
    let last = _mm_set_epi64x((key >> 64) as i64, key as i64);
    let assist = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<CONSTANT>(last));
    let word = Block::from(_mm_cvtsi128_si32(assist).cast_unsigned());
    // Word `i` of the key is the sum of the new word and of words `0 ..= i` of the last key.
    let sums = key ^ key << 32 ^ key << 64 ^ key << 96;
    sums ^ word ^ word << 32 ^ word << 64 ^ word << 96
}

#[target_feature(enable = "avx512f,vaes")]
fn counters(round_keys: &[Block; 11], first: u64, out: &mut [Block]) {
    let keys = broadcast(round_keys);
    let mut counter = first;
    let (batches, rest) = out.as_chunks_mut::<{ 4 * COUNTER_VECTORS }>();
    for batch in batches {
        counter_batch(&keys, counter, batch);
        counter = counter.wrapping_add(batch.len() as u64);
    }
    if !rest.is_empty() {
        let mut batch = [0; 4 * COUNTER_VECTORS];
        counter_batch(&keys, counter, &mut batch);
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn counter_batch(keys: &[__m512i; 11], first: u64, out: &mut [Block; 4 * COUNTER_VECTORS]) {
    let mut states = [_mm512_setzero_si512(); COUNTER_VECTORS];
    for (i, state) in states.iter_mut().enumerate() {
        *state = counting(first.wrapping_add(4 * i as u64));
    }
    encrypt(keys, &mut states);
    let (out, _) = out.as_chunks_mut::<4>();
    for (out, state) in out.iter_mut().zip(states) {
        store(out, state);
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn hashed_bits<const N: usize>(round_keys: &[Block; 11], blocks: &[Block], offset: Block, out: &mut [[u64; N]]) {
    let (keys, offset) = (broadcast(round_keys), broadcast_one(offset));
    let (batches, rest) = blocks.as_chunks::<64>();
    for (batch, words) in batches.iter().zip(out.iter_mut()) {
        *words = bits_batch(&keys, offset, batch);
    }
    if let (false, Some(words)) = (rest.is_empty(), out.last_mut()) {
        let mut batch = [0; 64];
        batch[..rest.len()].copy_from_slice(rest);
        *words = bits_batch(&keys, offset, &batch).map(|word| word & ((1 << rest.len()) - 1));
    }
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn bits_batch<const N: usize>(keys: &[__m512i; 11], offset: __m512i, blocks: &[Block; 64]) -> [u64; N] {
    let mut words = [0; N];
    let (batches, _) = blocks.as_chunks::<{ 4 * HASH_VECTORS }>();
    for (batch, blocks) in batches.iter().enumerate() {
        let lows = low_halves(keys, offset, blocks);
        for (i, low) in lows.into_iter().enumerate() {
            for (bit, word) in words.iter_mut().enumerate() {
                let bits = _mm512_test_epi64_mask(low, _mm512_set1_epi64(1 << bit));
                *word |= u64::from(bits) << (4 * HASH_VECTORS * batch + 8 * i);
            }
        }
    }
    words
}

#[target_feature(enable = "avx512f,vaes")]
fn hashed_words(round_keys: &[Block; 11], blocks: &[Block], offset: Block, out: &mut [u64]) {
    let (keys, offset) = (broadcast(round_keys), broadcast_one(offset));
    let (batches, rest) = blocks.as_chunks::<{ 4 * HASH_VECTORS }>();
    let (out, out_rest) = out.as_chunks_mut::<{ 4 * HASH_VECTORS }>();
    for (batch, words) in batches.iter().zip(out) {
        words_batch(&keys, offset, batch, words);
    }
    if !rest.is_empty() {
        let (mut batch, mut words) = ([0; 4 * HASH_VECTORS], [0; 4 * HASH_VECTORS]);
        batch[..rest.len()].copy_from_slice(rest);
        words_batch(&keys, offset, &batch, &mut words);
        out_rest.copy_from_slice(&words[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn words_batch(
    keys: &[__m512i; 11],
    offset: __m512i,
    blocks: &[Block; 4 * HASH_VECTORS],
    words: &mut [u64; 4 * HASH_VECTORS],
) {
    let (words, _) = words.as_chunks_mut::<8>();
    for (words, low) in words.iter_mut().zip(low_halves(keys, offset, blocks)) {
        // SAFETY: the reference covers the 64 bytes written, and the instruction asks for no alignment.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), low) };
    }
}

/// The low halves of `AES(x) ^ x` for `x = blocks[i] ^ offset`, eight to a vector.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn low_halves(
    keys: &[__m512i; 11],
    offset: __m512i,
    blocks: &[Block; 4 * HASH_VECTORS],
) -> [__m512i; HASH_VECTORS / 2] {
    let (blocks, _) = blocks.as_chunks::<4>();
    let mut inputs = [_mm512_setzero_si512(); HASH_VECTORS];
    for (input, blocks) in inputs.iter_mut().zip(blocks) {
        *input = _mm512_xor_si512(load(blocks), offset);
    }
    let mut hashes = inputs;
    encrypt(keys, &mut hashes);
    let mut lows = [_mm512_setzero_si512(); HASH_VECTORS / 2];
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    for (i, low) in lows.iter_mut().enumerate() {
        let [first, second] = [2 * i, 2 * i + 1].map(|at| _mm512_xor_si512(hashes[at], inputs[at]));
        *low = _mm512_permutex2var_epi64(first, even, second);
    }
    lows
}

#[target_feature(enable = "avx512f,vaes")]
fn children(
    round_keys: &[Block; 11],
    parents: &mut [[Block; TREES]],
    right: &mut [[Block; TREES]],
    correction: &Correction,
) -> [Block; TREES] {
    let keys = broadcast(round_keys);
    // Counts down to zero.
    let mut until_corrected = twice(&correction.paths);
    let differences = load(&correction.differences);
    let mut sum = _mm512_setzero_si512();
    let (parents, parents_left) = parents.as_chunks_mut::<HASH_VECTORS>();
    let (right, right_left) = right.as_chunks_mut::<HASH_VECTORS>();
    for (parents, right) in parents.iter_mut().zip(right) {
        sum = _mm512_xor_si512(sum, children_batch(&keys, parents, right, &mut until_corrected, differences));
    }
    for (parents, right) in parents_left.iter_mut().zip(right_left) {
        let (parents, right) = (std::array::from_mut(parents), std::array::from_mut(right));
        sum = _mm512_xor_si512(sum, children_batch(&keys, parents, right, &mut until_corrected, differences));
    }
    let mut sums = [0; TREES];
    store(&mut sums, sum);
    sums
}

/// Returns the sum of the left children.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn children_batch<const VECTORS: usize>(
    keys: &[__m512i; 11],
    parents: &mut [[Block; TREES]; VECTORS],
    right: &mut [[Block; TREES]; VECTORS],
    until_corrected: &mut __m512i,
    differences: __m512i,
) -> __m512i {
    let mut corrected = [_mm512_setzero_si512(); VECTORS];
    for (corrected, parents) in corrected.iter_mut().zip(parents.iter()) {
        let (parent, is_here) = (load(parents), _mm512_testn_epi64_mask(*until_corrected, *until_corrected));
        *corrected = _mm512_mask_xor_epi64(parent, is_here, parent, differences);
        *until_corrected = _mm512_sub_epi64(*until_corrected, _mm512_set1_epi64(1));
    }
    let mut outer = corrected;
    for outer in &mut outer {
        *outer = mix(*outer);
    }
    encrypt(keys, &mut outer);
    let mut sum = _mm512_setzero_si512();
    for (i, (parents, right)) in parents.iter_mut().zip(right).enumerate() {
        let child = _mm512_xor_si512(mix(corrected[i]), outer[i]);
        store(right, _mm512_xor_si512(corrected[i], child));
        store(parents, child);
        sum = _mm512_xor_si512(sum, child);
    }
    sum
}

/// In every block, `(high, low)` becomes `(high ^ low, high)`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn mix(x: __m512i) -> __m512i {
    let swapped = _mm512_shuffle_epi32::<0b0100_1110>(x);
    _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, x)
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn encrypt<const VECTORS: usize>(keys: &[__m512i; 11], states: &mut [__m512i; VECTORS]) {
    for state in states.iter_mut() {
        *state = _mm512_xor_si512(*state, keys[0]);
    }
    for key in &keys[1..10] {
        for state in states.iter_mut() {
            *state = _mm512_aesenc_epi128(*state, *key);
        }
    }
    for state in states.iter_mut() {
        *state = _mm512_aesenclast_epi128(*state, keys[10]);
    }
}

/// The blocks `first, first + 1, first + 2, first + 3`, each below 2^64.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn counting(first: u64) -> __m512i {
    let firsts = _mm512_maskz_set1_epi64(0b0101_0101, first.cast_signed());
    _mm512_add_epi64(firsts, _mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0))
}

/// Every round key in all four lanes of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(round_keys: &[Block; 11]) -> [__m512i; 11] {
    let mut keys = [_mm512_setzero_si512(); 11];
    for (key, &block) in keys.iter_mut().zip(round_keys) {
        *key = broadcast_one(block);
    }
    keys
}

/// Every word in both halves of a lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn twice(words: &[u64; 4]) -> __m512i {
    let [a, b, c, d] = words.map(u64::cast_signed);
    _mm512_setr_epi64(a, a, b, b, c, c, d, d)
}

/// A block in all four lanes of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast_one(block: Block) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x((block >> 64) as i64, block as i64))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(blocks: &[Block; 4]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes read, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(blocks: &mut [Block; 4], vector: __m512i) {
    // SAFETY: the reference covers the 64 bytes written, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), vector) }
}
