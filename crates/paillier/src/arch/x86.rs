//! AVX-512 with 52-bit multiplications (IFMA); in `avx2`, what other processors can run.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

mod avx2;
mod lanes;

use super::{BLOCK, Kernels, LIMB_BITS, MOST_LIMBS, Row};

/// What this processor can run, the fastest last.
pub(super) fn kernels() -> Vec<Kernels> {
    avx2::kernels().into_iter().chain(ifma_kernels()).collect()
}

fn ifma_kernels() -> Option<Kernels> {
    let runs = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
    runs.then_some(Kernels {
        name: "ifma",
        multiply,
        gather: lanes::gather,
        scatter: lanes::scatter,
        // SAFETY: the features were detected just before.
        select: |out, table, digits| unsafe { select(out, table, digits) },
        // SAFETY: as above.
        select_shared: |out, table, digits| unsafe { select_shared(out, table, digits) },
    })
}

/// # Panics
/// If the lengths differ, or are no multiple of [`BLOCK`] or too large.
fn multiply(out: &mut [Row], a: &[Row], b: &[Row], modulus: &[Row], inverse: &Row) {
    let limbs = out.len();
    assert!(limbs.is_multiple_of(BLOCK) && (1..=MOST_LIMBS).contains(&limbs), "whole blocks of limbs");
    assert!(a.len() == limbs && b.len() == limbs && modulus.len() == limbs, "operands of one length");
    // SAFETY: the features were detected before this function was handed out.
    unsafe { ifma(out, a, b, modulus, inverse) }
}

/// Operand scanning, [`BLOCK`] limbs of `b` at a time. Columns of the sum keep their carries above 52 bits until the
/// end: a column takes at most 4 products of 52 bits for each limb, 2^61 in all.
#[target_feature(enable = "avx512f,avx512ifma")]
fn ifma(out: &mut [Row], a: &[Row], b: &[Row], modulus: &[Row], inverse: &Row) {
    let limbs = out.len();
    let inverse = load(inverse);
    let mut sums = [Row::ZERO; MOST_LIMBS];
    let sums = &mut sums[..limbs];
    for b in b.chunks_exact(BLOCK) {
        let b = [load(&b[0]), load(&b[1]), load(&b[2]), load(&b[3])];
        let (quotients, carry) = head(sums, a, &b, modulus, inverse);
        columns(sums, a, &b, modulus, &quotients, carry);
    }
    let mask = _mm512_set1_epi64((1 << LIMB_BITS) - 1);
    let mut carry = _mm512_setzero_si512();
    for (out, sum) in out.iter_mut().zip(sums) {
        let sum = _mm512_add_epi64(load(sum), carry);
        store(out, _mm512_and_si512(sum, mask));
        carry = _mm512_srli_epi64::<{ LIMB_BITS as u32 }>(sum);
    }
}

/// The lowest columns, which become zero: four limbs of the multiple of the modulus, and what they carry.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn head(
    sums: &[Row],
    a: &[Row],
    b: &[__m512i; BLOCK],
    modulus: &[Row],
    inverse: __m512i,
) -> ([__m512i; BLOCK], __m512i) {
    let zero = _mm512_setzero_si512();
    let a = [load(&a[0]), load(&a[1]), load(&a[2]), load(&a[3])];
    let n = [load(&modulus[0]), load(&modulus[1]), load(&modulus[2]), load(&modulus[3])];
    let mut quotients = [zero; BLOCK];
    let mut carry = zero;
    for column in 0..BLOCK {
        // Two sums, so that what does not wait for a quotient runs ahead.
        let (mut sum, mut early) = (_mm512_add_epi64(load(&sums[column]), carry), zero);
        for i in 0..=column {
            early = _mm512_madd52lo_epu64(early, a[column - i], b[i]);
        }
        for i in 0..column {
            early = _mm512_madd52hi_epu64(early, a[column - 1 - i], b[i]);
            sum = _mm512_madd52lo_epu64(sum, n[column - i], quotients[i]);
            sum = _mm512_madd52hi_epu64(sum, n[column - 1 - i], quotients[i]);
        }
        sum = _mm512_add_epi64(sum, early);
        quotients[column] = _mm512_madd52lo_epu64(zero, sum, inverse);
        sum = _mm512_madd52lo_epu64(sum, n[0], quotients[column]);
        carry = _mm512_srli_epi64::<{ LIMB_BITS as u32 }>(sum);
    }
    (quotients, carry)
}

/// The other columns, moved down by a block.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn columns(
    sums: &mut [Row],
    a: &[Row],
    b: &[__m512i; BLOCK],
    modulus: &[Row],
    quotients: &[__m512i; BLOCK],
    mut carry: __m512i,
) {
    let zero = _mm512_setzero_si512();
    let limbs = sums.len();
    // Limbs `column - 4` to `column - 1` of `a` and the modulus.
    let mut a_window = [load(&a[0]), load(&a[1]), load(&a[2]), load(&a[3])];
    let mut n_window = [load(&modulus[0]), load(&modulus[1]), load(&modulus[2]), load(&modulus[3])];
    for at in (BLOCK..=limbs).step_by(BLOCK) {
        let last = at == limbs;
        let next = |numbers: &[Row], i: usize| if last { zero } else { load(&numbers[at + i]) };
        for i in 0..BLOCK {
            let (a_next, n_next) = (next(a, i), next(modulus, i));
            let sum = if last { carry } else { _mm512_add_epi64(load(&sums[at + i]), carry) };
            carry = zero;
            let [mut a_low, mut a_high, mut n_low, mut n_high] = [sum, zero, zero, zero];
            a_low = _mm512_madd52lo_epu64(a_low, a_next, b[0]);
            n_low = _mm512_madd52lo_epu64(n_low, n_next, quotients[0]);
            for r in 0..BLOCK {
                let (a, n) = (a_window[BLOCK - 1 - r], n_window[BLOCK - 1 - r]);
                a_high = _mm512_madd52hi_epu64(a_high, a, b[r]);
                n_high = _mm512_madd52hi_epu64(n_high, n, quotients[r]);
                if r + 1 < BLOCK {
                    a_low = _mm512_madd52lo_epu64(a_low, a, b[r + 1]);
                    n_low = _mm512_madd52lo_epu64(n_low, n, quotients[r + 1]);
                }
            }
            let sum = _mm512_add_epi64(_mm512_add_epi64(a_low, a_high), _mm512_add_epi64(n_low, n_high));
            store(&mut sums[at - BLOCK + i], sum);
            a_window = [a_window[1], a_window[2], a_window[3], a_next];
            n_window = [n_window[1], n_window[2], n_window[3], n_next];
        }
    }
}

#[target_feature(enable = "avx512f")]
fn select(out: &mut [Row], table: &[Row], digits: &Row) {
    select_by(out, table, digits, |row| load(row));
}

#[target_feature(enable = "avx512f")]
fn select_shared(out: &mut [Row], table: &[u64], digits: &Row) {
    select_by(out, table, digits, |&limb| _mm512_set1_epi64(limb as i64));
}

/// [`BLOCK`] limbs at a time over all entries; `read` turns a table's element into a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn select_by<T>(out: &mut [Row], table: &[T], digits: &Row, read: impl Fn(&T) -> __m512i) {
    let limbs = out.len();
    let (blocks, _) = out.as_chunks_mut::<BLOCK>();
    let (digits, one) = (load(digits), _mm512_set1_epi64(1));
    for (block, out) in blocks.iter_mut().enumerate() {
        let mut chosen = [_mm512_setzero_si512(); BLOCK];
        let mut index = _mm512_setzero_si512();
        for entry in table.chunks_exact(limbs) {
            let mask = _mm512_cmpeq_epi64_mask(index, digits);
            for (chosen, element) in chosen.iter_mut().zip(&entry[BLOCK * block..]) {
                *chosen = _mm512_mask_mov_epi64(*chosen, mask, read(element));
            }
            index = _mm512_add_epi64(index, one);
        }
        out.iter_mut().zip(chosen).for_each(|(out, chosen)| store(out, chosen));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(row: &Row) -> __m512i {
    // SAFETY: a row is 64 bytes, aligned to as many.
    unsafe { _mm512_load_si512((&raw const *row).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(row: &mut Row, value: __m512i) {
    // SAFETY: as for `load`.
    unsafe { _mm512_store_si512((&raw mut *row).cast(), value) }
}
