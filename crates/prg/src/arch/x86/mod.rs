//! Code for the vector instructions of x86-64.

use super::Kernels;

mod gfni;
pub(super) mod narrow;
mod paths;
mod sparse;
mod tags;
pub(super) mod vaes;
mod wide;

/// What this processor can run, slowest first.
pub(super) fn kernels() -> Vec<Kernels> {
    wide::avx2().into_iter().chain(gfni::avx512()).collect()
}
