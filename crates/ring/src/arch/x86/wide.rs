//! Products modulo 2^128 by the 52-bit multiplier.

use std::arch::x86_64::*;

use super::{eight, eight_mut, load, store};
use crate::arch::{LANES, LIMB_BITS, LIMBS, Row, WideRow};

/// Rows and vectors of a row that stay in registers: 24 of 32, with three limbs to a sum.
const ROWS: usize = 4;
const VECTORS: usize = 2;

/// Multiplications after which carries are brought in: a limb takes three products of 52 bits at a time in its 64 bits.
const DEPTH: usize = 1024;

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply(sums: &mut [WideRow], weights: &[&[u64]], stride: usize, panels: &[&[Row]]) {
    match (panels, weights) {
        ([x], [w]) => multiply_limbs(sums, [*w], stride, [*x]),
        ([x], [w, v]) => multiply_limbs(sums, [*w, *v], stride, [*x]),
        ([x], [w, v, u]) => multiply_limbs(sums, [*w, *v, *u], stride, [*x]),
        ([x, y], [w]) => multiply_limbs(sums, [*w], stride, [*x, *y]),
        ([x, y], [w, v]) => multiply_limbs(sums, [*w, *v], stride, [*x, *y]),
        ([x, y], [w, v, u]) => multiply_limbs(sums, [*w, *v, *u], stride, [*x, *y]),
        ([x, y, z], [w]) => multiply_limbs(sums, [*w], stride, [*x, *y, *z]),
        ([x, y, z], [w, v]) => multiply_limbs(sums, [*w, *v], stride, [*x, *y, *z]),
        ([x, y, z], [w, v, u]) => multiply_limbs(sums, [*w, *v, *u], stride, [*x, *y, *z]),
        _ => unreachable!("a number modulo 2^128 has one to three limbs"),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_limbs<const W: usize, const X: usize>(
    sums: &mut [WideRow],
    weights: [&[u64]; W],
    stride: usize,
    panels: [&[Row]; X],
) {
    for first in (0..panels[0].len()).step_by(DEPTH) {
        let panels = panels.map(|panel| &panel[first..panel.len().min(first + DEPTH)]);
        for (block, sums) in sums.chunks_mut(ROWS).enumerate() {
            let weights = weights.map(|limb| &limb[block * ROWS * stride + first..]);
            for vector in (0..LANES / 8).step_by(VECTORS) {
                match sums.len() {
                    ROWS => multiply_rows::<ROWS, W, X>(sums, weights, stride, panels, vector),
                    _ => {
                        for (row, sum) in sums.chunks_mut(1).enumerate() {
                            multiply_rows::<1, W, X>(
                                sum,
                                weights.map(|limb| &limb[row * stride..]),
                                stride,
                                panels,
                                vector,
                            );
                        }
                    }
                }
            }
        }
    }
}

/// `N` rows of sums, of which the vectors from `first` on.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_rows<const N: usize, const W: usize, const X: usize>(
    sums: &mut [WideRow],
    weights: [&[u64]; W],
    stride: usize,
    panels: [&[Row]; X],
    first: usize,
) {
    let depth = panels[0].len();
    let weights: [[&[u64]; N]; W] = weights.map(|limb| std::array::from_fn(|r| &limb[r * stride..][..depth]));
    let panels = panels.map(|panel| &panel[..depth]);
    let mut held = [[[_mm512_setzero_si512(); LIMBS]; VECTORS]; N];
    for (held, sum) in held.iter_mut().zip(sums.iter()) {
        for (v, held) in held.iter_mut().enumerate() {
            for (held, limb) in held.iter_mut().zip(&sum.0) {
                *held = load(eight(&limb.0, first + v));
            }
        }
    }
    for t in 0..depth {
        let mut x = [[_mm512_setzero_si512(); VECTORS]; X];
        for (x, panel) in x.iter_mut().zip(&panels) {
            for (v, x) in x.iter_mut().enumerate() {
                *x = load(eight(&panel[t].0, first + v));
            }
        }
        for (r, held) in held.iter_mut().enumerate() {
            for j in 0..W {
                let weight = _mm512_set1_epi64(weights[j][r][t] as i64);
                for (v, held) in held.iter_mut().enumerate() {
                    for (i, x) in x.iter().enumerate().take(LIMBS - j) {
                        held[i + j] = _mm512_madd52lo_epu64(held[i + j], x[v], weight);
                        if i + j + 1 < LIMBS {
                            held[i + j + 1] = _mm512_madd52hi_epu64(held[i + j + 1], x[v], weight);
                        }
                    }
                }
            }
        }
    }
    let low = _mm512_set1_epi64((1 << LIMB_BITS) - 1);
    for (held, sum) in held.into_iter().zip(sums) {
        for (v, held) in held.into_iter().enumerate() {
            let mut carry = _mm512_setzero_si512();
            for (limb, held) in sum.0.iter_mut().zip(held) {
                let value = _mm512_add_epi64(held, carry);
                carry = _mm512_srli_epi64::<LIMB_BITS>(value);
                store(eight_mut(&mut limb.0, first + v), _mm512_and_si512(value, low));
            }
        }
    }
}
