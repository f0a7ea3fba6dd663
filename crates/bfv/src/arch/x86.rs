//! AVX-512 with 52-bit multiplications (IFMA).

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use pulp::cast;

use super::{CHUNK, Kernels, LANES, Montgomery, ROWS, TERMS, Term};

/// The kernels, if the processor has what they take.
pub(crate) fn kernels() -> Option<Kernels> {
    let runs = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
    runs.then_some(Kernels {
        multiply_add: checked::<1, 1>,
        multiply_add_pair: checked::<2, 1>,
        multiply_add_rows: checked::<2, ROWS>,
        multiply: multiply_checked,
        scale: scale_checked,
        turns: turns_checked,
        butterfly: butterfly_checked,
        permute: permute_detected,
    })
}

/// # Panics
/// If the lengths differ or are no multiple of 8, or there are too many terms.
fn checked<const K: usize, const M: usize>(
    montgomery: &Montgomery,
    sums: [[&mut [u64]; K]; M],
    terms: &[Term<'_, K, M>],
) {
    let len = sums[0][0].len();
    assert!(len.is_multiple_of(LANES) && terms.len() <= TERMS, "whole vectors and few terms");
    assert!(sums.iter().flatten().all(|sum| sum.len() == len), "sums of one length");
    let fits = |(factors, others): &Term<'_, K, M>| factors.iter().chain(others).all(|x| x.len() == len);
    assert!(terms.iter().all(fits), "operands of one length");
    // SAFETY: the features were detected before this function was handed out, and all slices hold `len` numbers.
    unsafe { multiply_add(montgomery, sums, terms) }
}

/// Low and high halves of all products are added up apart, and reduced once. Where there are several rows, what follows each operand in memory
/// is fetched: the part of a polynomial that is multiplied next.
///
/// # Safety
/// The processor must have AVX-512F and IFMA; every operand must be as long as the first sum, a multiple of [`LANES`].
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply_add<const K: usize, const M: usize>(
    montgomery: &Montgomery,
    sums: [[&mut [u64]; K]; M],
    terms: &[Term<'_, K, M>],
) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let zero = _mm512_setzero_si512();
    let [prime, twice] = [broadcast(montgomery.prime), broadcast(2 * montgomery.prime)];
    let inverse = broadcast(montgomery.inverse);
    // One subtraction where it is due: a negative difference is a large unsigned number.
    let reduce = |x: __m512i, by: __m512i| _mm512_min_epu64(x, _mm512_sub_epi64(x, by));
    for at in (0..sums[0][0].len()).step_by(LANES) {
        let load = |slice: &[u64]| {
            // SAFETY: `at + LANES <= len`, and the slice has `len` numbers.
            unsafe { _mm512_loadu_si512(slice.as_ptr().add(at).cast()) }
        };
        let (mut low, mut high) = ([[zero; K]; M], [[zero; K]; M]);
        for (factors, others) in terms {
            // So many operands are more than the processor fetches by itself.
            if M > 1 {
                for operand in factors.iter().chain(others) {
                    _mm_prefetch::<_MM_HINT_T1>(operand.as_ptr().wrapping_add(operand.len() + at).cast());
                }
            }
            let factors = factors.map(load);
            for m in 0..M {
                let other = load(others[m]);
                for k in 0..K {
                    low[m][k] = _mm512_madd52lo_epu64(low[m][k], factors[k], other);
                    high[m][k] = _mm512_madd52hi_epu64(high[m][k], factors[k], other);
                }
            }
        }
        for m in 0..M {
            for k in 0..K {
                // The sum is `high 2^52 + low` with low below 2^55, and below `8 p^2`. Less the multiple of `p` that has the same 52 low
                // bits it is `2^52` times a number above `-p` and below `2p`.
                let carried = _mm512_add_epi64(high[m][k], _mm512_srli_epi64::<52>(low[m][k]));
                let multiple = _mm512_madd52hi_epu64(zero, _mm512_madd52lo_epu64(zero, low[m][k], inverse), prime);
                let sum = _mm512_add_epi64(load(sums[m][k]), prime);
                let total = _mm512_add_epi64(sum, _mm512_sub_epi64(carried, multiple));
                let total = reduce(reduce(total, twice), prime);
                // SAFETY: as for the loads.
                unsafe { _mm512_storeu_si512(sums[m][k].as_mut_ptr().add(at).cast(), total) };
            }
        }
    }
}

/// # Panics
/// If the lengths differ or are no multiple of 8.
fn multiply_checked(montgomery: &Montgomery, values: [&mut [u64]; 2], factors: &[u64]) {
    let len = factors.len();
    assert!(len.is_multiple_of(LANES) && values.iter().all(|values| values.len() == len), "whole vectors");
    // SAFETY: the features were detected before this function was handed out, and the lengths were just checked.
    unsafe { multiply(montgomery, values, factors) }
}

/// # Safety
/// The processor must have AVX-512F and IFMA; all three must be of one length, a multiple of [`LANES`].
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply(montgomery: &Montgomery, [first, second]: [&mut [u64]; 2], factors: &[u64]) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let zero = _mm512_setzero_si512();
    let [prime, inverse, square] = [montgomery.prime, montgomery.inverse, montgomery.square].map(broadcast);
    // A product divided by 2^52: above zero, and below twice the prime.
    let reduced = |x: __m512i, y: __m512i| {
        let multiple = _mm512_madd52lo_epu64(zero, _mm512_madd52lo_epu64(zero, x, y), inverse);
        let above = _mm512_madd52hi_epu64(prime, x, y);
        _mm512_sub_epi64(above, _mm512_madd52hi_epu64(zero, multiple, prime))
    };
    for at in (0..factors.len()).step_by(LANES) {
        // SAFETY: `at + LANES` is no more than the length of each.
        unsafe {
            let factor = _mm512_loadu_si512(factors.as_ptr().add(at).cast());
            _mm_prefetch::<_MM_HINT_T0>(factors.as_ptr().wrapping_add(factors.len() + at).cast());
            for values in [first.as_mut_ptr(), second.as_mut_ptr()] {
                let place = values.add(at).cast();
                let product = reduced(reduced(_mm512_loadu_si512(place), factor), square);
                _mm512_storeu_si512(place, _mm512_min_epu64(product, _mm512_sub_epi64(product, prime)));
            }
        }
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

/// # Panics
/// If the lengths differ or are no multiple of 8.
fn turns_checked(factors: [u64; 2], shifts: [u32; 2], reciprocal: u64, values: &mut [u64], others: &[u64]) {
    assert!(values.len().is_multiple_of(LANES) && values.len() == others.len(), "whole vectors");
    assert!(shifts.iter().all(|shift| *shift < 52) && reciprocal >> 52 == 0, "primes below 2^50 and above 2^12");
    // SAFETY: the features were detected before this function was handed out, and the lengths were just checked.
    unsafe { turns(factors, shifts, reciprocal, values, others) }
}

/// # Safety
/// The processor must have AVX-512F and IFMA; there must be a multiple of [`LANES`] values, and as many others.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn turns(factors: [u64; 2], shifts: [u32; 2], reciprocal: u64, values: &mut [u64], others: &[u64]) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let zero = _mm512_setzero_si512();
    // Factors of 64 bits as 52 and 12; multiplications take the low 52 bits of what they are given.
    let [[low0, low1], [high0, high1]] = [factors, factors.map(|factor| factor >> 52)].map(|part| part.map(broadcast));
    let [right0, right1] = shifts.map(|shift| _mm_cvtsi64_si128(i64::from(shift)));
    let [left0, left1] = shifts.map(|shift| _mm_cvtsi64_si128(52 - i64::from(shift)));
    let reciprocal = broadcast(reciprocal);
    // 2^52 times the sum of `high` and `x factor`, of which the bits above 2^64 are lost.
    let upper = |high: __m512i, x: __m512i, factor: __m512i| {
        let above = _mm512_slli_epi64::<52>(_mm512_madd52hi_epu64(zero, x, factor));
        _mm512_add_epi64(_mm512_madd52lo_epu64(high, x, factor), above)
    };
    for at in (0..values.len()).step_by(LANES) {
        // SAFETY: `at + LANES <= values.len()`, and there are as many others.
        unsafe {
            let place = values.as_mut_ptr().add(at).cast();
            let (x0, x1) = (_mm512_loadu_si512(place), _mm512_loadu_si512(others.as_ptr().add(at).cast()));
            let low = _mm512_srl_epi64(_mm512_madd52lo_epu64(zero, x1, low1), right1);
            let high = upper(_mm512_madd52hi_epu64(zero, x1, low1), x1, high1);
            let fraction = _mm512_add_epi64(low, _mm512_sll_epi64(high, left1));
            let top = _mm512_srli_epi64::<52>(fraction);
            let quotient = upper(_mm512_madd52hi_epu64(zero, fraction, reciprocal), top, reciprocal);
            let low = _mm512_srl_epi64(_mm512_madd52lo_epu64(zero, x0, low0), right0);
            let high = upper(_mm512_madd52hi_epu64(zero, x0, low0), x0, high0);
            let fraction = _mm512_add_epi64(low, _mm512_sll_epi64(high, left0));
            _mm512_storeu_si512(place, _mm512_add_epi64(fraction, _mm512_srli_epi64::<12>(quotient)));
        }
    }
}

/// # Panics
/// If the lengths differ or are no multiple of 8.
fn butterfly_checked(montgomery: &Montgomery, x: &mut [u64], y: &mut [u64], factors: &[u64]) {
    assert!(x.len().is_multiple_of(LANES) && x.len() == y.len() && x.len() == factors.len(), "whole vectors");
    // SAFETY: the features were detected before this function was handed out, and the lengths were just checked.
    unsafe { butterfly(montgomery, x, y, factors) }
}

/// # Safety
/// The processor must have AVX-512F and IFMA; all three must be of one length, a multiple of [`LANES`].
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn butterfly(montgomery: &Montgomery, x: &mut [u64], y: &mut [u64], factors: &[u64]) {
    let broadcast = |value: u64| _mm512_set1_epi64(value as i64);
    let zero = _mm512_setzero_si512();
    let [prime, inverse] = [montgomery.prime, montgomery.inverse].map(broadcast);
    // One addition where it is due: what is no negative number is the smaller of the two.
    let raise = |x: __m512i| _mm512_min_epu64(x, _mm512_add_epi64(x, prime));
    for at in (0..x.len()).step_by(LANES) {
        // SAFETY: `at + LANES` is no more than the length of each.
        unsafe {
            let (first, second) = (x.as_mut_ptr().add(at).cast(), y.as_mut_ptr().add(at).cast());
            let (a, b) = (_mm512_loadu_si512(first), _mm512_loadu_si512(second));
            let factor = _mm512_loadu_si512(factors.as_ptr().add(at).cast());
            let low = _mm512_madd52lo_epu64(zero, b, factor);
            let multiple = _mm512_madd52hi_epu64(zero, _mm512_madd52lo_epu64(zero, low, inverse), prime);
            let product = raise(_mm512_sub_epi64(_mm512_madd52hi_epu64(zero, b, factor), multiple));
            // The sum less `p` is negative or reduced.
            let sum = raise(_mm512_sub_epi64(_mm512_add_epi64(a, product), prime));
            _mm512_storeu_si512(first, sum);
            _mm512_storeu_si512(second, raise(_mm512_sub_epi64(a, product)));
        }
    }
}

fn permute_detected(to: &mut [u64; CHUNK], from: &[u64; CHUNK], sources: &[u32; CHUNK]) {
    // SAFETY: the features were detected before this function was handed out.
    unsafe { permute(to, from, sources) }
}

#[target_feature(enable = "avx512f")]
fn permute(to: &mut [u64; CHUNK], from: &[u64; CHUNK], sources: &[u32; CHUNK]) {
    let (vectors, sources) = (from.as_chunks::<LANES>().0, sources.as_chunks::<LANES>().0);
    for (to, sources) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(sources) {
        let vector = cast(vectors[sources[0] as usize % CHUNK / LANES]);
        // Of each source, the lowest three bits.
        *to = cast(_mm512_permutexvar_epi64(_mm512_cvtepu32_epi64(cast(*sources)), vector));
    }
}
