//! The portable code, compiled for wider vectors.
#![allow(unsafe_code)]

use crate::Block;
use crate::arch::{Kernels, portable};

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
