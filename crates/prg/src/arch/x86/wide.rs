//! The portable code, compiled for wider vectors.
#![allow(unsafe_code)]
#![expect(clippy::macro_metavars_in_unsafe, reason = "the calls given to `kernels!` are those of functions here")]

use crate::Block;
use crate::arch::{Kernels, portable};
use crate::ggm::{Correction, TREES};
use crate::kernels;
use crate::sparse::{Lanes, ROWS, WORD_BLOCKS};

/// The kernels for AVX2, if the processor has it.
pub(super) fn avx2() -> Option<Kernels> {
    kernels!(Kernels "avx2", ["avx2"], {
        columns: |rows, out| columns(rows, out),
        subset_sums: |sums, terms, width| subset_sums(sums, terms, width),
        mark: |nodes, correction, paths| mark(nodes, correction, paths),
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
fn mark(nodes: &mut [Block], correction: &Correction, paths: &[u64; TREES]) {
    portable::mark(nodes, correction, paths);
}

#[target_feature(enable = "avx2")]
pub(super) fn add_sparse(out: &mut [Lanes; ROWS], parts: &[Lanes], words: &[Block; WORD_BLOCKS]) {
    portable::add_sparse(out, parts, words);
}
