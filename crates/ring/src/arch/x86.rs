//! Code for the vector instructions of x86-64.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{CIRCLES, Choices, Circle, Kernels, LANES, Row, portable};
use crate::digit::Digit;

mod wide;

/// What this processor can run, slowest first.
pub(super) fn kernels() -> Vec<Kernels> {
    avx2().into_iter().chain(avx512()).collect()
}

fn avx2() -> Option<Kernels> {
    privet_prg::kernels!(Kernels "avx2", ["avx2", "popcnt"], {
        multiply_52: |sums, weights, stride, panel| multiply_256(sums, weights, stride, panel),
        multiply: |sums, weights, stride, panel| multiply_256(sums, weights, stride, panel),
        accumulate: |target, source, factor| accumulate_256(target, source, factor),
        signed: |out, bits, x| signed_256(out, bits, x),
        add_products: |out, bits, x, flips, shares| add_products_256(out, bits, x, flips, shares),
        choose: |circle, tables| choose_256(circle, tables),
        choose_narrow: |circles, tables| choose_narrow_256(circles, tables),
        select: |bits, tables| select_256(bits, tables),
        compare: |numbers, digit, tables, out| compare_256(numbers, digit, tables, out),
    } else portable::KERNELS)
}

fn avx512() -> Option<Kernels> {
    privet_prg::kernels!(Kernels "avx512", [
        "avx2", "popcnt", "avx512f", "avx512bw", "avx512dq", "avx512ifma", "avx512vbmi", "avx512vpopcntdq",
    ], {
        multiply_52: |sums, weights, stride, panel| multiply_512::<false>(sums, weights, stride, panel),
        multiply: |sums, weights, stride, panel| multiply_512::<true>(sums, weights, stride, panel),
        multiply_wide: |sums, weights, stride, panels| wide::multiply(sums, weights, stride, panels),
        accumulate: |target, source, factor| accumulate_512(target, source, factor),
        signed: |out, bits, x| signed_512(out, bits, x),
        add_products: |out, bits, x, flips, shares| add_products_512(out, bits, x, flips, shares),
        choose: |circle, tables| choose_512(circle, tables),
        choose_narrow: |circles, tables| choose_narrow_512(circles, tables),
        select: |bits, tables| select_512(bits, tables),
        compare: |numbers, digit, tables, out| compare_512(numbers, digit, tables, out),
        pack: |out, values, bits| pack_512(out, values, bits),
        unpack: |out, bytes, bits| unpack_512(out, bytes, bits),
    })
}

#[target_feature(enable = "avx2")]
fn multiply_256(sums: &mut [Row], weights: &[i64], stride: usize, panel: &[Row]) {
    portable::multiply(sums, weights, stride, panel);
}

#[target_feature(enable = "avx2")]
fn accumulate_256(target: &mut [u64], source: &[i64], factor: u64) {
    portable::accumulate(target, source, factor);
}

#[target_feature(enable = "avx2")]
fn signed_256(out: &mut [u64], bits: &[u64], x: &[u64]) {
    portable::signed(out, bits, x);
}

#[target_feature(enable = "avx2")]
fn add_products_256(out: &mut [u64], bits: &[u64], x: &[u64], flips: &[u64], shares: &[u64]) {
    portable::add_products(out, bits, x, flips, shares);
}

#[target_feature(enable = "avx512f,avx512dq")]
fn accumulate_512(target: &mut [u64], source: &[i64], factor: u64) {
    portable::accumulate(target, source, factor);
}

/// The processor's masked operations take eight bits of `bits` for eight lanes.
#[target_feature(enable = "avx512f,avx512bw")]
fn signed_512(out: &mut [u64], bits: &[u64], x: &[u64]) {
    let (wide, rest) = out.as_chunks_mut::<64>();
    let (wide_x, rest_x) = x.as_chunks::<64>();
    for ((out, x), &word) in wide.iter_mut().zip(wide_x).zip(bits) {
        for i in 0..8 {
            let value = load(eight(x, i));
            let value = _mm512_mask_sub_epi64(value, (word >> (8 * i)) as u8, _mm512_setzero_si512(), value);
            store(eight_mut(out, i), value);
        }
    }
    portable::signed(rest, bits.get(wide.len()..).unwrap_or_default(), rest_x);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn add_products_512(out: &mut [u64], bits: &[u64], x: &[u64], flips: &[u64], shares: &[u64]) {
    let (wide, rest) = out.as_chunks_mut::<64>();
    let ((wide_x, rest_x), (wide_shares, rest_shares)) = (x.as_chunks::<64>(), shares.as_chunks::<64>());
    for (at, out) in wide.iter_mut().enumerate() {
        let (x, shares, bits, flips) = (&wide_x[at], &wide_shares[at], bits[at], flips[at]);
        for i in 0..8 {
            let (bits, flips) = ((bits >> (8 * i)) as u8, (flips >> (8 * i)) as u8);
            let (share, sum) = (load(eight(shares, i)), load(eight(out, i)));
            let sum = _mm512_mask_add_epi64(sum, !flips, sum, share);
            let sum = _mm512_mask_sub_epi64(sum, flips, sum, share);
            store(eight_mut(out, i), _mm512_mask_add_epi64(sum, bits, sum, load(eight(x, i))));
        }
    }
    let done = wide.len();
    let (bits, flips) = (bits.get(done..).unwrap_or_default(), flips.get(done..).unwrap_or_default());
    portable::add_products(rest, bits, rest_x, flips, rest_shares);
}

/// Rows of `sums` that stay in registers: with four vectors to a row, 24 of the 32 registers.
const ROWS: usize = 6;

/// Modulo 2^64 if `WIDE`; modulo 2^52 else, where one instruction multiplies and adds.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn multiply_512<const WIDE: bool>(sums: &mut [Row], weights: &[i64], stride: usize, panel: &[Row]) {
    let mut blocks = sums.chunks_exact_mut(ROWS);
    let mut first = 0;
    for block in &mut blocks {
        multiply_rows::<ROWS, WIDE>(block, &weights[first..], stride, panel);
        first += ROWS * stride;
    }
    for row in blocks.into_remainder().chunks_mut(1) {
        multiply_rows::<1, WIDE>(row, &weights[first..], stride, panel);
        first += stride;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn multiply_rows<const N: usize, const WIDE: bool>(sums: &mut [Row], weights: &[i64], stride: usize, panel: &[Row]) {
    const VECTORS: usize = LANES / 8;
    let weights: [&[i64]; N] = std::array::from_fn(|r| &weights[r * stride..][..panel.len()]);
    let mut held = [[_mm512_setzero_si512(); VECTORS]; N];
    for (held, sum) in held.iter_mut().zip(sums.iter()) {
        for (v, held) in held.iter_mut().enumerate() {
            *held = load(eight(&sum.0, v));
        }
    }
    for (t, row) in panel.iter().enumerate() {
        let mut x = [_mm512_setzero_si512(); VECTORS];
        for (v, x) in x.iter_mut().enumerate() {
            *x = load(eight(&row.0, v));
        }
        for (held, weights) in held.iter_mut().zip(&weights) {
            let weight = _mm512_set1_epi64(weights[t]);
            for (held, x) in held.iter_mut().zip(x) {
                *held = if WIDE {
                    _mm512_add_epi64(*held, _mm512_mullo_epi64(x, weight))
                } else {
                    _mm512_madd52lo_epu64(*held, x, weight)
                };
            }
        }
    }
    for (held, sum) in held.into_iter().zip(sums) {
        for (v, held) in held.into_iter().enumerate() {
            store(eight_mut(&mut sum.0, v), held);
        }
    }
}

#[target_feature(enable = "avx2")]
fn choose_256(circle: Circle<'_>, tables: [&[Choices<u64>]; 2]) -> [u64; 2] {
    portable::choose(circle, tables)
}

#[target_feature(enable = "avx2")]
fn choose_narrow_256(circles: [Circle<'_>; CIRCLES], tables: [&[Choices<u32>]; 2]) -> [[u32; 2]; CIRCLES] {
    circles.map(|circle| portable::choose(circle, tables))
}

#[target_feature(enable = "avx512f")]
fn choose_512(circle: Circle<'_>, tables: [&[Choices<u64>]; 2]) -> [u64; 2] {
    let mut sums = [[_mm512_setzero_si512(); 2]; 2];
    for (part, (first, second)) in tables[0].iter().zip(tables[1]).enumerate() {
        for (i, mask) in portable::turned(circle, part).to_le_bytes().into_iter().enumerate() {
            for (sums, table) in sums.iter_mut().zip([first, second]) {
                sums[i % 2] = _mm512_mask_add_epi64(sums[i % 2], mask, sums[i % 2], load(eight(&table.0, i)));
            }
        }
    }
    sums.map(|[one, other]| _mm512_reduce_add_epi64(_mm512_add_epi64(one, other)).cast_unsigned())
}

/// Sixteen numbers to a vector, each vector loaded once for all circles.
#[target_feature(enable = "avx512f")]
fn choose_narrow_512(circles: [Circle<'_>; CIRCLES], tables: [&[Choices<u32>]; 2]) -> [[u32; 2]; CIRCLES] {
    let mut sums = [[_mm512_setzero_si512(); 2]; CIRCLES];
    for (part, (first, second)) in tables[0].iter().zip(tables[1]).enumerate() {
        let words = circles.map(|circle| portable::turned(circle, part));
        for quarter in 0..4 {
            let numbers = [first, second].map(|table| load_narrow(&table.0.as_chunks().0[quarter]));
            for (sums, word) in sums.iter_mut().zip(words) {
                let mask = (word >> (16 * quarter)) as u16;
                for (sum, numbers) in sums.iter_mut().zip(numbers) {
                    *sum = _mm512_mask_add_epi32(*sum, mask, *sum, numbers);
                }
            }
        }
    }
    sums.map(|sums| sums.map(|sum| _mm512_reduce_add_epi32(sum).cast_unsigned()))
}

#[target_feature(enable = "avx2")]
fn select_256(bits: &[u64], tables: [&[u64]; 2]) -> [[u64; 64]; 2] {
    portable::select(bits, tables)
}

#[target_feature(enable = "avx512f")]
fn select_512(bits: &[u64], [first, second]: [&[u64]; 2]) -> [[u64; 64]; 2] {
    let mut held = [[_mm512_setzero_si512(); 8]; 2];
    for ((word, first), second) in bits.iter().zip(first).zip(second) {
        let numbers = [first, second].map(|x| _mm512_set1_epi64(x.cast_signed()));
        for (i, mask) in word.to_le_bytes().into_iter().enumerate() {
            for (held, number) in held.iter_mut().zip(numbers) {
                held[i] = _mm512_mask_add_epi64(held[i], mask, held[i], number);
            }
        }
    }
    let mut sums = [[0; 64]; 2];
    for (sums, held) in sums.iter_mut().zip(held) {
        for (i, held) in held.into_iter().enumerate() {
            store(eight_mut(sums, i), held);
        }
    }
    sums
}

#[target_feature(enable = "avx2,popcnt")]
fn compare_256(numbers: &[u64], digit: Digit, tables: [&[u64]; 2], out: [&mut [u64]; 2]) {
    portable::compare(numbers, digit, tables, out);
}

/// As the portable code; shifts by more than a word leave nothing here, too.
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn compare_512(numbers: &[u64], digit: Digit, [low, high]: [&[u64]; 2], [less, equal]: [&mut [u64]; 2]) {
    let mask = _mm512_set1_epi64((u64::MAX >> (64 - (1 << digit.bits.min(6)))).cast_signed());
    let digits = _mm512_set1_epi64((1 << digit.bits) - 1);
    let [first_bit, offset] = [digit.low, digit.offset].map(|bits| _mm_cvtsi32_si128(bits.cast_signed()));
    let (one, word) = (_mm512_set1_epi64(1), _mm512_set1_epi64(64));
    let (blocks, rest) = numbers.as_chunks::<64>();
    let (low_blocks, low_rest) = low.as_chunks::<64>();
    let (high_blocks, high_rest) = high.as_chunks::<64>();
    for (block, numbers) in blocks.iter().enumerate() {
        let (mut smaller, mut same) = ([0; 8], [0; 8]);
        for (i, (smaller, same)) in smaller.iter_mut().zip(&mut same).enumerate() {
            let at = _mm512_and_si512(_mm512_srl_epi64(load(eight(numbers, i)), first_bit), digits);
            let low = _mm512_and_si512(_mm512_srl_epi64(load(eight(&low_blocks[block], i)), offset), mask);
            let mut first = _mm512_srlv_epi64(low, at);
            let mut behind = first;
            if let Some(high) = high_blocks.get(block) {
                let high = load(eight(high, i));
                let moved = _mm512_sllv_epi64(high, _mm512_sub_epi64(word, at));
                let far = _mm512_srlv_epi64(high, _mm512_sub_epi64(at, word));
                first = _mm512_or_si512(first, _mm512_or_si512(moved, far));
                behind = _mm512_xor_si512(first, _mm512_srlv_epi64(high, at));
            }
            let behind = _mm512_xor_si512(_mm512_popcnt_epi64(behind), first);
            *smaller = _mm512_test_epi64_mask(behind, one);
            *same = _mm512_test_epi64_mask(first, one);
        }
        [less[block], equal[block]] = [smaller, same].map(u64::from_le_bytes);
    }
    let done = blocks.len();
    portable::compare(rest, digit, [low_rest, high_rest], [&mut less[done..], &mut equal[done..]]);
}

/// The widest values whose bits, shifted to the start of a byte, stay within a 64-bit lane.
const WIDEST: u32 = 57;

/// Eight values fill whole bytes: each is shifted to its place in its first byte, and the bytes moved to theirs. Only
/// neighbours share a byte, so even and odd lanes are moved apart.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn pack_512(out: &mut [u8], values: &[u64], bits: u32) {
    if !(8..=WIDEST).contains(&bits) {
        return portable::pack(out, values, bits);
    }
    let (shifts, _) = places(bits);
    let (mut sources, mut masks) = ([[0u8; 64]; 2], [0u64; 2]);
    for lane in 0..8 {
        let (first, last) = (lane * bits as usize / 8, ((lane + 1) * bits as usize - 1) / 8);
        for (i, source) in sources[lane % 2][first..=last].iter_mut().enumerate() {
            *source = (8 * lane + i) as u8;
            masks[lane % 2] |= 1 << (first + i);
        }
    }
    let sources = [load_bytes(&sources[0]), load_bytes(&sources[1])];
    let (groups, rest) = values.as_chunks::<8>();
    for (group, out) in groups.iter().zip(out.chunks_exact_mut(bits as usize)) {
        let placed = _mm512_sllv_epi64(load(group), shifts);
        let even = _mm512_maskz_permutexvar_epi8(masks[0], sources[0], placed);
        let odd = _mm512_maskz_permutexvar_epi8(masks[1], sources[1], placed);
        let packed = _mm512_or_si512(even, odd);
        // SAFETY: the mask admits the `bits` bytes that `out` has.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), (1 << bits) - 1, packed) };
    }
    portable::pack(&mut out[groups.len() * bits as usize..], rest, bits);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack_512(out: &mut [u64], bytes: &[u8], bits: u32) {
    if bits > WIDEST {
        return portable::unpack(out, bytes, bits);
    }
    let (shifts, sources) = places(bits);
    let mask = _mm512_set1_epi64((u64::MAX >> (64 - bits)) as i64);
    let (groups, rest) = out.as_chunks_mut::<8>();
    for (group, bytes) in groups.iter_mut().zip(bytes.chunks_exact(bits as usize)) {
        // SAFETY: the mask admits the `bits` bytes that `bytes` has.
        let packed = unsafe { _mm512_maskz_loadu_epi8((1 << bits) - 1, bytes.as_ptr().cast()) };
        let spread = _mm512_permutexvar_epi8(sources, packed);
        store(group, _mm512_and_si512(_mm512_srlv_epi64(spread, shifts), mask));
    }
    portable::unpack(rest, &bytes[groups.len() * bits as usize..], bits);
}

/// Of eight packed values: by how many bits each is off the start of a byte, and the eight bytes from that one on.
#[target_feature(enable = "avx512f")]
fn places(bits: u32) -> (__m512i, __m512i) {
    let starts: [u64; 8] = std::array::from_fn(|lane| lane as u64 * u64::from(bits));
    let bytes: [u8; 64] = std::array::from_fn(|byte| (starts[byte / 8] / 8) as u8 + (byte % 8) as u8);
    (load(&starts.map(|start| start % 8)), load_bytes(&bytes))
}

/// Group `i` of eight words.
fn eight<const N: usize>(words: &[u64; N], i: usize) -> &[u64; 8] {
    &words.as_chunks().0[i]
}

/// As [`eight`].
fn eight_mut<const N: usize>(words: &mut [u64; N], i: usize) -> &mut [u64; 8] {
    &mut words.as_chunks_mut().0[i]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64; 8]) -> __m512i {
    // SAFETY: eight words are 64 bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_narrow(numbers: &[u32; 16]) -> __m512i {
    // SAFETY: sixteen numbers are 64 bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: 64 bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(words: &mut [u64; 8], value: __m512i) {
    // SAFETY: eight words are 64 bytes, and the store asks for no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}
