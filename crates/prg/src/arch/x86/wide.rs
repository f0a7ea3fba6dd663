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

/// The portable code reads and adds 64 bits at a time, and a part after the other; this reads and adds 128, and all parts at once.
#[target_feature(enable = "avx2")]
pub(super) fn add_sparse(out: &mut [Block; ROWS], parts: &[Block], words: &[Block; WORD_BLOCKS]) {
    let len = parts.len() / PARTS_A_PASS;
    let words: &[u16] = bytemuck::must_cast_slice(&words[..]);
    let (words, _) = words.as_chunks::<ROWS>();
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = load(out);
        for (part, words) in words.iter().enumerate() {
            let at = part * len + (usize::from(words[i]) & (len - 1));
            // SAFETY: the length of a part is a power of two, so the masked index is below it, and `part` below the number of parts.
            let term = unsafe { parts.get_unchecked(at) };
            sum = _mm_xor_si128(sum, load(term));
        }
        // SAFETY: the reference covers the 16 bytes written, and the instruction asks for no alignment.
        unsafe { _mm_storeu_si128((out as *mut Block).cast(), sum) };
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &Block) -> __m128i {
    // SAFETY: the reference covers the 16 bytes read, and the instruction asks for no alignment.
    unsafe { _mm_loadu_si128((block as *const Block).cast()) }
}
