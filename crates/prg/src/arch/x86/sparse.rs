//! Sums of the sparse code on 512-bit vectors: a term of all lanes is one read.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::vaes::{Vaes128, broadcast, counting, encrypt, load, store};
use crate::Block;
use crate::sparse::{Lanes, PARTS_A_PASS, ROWS};

/// Words in 64 bits.
const WORDS: usize = 4;

/// Sums of which a vector has the words for a part.
const STEP: usize = 32;

/// Blocks of words of a part.
const PART_BLOCKS: usize = ROWS / 8;

impl Vaes128 {
    /// See [`crate::sparse::add`].
    pub(crate) fn add_sparse(&self, out: &mut [[Lanes; ROWS]], parts: &[Lanes], first: u64, stride: u64) {
        // SAFETY: this value exists, so the processor has AVX-512F and VAES.
        unsafe { add_streamed(&self.round_keys, out, parts, first, stride) }
    }
}

/// Words are made just before they are used: reads of terms would drive more of them out of the first cache. While the terms of one step are
/// on their way, the next step's words are made.
#[target_feature(enable = "avx512f,vaes")]
fn add_streamed(round_keys: &[Block; 11], out: &mut [[Lanes; ROWS]], parts: &[Lanes], first: u64, stride: u64) {
    let (keys, terms) = (broadcast(round_keys), Terms::of(parts));
    // By turns: what was stored a moment ago is slow to read in other units.
    let (mut now, mut next) = (&mut Words::default(), &mut Words::default());
    make(&keys, first, now);
    let mut at = first;
    for sums in out {
        let (steps, _) = sums.as_chunks_mut::<STEP>();
        for (step, sums) in (1..).zip(steps) {
            let following =
                if step == ROWS / STEP { at.wrapping_add(stride) } else { at.wrapping_add(4 * step as u64) };
            make(&keys, following, next);
            terms.add(sums, bytemuck::must_cast_ref(now));
            std::mem::swap(&mut now, &mut next);
        }
        at = at.wrapping_add(stride);
    }
}

/// A step's words of each part.
type Words = [[Block; 4]; PARTS_A_PASS];

/// Makes a step's words, of which the first are in block `first` of the stream.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn make(keys: &[__m512i; 11], first: u64, words: &mut Words) {
    let mut states = [_mm512_setzero_si512(); PARTS_A_PASS];
    for (part, state) in states.iter_mut().enumerate() {
        *state = counting(first.wrapping_add((part * PART_BLOCKS) as u64));
    }
    encrypt(keys, &mut states);
    for (words, state) in words.iter_mut().zip(states) {
        store(words, state);
    }
}

/// Parts of a pass, one behind the other.
struct Terms<'a> {
    parts: &'a [Lanes],
    /// Terms of a part: a power of two.
    len: usize,
    /// Of the place of a term in a part, in bytes.
    mask: u64,
}

impl<'a> Terms<'a> {
    fn of(parts: &'a [Lanes]) -> Self {
        let len = parts.len() / PARTS_A_PASS;
        assert!(len.is_power_of_two(), "a power of two of terms");
        // Left to itself, the compiler masks before it shifts.
        Self { parts, len, mask: std::hint::black_box((size_of::<Lanes>() * (len - 1)) as u64) }
    }

    /// Adds to each sum the term of each part that its word chooses. The places of four terms are read at once and told apart by rotations.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(&self, sums: &mut [Lanes; STEP], words: &[[u64; STEP / WORDS]; PARTS_A_PASS]) {
        const SHIFT: u32 = size_of::<Lanes>().trailing_zeros();
        let (parts, len, mask) = (self.parts.as_ptr(), self.len, self.mask);
        for (four, sums) in sums.as_chunks_mut::<WORDS>().0.iter_mut().enumerate() {
            for (row, sum) in sums.iter_mut().enumerate() {
                let mut vector = load(sum);
                for (part, words) in words.iter().enumerate() {
                    let place = words[four].rotate_left((64 + SHIFT - 16 * row as u32) % 64) & mask;
                    // SAFETY: the length of a part is a power of two, so the masked place, in bytes, is in the part; the
                    // instruction asks for no alignment.
                    let term = unsafe { _mm512_loadu_si512(parts.add(part * len).byte_add(place as usize).cast()) };
                    vector = _mm512_xor_si512(vector, term);
                }
                store(sum, vector);
            }
        }
    }
}
