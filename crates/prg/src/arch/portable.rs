//! Kernels in plain integer arithmetic. Inlined into functions that enable wider vectors, for which the compiler then
//! vectorises the same code.

use super::Kernels;
use crate::Block;
use crate::ggm::{Correction, TREES};
use crate::sparse::{Lanes, PARTS_A_PASS, ROWS, WORD_BLOCKS};

/// The kernels that run everywhere.
pub(super) const KERNELS: Kernels = Kernels {
    name: "portable",
    columns: |rows, out| columns(rows, out),
    subset_sums: |sums, terms, width| subset_sums(sums, terms, width),
    mark: |nodes, correction, paths| mark(nodes, correction, paths),
    add_sparse: |out, parts, words| add_sparse(out, parts, words),
};

#[inline(always)]
pub(super) fn columns(rows: &[Block], out: &mut [Block]) {
    let width = rows.len() / 128;
    for (column, out) in out.chunks_exact_mut(128).enumerate() {
        let mut quarters = [[0; 64]; 4];
        for j in 0..64 {
            let (upper, lower) = (rows[j * width + column], rows[(64 + j) * width + column]);
            quarters[0][j] = upper as u64;
            quarters[1][j] = (upper >> 64) as u64;
            quarters[2][j] = lower as u64;
            quarters[3][j] = (lower >> 64) as u64;
        }
        quarters.iter_mut().for_each(square);
        let (first, second) = out.split_at_mut(64);
        for j in 0..64 {
            first[j] = Block::from(quarters[0][j]) | Block::from(quarters[2][j]) << 64;
            second[j] = Block::from(quarters[1][j]) | Block::from(quarters[3][j]) << 64;
        }
    }
}

/// Transposes a 64 x 64 bit matrix by swapping ever smaller off-diagonal squares (Warren, "Hacker's Delight", section
/// 7-3).
#[inline(always)]
pub(crate) fn square(words: &mut [u64; 64]) {
    swap_squares::<32>(words, 0x0000_0000_ffff_ffff);
    swap_squares::<16>(words, 0x0000_ffff_0000_ffff);
    swap_squares::<8>(words, 0x00ff_00ff_00ff_00ff);
    swap_squares::<4>(words, 0x0f0f_0f0f_0f0f_0f0f);
    swap_squares::<2>(words, 0x3333_3333_3333_3333);
    swap_squares::<1>(words, 0x5555_5555_5555_5555);
}

/// In every aligned square of `2 * WIDTH` bits, swaps the upper right with the lower left quarter.
#[inline(always)]
fn swap_squares<const WIDTH: usize>(words: &mut [u64; 64], low_columns: u64) {
    for rows in words.chunks_exact_mut(2 * WIDTH) {
        let (upper, lower) = rows.split_at_mut(WIDTH);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let swap = (*upper >> WIDTH ^ *lower) & low_columns;
            *upper ^= swap << WIDTH;
            *lower ^= swap;
        }
    }
}

/// Halves the terms once per bit of their number, from the top: the upper half is added to that bit's sum and to the
/// lower half. This takes `2 * (2^k - 1)` additions of rows rather than `k * 2^(k-1)` and as many again for the whole.
#[inline(always)]
pub(super) fn subset_sums(sums: &mut [Block], terms: &mut [Block], width: usize) {
    // Words, because the compiler makes vectors of them and not of blocks.
    let (sums, mut folded): (&mut [u64], &mut [u64]) =
        (bytemuck::must_cast_slice_mut(sums), bytemuck::must_cast_slice_mut(terms));
    let width = 2 * width;
    for sum in sums.chunks_exact_mut(width).rev() {
        let half = folded.len() / 2;
        let (lower, upper) = folded.split_at_mut(half);
        sum.fill(0);
        for (lower, upper) in lower.chunks_exact_mut(width).zip(upper.chunks_exact(width)) {
            for ((sum, lower), upper) in sum.iter_mut().zip(lower).zip(upper) {
                *sum ^= *upper;
                *lower ^= *upper;
            }
        }
        folded = lower;
    }
}

#[inline(always)]
pub(super) fn mark(nodes: &mut [Block], correction: &Correction, paths: &[u64; TREES]) {
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    correct(left, correction);
    correct(right, correction);
    let (nodes, _) = nodes.as_chunks_mut::<TREES>();
    for (j, nodes) in nodes.iter_mut().enumerate() {
        for (node, &path) in nodes.iter_mut().zip(paths) {
            *node = *node & !1 | Block::from(path == j as u64);
        }
    }
}

/// Adds to node `correction.paths[g]` of every tree `g` its difference.
#[inline(always)]
pub(super) fn correct(nodes: &mut [Block], correction: &Correction) {
    let paths: [u64; 2 * TREES] = std::array::from_fn(|i| correction.paths[i / 2]);
    let differences: &[u64; 2 * TREES] = bytemuck::must_cast_ref(&correction.differences);
    let words: &mut [u64] = bytemuck::must_cast_slice_mut(nodes);
    for (j, words) in words.as_chunks_mut::<{ 2 * TREES }>().0.iter_mut().enumerate() {
        for i in 0..2 * TREES {
            words[i] ^= u64::from(paths[i] == j as u64).wrapping_neg() & differences[i];
        }
    }
}

#[inline(always)]
pub(super) fn add_sparse(out: &mut [Lanes; ROWS], parts: &[Lanes], words: &[Block; WORD_BLOCKS]) {
    let len = parts.len() / PARTS_A_PASS;
    for (terms, words) in parts.chunks_exact(len).zip(words.chunks_exact(ROWS / 8)) {
        for (sums, word) in out.chunks_exact_mut(8).zip(words) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let term = &terms[(word >> (16 * i)) as usize & (len - 1)];
                sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
            }
        }
    }
}
