//! Transposes with the vector instructions of x86-64.
#![allow(unsafe_code)]

use super::{Columns, portable};
use crate::Block;

/// What this processor has, slowest first.
pub(super) fn detected() -> Vec<(&'static str, Columns)> {
    let mut found: Vec<(&'static str, Columns)> = Vec::new();
    if is_x86_feature_detected!("avx2") {
        found.push(("avx2", columns_avx2));
    }
    found
}

/// Reachable through [`detected`] only, which checks for AVX2.
fn columns_avx2(rows: &[Block], out: &mut [Block]) {
    // SAFETY: `detected` hands this function out only where the processor has AVX2.
    unsafe { wide(rows, out) }
}

#[target_feature(enable = "avx2")]
fn wide(rows: &[Block], out: &mut [Block]) {
    portable::columns_inline(rows, out);
}
