//! Kernels for AVX-512 with GFNI and VBMI: an affine map over GF(2) transposes eight 8 x 8 bit squares at once.
#![allow(unsafe_code)]
#![expect(clippy::macro_metavars_in_unsafe, reason = "the calls given to `kernels!` are those of functions here")]

use std::arch::x86_64::*;

use super::vaes::twice;
use super::wide;
use crate::Block;
use crate::arch::{Kernels, portable};
use crate::ggm::{Correction, TREES};
use crate::kernels;

/// The kernels for AVX-512, if the processor has all that they need.
pub(super) fn avx512() -> Option<Kernels> {
    kernels!(Kernels "avx512", ["avx512f", "avx512bw", "avx512vbmi", "gfni", "avx2"], {
        columns: |rows, out| columns(rows, out),
        subset_sums: |sums, terms, width| subset_sums(sums, terms, width),
        mark: |nodes, correction, paths| mark(nodes, correction, paths),
        add_sparse: |out, parts, words| wide::add_sparse(out, parts, words),
    })
}

#[target_feature(enable = "avx512f")]
fn mark(nodes: &mut [Block], correction: &Correction, paths: &[u64; TREES]) {
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    let parents = (left.len() / TREES) as u64;
    mark_children(left, correction, *paths);
    mark_children(right, correction, paths.map(|path| path.wrapping_sub(parents)));
}

/// Of children in the order of their parents; both paths count from the first.
#[inline]
#[target_feature(enable = "avx512f")]
fn mark_children(nodes: &mut [Block], correction: &Correction, paths: [u64; TREES]) {
    let (one, lowest) = (_mm512_set1_epi64(1), _mm512_setr_epi64(1, 0, 1, 0, 1, 0, 1, 0));
    let differences = load(&correction.differences);
    // They count down to zero.
    let (mut until_parent, mut until_node) = (twice(&correction.paths), twice(&paths));
    for nodes in nodes.as_chunks_mut().0 {
        let is_parent = _mm512_testn_epi64_mask(until_parent, until_parent);
        let is_node = _mm512_testn_epi64_mask(until_node, until_node);
        let node = load(nodes);
        let cleared = _mm512_andnot_si512(lowest, _mm512_mask_xor_epi64(node, is_parent, node, differences));
        store(nodes, _mm512_mask_or_epi64(cleared, is_node, cleared, lowest));
        until_parent = _mm512_sub_epi64(until_parent, one);
        until_node = _mm512_sub_epi64(until_node, one);
    }
}

#[target_feature(enable = "avx512f")]
fn subset_sums(sums: &mut [Block], terms: &mut [Block], width: usize) {
    match (sums.len() / width, width % 4) {
        (2, 0) => fold::<4>(sums, terms, width),
        (4, 0) => fold::<16>(sums, terms, width),
        _ => portable::subset_sums(sums, terms, width),
    }
}

/// As the portable code, with all `TERMS` terms of a vector in registers.
#[inline]
#[target_feature(enable = "avx512f")]
fn fold<const TERMS: usize>(sums: &mut [Block], terms: &mut [Block], width: usize) {
    let (sums, _) = sums.as_chunks_mut::<4>();
    let (terms, _) = terms.as_chunks_mut::<4>();
    let width = width / 4;
    for i in 0..width {
        let mut folded = [_mm512_setzero_si512(); TERMS];
        for (x, folded) in folded.iter_mut().enumerate() {
            *folded = load(&terms[x * width + i]);
        }
        for bit in (0..TERMS.ilog2() as usize).rev() {
            let (lower, upper) = folded[..2 << bit].split_at_mut(1 << bit);
            let mut sum = _mm512_setzero_si512();
            for (lower, upper) in lower.iter_mut().zip(upper) {
                sum = _mm512_xor_si512(sum, *upper);
                *lower = _mm512_xor_si512(*lower, *upper);
            }
            store(&mut sums[bit * width + i], sum);
        }
        store(&mut terms[i], folded[0]);
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vbmi,gfni")]
fn columns(rows: &[Block], out: &mut [Block]) {
    let width = rows.len() / 128;
    if !width.is_multiple_of(4) {
        return wide::columns(rows, out);
    }
    let (vectors, _) = rows.as_chunks::<4>();
    // Byte `i` of `bytes[c][r]`: bits of rows `8 * r ..` in column `64 * c + i` of the tile.
    let mut bytes = [[_mm512_setzero_si512(); 16]; 8];
    for (tile, out) in out.chunks_exact_mut(512).enumerate() {
        for r in 0..16 {
            let mut eight = [_mm512_setzero_si512(); 8];
            for (j, vector) in eight.iter_mut().enumerate() {
                *vector = load(&vectors[(8 * r + j) * (width / 4) + tile]);
            }
            transpose_words(&mut eight);
            for (c, vector) in eight.into_iter().enumerate() {
                bytes[c][r] = transpose_squares(vector);
            }
        }
        let (vectors, _) = out.as_chunks_mut::<4>();
        for (bytes, out) in bytes.iter().zip(vectors.chunks_exact_mut(16)) {
            interleave(bytes, out);
        }
    }
}

/// Transposes eight vectors of eight 64-bit words.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_words(v: &mut [__m512i; 8]) {
    let pairs = [0, 2, 4, 6].map(|i| (v[i], v[i + 1]));
    for (i, (even, odd)) in pairs.into_iter().enumerate() {
        v[2 * i] = _mm512_unpacklo_epi64(even, odd);
        v[2 * i + 1] = _mm512_unpackhi_epi64(even, odd);
    }
    // Now 128-bit lanes: vector `i` holds lanes of words `i % 2`, rows `2 * (i / 2) ..`.
    let even = transpose_lanes([v[0], v[2], v[4], v[6]]);
    let odd = transpose_lanes([v[1], v[3], v[5], v[7]]);
    for i in 0..4 {
        v[2 * i] = even[i];
        v[2 * i + 1] = odd[i];
    }
}

/// Transposes four vectors of four 128-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab_even, ab_odd) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
    let (cd_even, cd_odd) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d));
    [
        _mm512_shuffle_i32x4::<0x88>(ab_even, cd_even),
        _mm512_shuffle_i32x4::<0x88>(ab_odd, cd_odd),
        _mm512_shuffle_i32x4::<0xdd>(ab_even, cd_even),
        _mm512_shuffle_i32x4::<0xdd>(ab_odd, cd_odd),
    ]
}

/// From eight rows of eight bytes to the 64 columns of eight bits.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn transpose_squares(rows: __m512i) -> __m512i {
    // Byte `8 * b + 7 - r` from byte `8 * r + b`: the affine map wants the first row in the highest byte.
    const SQUARES: [u64; 8] = {
        let mut squares = [0; 8];
        let mut b = 0;
        while b < 8 {
            squares[b] = u64::from_le_bytes([56, 48, 40, 32, 24, 16, 8, 0]) + 0x0101_0101_0101_0101 * b as u64;
            b += 1;
        }
        squares
    };
    let [a, b, c, d, e, f, g, h] = SQUARES.map(u64::cast_signed);
    let squares = _mm512_permutexvar_epi8(_mm512_setr_epi64(a, b, c, d, e, f, g, h), rows);
    // Unit vectors in place of the map's argument give the columns of its matrix.
    let units = _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed());
    _mm512_gf2p8affine_epi64_epi8::<0>(units, squares)
}

/// Writes 64 blocks of which byte `r` of block `i` is byte `i` of `bytes[r]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave(bytes: &[__m512i; 16], out: &mut [[Block; 4]]) {
    // Four perfect shuffles transpose the 16 x 16 bytes of every lane.
    let mut bytes = *bytes;
    for _ in 0..4 {
        let before = bytes;
        for i in 0..8 {
            bytes[2 * i] = _mm512_unpacklo_epi8(before[i], before[i + 8]);
            bytes[2 * i + 1] = _mm512_unpackhi_epi8(before[i], before[i + 8]);
        }
    }
    // Lane `l` of vector `i` is block `16 * l + i`.
    for i in 0..4 {
        let four = transpose_lanes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        for (l, vector) in four.into_iter().enumerate() {
            store(&mut out[4 * l + i], vector);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(blocks: &[Block; 4]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes read, and the instruction asks for no alignment.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(blocks: &mut [Block; 4], vector: __m512i) {
    // SAFETY: the reference covers the 64 bytes written, and the instruction asks for no alignment.
    unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), vector) }
}
