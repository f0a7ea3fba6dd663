//! The portable code, compiled for wider vectors.
#![allow(unsafe_code)]
#![expect(clippy::macro_metavars_in_unsafe, reason = "the calls given to `kernels!` are those of functions here")]

use std::arch::x86_64::*;

use crate::Block;
use crate::arch::{Kernels, portable};
use crate::ggm::TREES;
use crate::kernels;
use crate::sparse::{PARTS_A_PASS, ROWS, WORD_BLOCKS};

/// The kernels for AVX2, if the processor has it.
pub(super) fn avx2() -> Option<Kernels> {
    kernels!(Kernels "avx2", ["avx2", "bmi2"], {
        columns: |rows, out| columns(rows, out),
        subset_sums: |sums, terms, width| subset_sums(sums, terms, width),
        correct: |nodes, paths, differences| correct(nodes, paths, differences),
        mark: |nodes, paths| mark(nodes, paths),
        add_sparse: |out, parts, words| add_sparse(out, parts, words),
    })
}

#[target_feature(enable = "avx2")]
pub(super) fn columns(rows: &[Block], out: &mut [Block]) {
    portable::columns(rows, out);
}

#[target_feature(enable = "avx2")]
fn subset_sums(sums: &mut [Block], terms: &mut [Block], width: usize) {
    portable::subset_sums(sums, terms, width);
}

#[target_feature(enable = "avx2")]
fn correct(nodes: &mut [Block], paths: &[u64; TREES], differences: &[Block; TREES]) {
    portable::correct(nodes, paths, differences);
}

#[target_feature(enable = "avx2")]
fn mark(nodes: &mut [Block], paths: &[u64; TREES]) {
    portable::mark(nodes, paths);
}

/// Words in 64 bits.
const WORDS: usize = 4;

/// The portable code reads and adds 64 bits at a time, and a part after the other; this reads and adds 128, all parts at once. Reads take
/// the time, so the places of four terms of a part are read at once and told apart by rotations.
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn add_sparse(out: &mut [Block; ROWS], parts: &[Block], words: &[Block; WORD_BLOCKS]) {
    let len = parts.len() / PARTS_A_PASS;
    // Not told, the compiler masks before it shifts.
    let mask = std::hint::black_box(16 * (len as u64 - 1));
    let words: &[u64] = bytemuck::must_cast_slice(words);
    let of = |part: usize| &words[part * (ROWS / WORDS)..][..ROWS / WORDS];
    let [first, second, third]: [_; PARTS_A_PASS] = std::array::from_fn(of);
    let (rows, _) = out.as_chunks_mut::<WORDS>();
    for (((sums, &first), &second), &third) in rows.iter_mut().zip(first).zip(second).zip(third) {
        for (row, sum) in sums.iter_mut().enumerate() {
            let mut vector = load(sum);
            for (part, words) in [first, second, third].into_iter().enumerate() {
                let place = words.rotate_left((64 + 4 - 16 * row as u32) % 64) & mask;
                // SAFETY: the length of a part is a power of two, so the masked place, in bytes, is in the part.
                let term = unsafe { _mm_loadu_si128(parts.as_ptr().add(part * len).byte_add(place as usize).cast()) };
                vector = _mm_xor_si128(vector, term);
            }
            // SAFETY: the reference covers the 16 bytes written, and the instruction asks for no alignment.
            unsafe { _mm_storeu_si128((sum as *mut Block).cast(), vector) };
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &Block) -> __m128i {
    // SAFETY: the reference covers the 16 bytes read, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128((block as *const Block).cast()) }
}
