//! [`super::tile`] on AVX-512 with 52-bit multiplications (IFMA).

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Montgomery;
use super::tile::{Accelerated, ROWS, Sums, TERMS, WIDTH};

/// Vectors of eight numbers in a row of a tile.
const VECTORS: usize = WIDTH / 8;

/// The product, if the processor has what it takes.
pub(super) fn kernel() -> Option<Accelerated> {
    let features = [is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx512dq")];
    let runs = features == [true; 2] && is_x86_feature_detected!("avx512ifma");
    runs.then_some(checked)
}

/// # Panics
/// If the numbers of terms differ, or are too many.
fn checked(montgomery: &Montgomery, left: &[[u64; ROWS]], right: &[&[[u64; WIDTH]]], sums: Sums<'_>) {
    let terms: usize = right.iter().map(|group| group.len()).sum();
    assert!(left.len() == terms && left.len() <= TERMS, "few terms");
    // SAFETY: the features were detected before this function was handed out.
    unsafe { multiply_add(montgomery, left, right, sums) }
}

/// Low and high halves of all products are added up apart, and reduced once.
///
/// # Safety
/// The processor must have AVX-512F, AVX-512DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
unsafe fn multiply_add(montgomery: &Montgomery, left: &[[u64; ROWS]], right: &[&[[u64; WIDTH]]], sums: Sums<'_>) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let zero = _mm512_setzero_si512();
    let (mut low, mut high) = ([[zero; VECTORS]; ROWS], [[zero; VECTORS]; ROWS]);
    let mut rest = left;
    for group in right {
        let (left, after) = rest.split_at(group.len());
        rest = after;
        for (left, right) in left.iter().zip(*group) {
            let right: [__m512i; VECTORS] = std::array::from_fn(|at| {
                // SAFETY: a row has `VECTORS` times eight numbers.
                unsafe { _mm512_loadu_si512(right.as_ptr().add(8 * at).cast()) }
            });
            for row in 0..ROWS {
                let factor = broadcast(left[row]);
                for at in 0..VECTORS {
                    low[row][at] = _mm512_madd52lo_epu64(low[row][at], right[at], factor);
                    high[row][at] = _mm512_madd52hi_epu64(high[row][at], right[at], factor);
                }
            }
        }
    }
    let [prime, twice, inverse] = [montgomery.prime, 2 * montgomery.prime, montgomery.inverse].map(broadcast);
    // Barrett's quotient of a number below 2^(52 + SHIFT): `x p^-1` by the upper 52 bits of `x`, two too small at most.
    const SHIFT: u32 = 10;
    let quotient = broadcast(((1_u128 << (52 + SHIFT)) / u128::from(montgomery.prime)) as u64);
    let reduce = |x: __m512i, by: __m512i| _mm512_min_epu64(x, _mm512_sub_epi64(x, by));
    for (row, sums) in sums.into_iter().enumerate() {
        for at in 0..VECTORS {
            // The sum is `high 2^52 + low`; less the multiple of `p` with the same 52 low bits it is `2^52 (carried - multiple)`.
            let (low, high) = (low[row][at], high[row][at]);
            let carried = _mm512_add_epi64(high, _mm512_srli_epi64::<52>(low));
            let multiple = _mm512_madd52hi_epu64(zero, _mm512_madd52lo_epu64(zero, low, inverse), prime);
            let times = _mm512_madd52hi_epu64(zero, _mm512_srli_epi64::<SHIFT>(carried), quotient);
            let rest = _mm512_sub_epi64(carried, _mm512_mullo_epi64(times, prime));
            let rest = reduce(reduce(rest, twice), prime);
            // SAFETY: as for the loads.
            unsafe {
                let place = sums.as_mut_ptr().add(8 * at).cast();
                let sum = _mm512_add_epi64(_mm512_loadu_si512(place), _mm512_add_epi64(rest, prime));
                let total = _mm512_sub_epi64(sum, multiple);
                _mm512_storeu_si512(place, reduce(reduce(total, twice), prime));
            }
        }
    }
}
