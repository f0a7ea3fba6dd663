//! AVX-512 with 52-bit multiplications (IFMA).

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Kernels, Lazy, TERMS};

/// Numbers in a vector.
const LANES: usize = 8;

/// The kernels, if the processor has what they take.
pub(crate) fn kernels() -> Option<Kernels> {
    let runs = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
    runs.then_some(Kernels { multiply_add: checked, scale: scale_checked })
}

/// # Panics
/// If the lengths differ or are no multiple of 8, or there are too many terms.
fn checked(lazy: &Lazy, sum: &mut [u64], terms: &[(&[u64], &[u64])]) {
    let len = sum.len();
    assert!(len.is_multiple_of(LANES) && terms.len() <= TERMS, "whole vectors and few terms");
    assert!(terms.iter().all(|(a, b)| a.len() == len && b.len() == len), "operands of one length");
    // SAFETY: the features were detected before this function was handed out, and all slices hold `len` numbers.
    unsafe { ifma(lazy, sum, terms) }
}

/// Low and high halves of all products are added up apart, and reduced once.
///
/// # Safety
/// The processor must have AVX-512F and IFMA; every operand must be as long as `sum`, a multiple of [`LANES`].
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn ifma(lazy: &Lazy, sum: &mut [u64], terms: &[(&[u64], &[u64])]) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let zero = _mm512_setzero_si512();
    let [prime, inverse] = [broadcast(lazy.prime), broadcast(lazy.inverse)];
    let [shift, shift_inverse] = [broadcast(lazy.shift), broadcast(lazy.shift_inverse)];
    let mask = broadcast((1 << 52) - 1);
    // `x c - floor(x c' / 2^52) p` for x below 2^52, where c' = floor(2^52 c / p): c x modulo p, below 2 p.
    let multiply = |x: __m512i, factor: __m512i, factor_inverse: __m512i| {
        let quotient = _mm512_madd52hi_epu64(zero, x, factor_inverse);
        let product = _mm512_madd52lo_epu64(zero, x, factor);
        _mm512_and_si512(_mm512_sub_epi64(product, _mm512_madd52lo_epu64(zero, quotient, prime)), mask)
    };
    // One subtraction of `p` where it is due: a negative difference is a large unsigned number.
    let reduce = |x: __m512i| _mm512_min_epu64(x, _mm512_sub_epi64(x, prime));
    let one = broadcast(1);
    for at in (0..sum.len()).step_by(LANES) {
        let load = |slice: &[u64]| {
            // SAFETY: `at + LANES <= len`, and the slice has `len` numbers.
            unsafe { _mm512_loadu_si512(slice.as_ptr().add(at).cast()) }
        };
        let (mut low, mut high) = (zero, zero);
        for (a, b) in terms {
            let (a, b) = (load(a), load(b));
            low = _mm512_madd52lo_epu64(low, a, b);
            high = _mm512_madd52hi_epu64(high, a, b);
        }
        // Low halves of 8 products are below 2^55, high halves below 2^51: their sum is `high 2^52 + low` with both below 2^52.
        high = _mm512_add_epi64(high, _mm512_srli_epi64::<52>(low));
        low = _mm512_and_si512(low, mask);
        let high = reduce(multiply(high, shift, shift_inverse));
        let low = reduce(multiply(low, one, inverse));
        let total = reduce(_mm512_add_epi64(load(sum), high));
        let total = reduce(_mm512_add_epi64(total, low));
        // SAFETY: as for the loads.
        unsafe { _mm512_storeu_si512(sum.as_mut_ptr().add(at).cast(), total) };
    }
}

/// # Panics
/// If the length is no multiple of 8.
fn scale_checked(prime: u64, factor: u64, quotient: u64, values: &mut [u64]) {
    assert!(values.len().is_multiple_of(LANES), "whole vectors");
    // SAFETY: the features were detected before this function was handed out, and the length was just checked.
    unsafe { scale(prime, factor, quotient, values) }
}

/// # Safety
/// The processor must have AVX-512F and IFMA; there must be a multiple of [`LANES`] values.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn scale(prime: u64, factor: u64, quotient: u64, values: &mut [u64]) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let [zero, mask] = [_mm512_setzero_si512(), broadcast((1 << 52) - 1)];
    let [prime, factor, quotient] = [prime, factor, quotient].map(broadcast);
    for at in (0..values.len()).step_by(LANES) {
        // SAFETY: `at + LANES <= values.len()`.
        unsafe {
            let place = values.as_mut_ptr().add(at).cast();
            let x = _mm512_loadu_si512(place);
            let times = _mm512_madd52hi_epu64(zero, x, quotient);
            let product = _mm512_madd52lo_epu64(zero, x, factor);
            let rest = _mm512_and_si512(_mm512_sub_epi64(product, _mm512_madd52lo_epu64(zero, times, prime)), mask);
            _mm512_storeu_si512(place, _mm512_min_epu64(rest, _mm512_sub_epi64(rest, prime)));
        }
    }
}
