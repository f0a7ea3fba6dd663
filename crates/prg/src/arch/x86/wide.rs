//! The portable code, compiled for wider vectors.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::Block;
use crate::arch::{Kernels, portable};
use crate::ggm::TREES;
use crate::sparse::{PARTS_A_PASS, ROWS, WORD_BLOCKS};

/// The kernels for AVX2, if the processor has it.
pub(super) fn avx2() -> Option<Kernels> {
    is_x86_feature_detected!("avx2").then_some(Kernels {
        name: "avx2",
        columns: |rows, out| {
            // SAFETY: these kernels exist only where the processor has AVX2.
            unsafe { columns(rows, out) }
        },
        subset_sums: |sums, terms, width| {
            // SAFETY: these kernels exist only where the processor has AVX2.
            unsafe { subset_sums(sums, terms, width) }
        },
        correct: |nodes, paths, differences| {
            // SAFETY: these kernels exist only where the processor has AVX2.
            unsafe { correct(nodes, paths, differences) }
        },
        mark: |nodes, paths| {
            // SAFETY: these kernels exist only where the processor has AVX2.
            unsafe { mark(nodes, paths) }
        },
        add_sparse: |out, parts, words| {
            // SAFETY: these kernels exist only where the processor has AVX2.
            unsafe { add_sparse(out, parts, words) }
        },
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

/// The portable code reads and adds 64 bits at a time, and a part after the other; this reads and adds 128, all parts at once, and finds
/// the places of eight terms of a part at a time.
#[target_feature(enable = "avx2")]
pub(super) fn add_sparse(out: &mut [Block; ROWS], parts: &[Block], words: &[Block; WORD_BLOCKS]) {
    let len = parts.len() / PARTS_A_PASS;
    let mask = _mm256_set1_epi32(len as i32 - 1);
    let (rows, _) = out.as_chunks_mut::<8>();
    for (i, sums) in rows.iter_mut().enumerate() {
        let mut places = [[0_u32; 8]; PARTS_A_PASS];
        for (part, places) in places.iter_mut().enumerate() {
            let eight = _mm256_and_si256(_mm256_cvtepu16_epi32(load(&words[part * (ROWS / 8) + i])), mask);
            let eight = _mm256_slli_epi32::<4>(_mm256_add_epi32(eight, _mm256_set1_epi32((part * len) as i32)));
            // SAFETY: the reference covers the 32 bytes written, and the instruction asks for no alignment.
            unsafe { _mm256_storeu_si256(places.as_mut_ptr().cast(), eight) };
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            let mut vector = load(sum);
            for places in &places {
                // SAFETY: the length of a part is a power of two, so the masked place is below it; it is counted from where its part begins,
                // and in bytes.
                let term = unsafe { _mm_loadu_si128(parts.as_ptr().byte_add(places[row] as usize).cast()) };
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
