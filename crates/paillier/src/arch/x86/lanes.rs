//! Numbers side by side and one after the other: transposes of eight by eight words in registers.

use std::arch::x86_64::*;

use super::super::{LANES, Row};

/// See [`super::Kernels::gather`]. Handed out with the kernels only where AVX-512F was detected.
///
/// # Panics
/// If a number is shorter than `out`.
pub(super) fn gather(out: &mut [Row], numbers: &[&[u64]; LANES]) {
    assert!(numbers.iter().all(|number| number.len() >= out.len()), "numbers of so many limbs");
    // SAFETY: see above.
    unsafe { gather_512(out, numbers) }
}

/// See [`super::Kernels::scatter`]. Handed out with the kernels only where AVX-512F was detected.
///
/// # Panics
/// If `out` has not eight times the limbs.
pub(super) fn scatter(out: &mut [u64], rows: &[Row]) {
    assert!(out.len() == LANES * rows.len(), "room for eight numbers");
    // SAFETY: see above.
    unsafe { scatter_512(out, rows) }
}

#[target_feature(enable = "avx512f")]
fn gather_512(out: &mut [Row], numbers: &[&[u64]; LANES]) {
    for (block, rows) in out.chunks_mut(LANES).enumerate() {
        let mask = first(rows.len());
        let words = numbers.map(|number| {
            // SAFETY: the number has the limbs that the mask names behind `LANES * block`.
            unsafe { _mm512_maskz_loadu_epi64(mask, number[LANES * block..].as_ptr().cast()) }
        });
        for (row, words) in rows.iter_mut().zip(transpose(words)) {
            // SAFETY: a row is 64 bytes, aligned to as many.
            unsafe { _mm512_store_si512((&raw mut *row).cast(), words) };
        }
    }
}

#[target_feature(enable = "avx512f")]
fn scatter_512(out: &mut [u64], rows: &[Row]) {
    let limbs = rows.len();
    for (block, rows) in rows.chunks(LANES).enumerate() {
        let mask = first(rows.len());
        let mut words = [_mm512_setzero_si512(); LANES];
        for (words, row) in words.iter_mut().zip(rows) {
            // SAFETY: a row is 64 bytes, aligned to as many.
            *words = unsafe { _mm512_load_si512((&raw const *row).cast()) };
        }
        for (lane, words) in transpose(words).into_iter().enumerate() {
            let number = &mut out[lane * limbs + LANES * block..][..rows.len()];
            // SAFETY: the mask names as many words as the slice has.
            unsafe { _mm512_mask_storeu_epi64(number.as_mut_ptr().cast(), mask, words) };
        }
    }
}

/// The lowest `count` of eight words.
fn first(count: usize) -> u8 {
    (u16::MAX >> (16 - count)) as u8
}

/// Word `i` of vector `j` becomes word `j` of vector `i`: pairs of words, then pairs of pairs twice.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: [__m512i; LANES]) -> [__m512i; LANES] {
    let quarters = |pairs: [__m512i; 4]| {
        let [a, b] =
            [_mm512_shuffle_i64x2::<0x88>(pairs[0], pairs[1]), _mm512_shuffle_i64x2::<0xdd>(pairs[0], pairs[1])];
        let [c, d] =
            [_mm512_shuffle_i64x2::<0x88>(pairs[2], pairs[3]), _mm512_shuffle_i64x2::<0xdd>(pairs[2], pairs[3])];
        [
            _mm512_shuffle_i64x2::<0x88>(a, c),
            _mm512_shuffle_i64x2::<0x88>(b, d),
            _mm512_shuffle_i64x2::<0xdd>(a, c),
            _mm512_shuffle_i64x2::<0xdd>(b, d),
        ]
    };
    let low = |i: usize| _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]);
    let high = |i: usize| _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]);
    let even = quarters([low(0), low(1), low(2), low(3)]);
    let odd = quarters([high(0), high(1), high(2), high(3)]);
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}
