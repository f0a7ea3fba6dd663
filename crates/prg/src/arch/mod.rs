//! The choice between accelerated and portable code, made once.

use crate::Block;
use crate::ggm::{Correction, TREES};
use crate::sparse::{Lanes, ROWS, WORD_BLOCKS};

mod aes;
mod paths;
mod portable;
mod tags;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use aes::Aes128;
pub(crate) use portable::square;

/// The kernels of one level of acceleration. Their arguments are checked by the modules that call them.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// Which level this is.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the level where a test fails"))]
    pub(crate) name: &'static str,
    /// See [`crate::transpose::columns`].
    pub(crate) columns: fn(rows: &[Block], out: &mut [Block]),
    /// See [`crate::subset_sums`].
    pub(crate) subset_sums: fn(sums: &mut [Block], terms: &mut [Block], width: usize),
    /// See [`crate::ggm::mark`].
    pub(crate) mark: fn(nodes: &mut [Block], correction: &Correction, paths: &[u64; TREES]),
    /// See [`crate::sparse::add`].
    pub(crate) add_sparse: fn(out: &mut [Lanes; ROWS], parts: &[Lanes], words: &[Block; WORD_BLOCKS]),
}

crate::choice_of_kernels!();
