//! Ring elements times bits, element by element modulo 2^64: the arithmetic of a multiplexer. Constant time.

use crate::arch::kernels;

/// `out[i] = x[i]` where bit `i` of `bits` is 0, `-x[i]` where it is 1. Bits are packed 64 to a word.
///
/// # Panics
/// Unless `out` and `x` have the same length and `bits` a word for each 64.
pub fn signed(out: &mut [u64], bits: &[u64], x: &[u64]) {
    assert_eq!((x.len(), bits.len()), (out.len(), out.len().div_ceil(64)), "a sign for each element");
    (kernels().signed)(out, bits, x);
}

/// `out[i] += bits[i] * x[i] + (1 - 2 flips[i]) * shares[i]`. Bits are packed 64 to a word.
///
/// # Panics
/// Unless `out`, `x` and `shares` have the same length and `bits` and `flips` a word for each 64.
pub fn add_products(out: &mut [u64], bits: &[u64], x: &[u64], flips: &[u64], shares: &[u64]) {
    let words = out.len().div_ceil(64);
    assert_eq!((x.len(), shares.len()), (out.len(), out.len()), "two elements for each sum");
    assert_eq!((bits.len(), flips.len()), (words, words), "two bits for each sum");
    (kernels().add_products)(out, bits, x, flips, shares);
}
