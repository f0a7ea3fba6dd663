//! Small-field VOLE: seeds of a group become bits `u` and vectors over GF(2^k) on either side (SoftSpokenOT, Roy, CRYPTO
//! 2022).
//!
//! With `p_x` the expansion of seed `x`, the planter gets `u = sum p_x` and `v = sum x * p_x`. The other party, whose
//! seeds are numbered by `y = x ^ delta`, gets `w = sum y * p_{y ^ delta} = v + delta * u` without the missing seed.
//! Bit `j` of a vector over GF(2^k) is a row of its own; sums are exclusive ors.

use privet_prg::{Block, KeyStream, Seed, subset_sums};

/// The seeds of all groups with their AES keys scheduled.
pub(crate) struct Forest {
    k: usize,
    /// Group after group, `2^k` each; `None` for a missing seed.
    streams: Vec<Option<KeyStream>>,
}

impl Forest {
    /// `seeds`: `[128 / k, 2^k]`; `punctured`: whether seed 0 of every group is missing.
    pub(crate) fn new(k: usize, seeds: &[Block], punctured: bool) -> Self {
        let schedule = |(index, &seed)| {
            let missing = punctured && index % (1 << k) == 0;
            (!missing).then(|| KeyStream::new(&Seed::from_block(seed)))
        };
        Self { k, streams: seeds.iter().enumerate().map(schedule).collect() }
    }

    /// Bits `128 * first ..` of the sums of `group`: row `j` of `rows` (shape `[k, width]`) gets bit `j` of the vector,
    /// and the first `width` blocks of `leaves` (shape `[2^k, width]`) get `u`, which means nothing if punctured.
    pub(crate) fn sums(&self, group: usize, first: u64, rows: &mut [Block], leaves: &mut [Block]) {
        let width = rows.len() / self.k;
        let streams = &self.streams[group << self.k..(group + 1) << self.k];
        for (stream, leaf) in streams.iter().zip(leaves.chunks_exact_mut(width)) {
            match stream {
                Some(stream) => stream.blocks(first, leaf),
                None => leaf.fill(0),
            }
        }
        subset_sums(rows, leaves, width);
    }
}

/// Adds `other` to `row`, bit by bit.
pub(crate) fn add(row: &mut [Block], other: &[Block]) {
    row.iter_mut().zip(other).for_each(|(row, other)| *row ^= other);
}
