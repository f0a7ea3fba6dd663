//! Transposes in plain integer arithmetic, by swapping ever smaller off-diagonal squares (Warren, "Hacker's Delight",
//! section 7-3).

use crate::Block;

/// See [`crate::transpose::columns`].
pub(crate) fn columns(rows: &[Block], out: &mut [Block]) {
    columns_inline(rows, out);
}

/// Inlined into functions that enable wider vectors, for which the compiler then vectorises the same code.
#[inline(always)]
pub(super) fn columns_inline(rows: &[Block], out: &mut [Block]) {
    let width = rows.len() / 128;
    for (column, out) in out.chunks_exact_mut(128).enumerate() {
        let mut quadrants = [[0; 64]; 4];
        for j in 0..64 {
            let (upper, lower) = (rows[j * width + column], rows[(64 + j) * width + column]);
            quadrants[0][j] = upper as u64;
            quadrants[1][j] = (upper >> 64) as u64;
            quadrants[2][j] = lower as u64;
            quadrants[3][j] = (lower >> 64) as u64;
        }
        quadrants.iter_mut().for_each(square_inline);
        let (first, second) = out.split_at_mut(64);
        for j in 0..64 {
            first[j] = Block::from(quadrants[0][j]) | Block::from(quadrants[2][j]) << 64;
            second[j] = Block::from(quadrants[1][j]) | Block::from(quadrants[3][j]) << 64;
        }
    }
}

/// See [`crate::transpose::square`].
pub(crate) fn square(words: &mut [u64; 64]) {
    square_inline(words);
}

#[inline(always)]
fn square_inline(words: &mut [u64; 64]) {
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
