//! The product without a transform: q a power of two, words that wrap for free, and one multiplication for each coefficient
//! of the ciphertext and each weight that is not zero (Jaguar, 2026).
//!
//! A ciphertext has two polynomials of `N` = 4096. With q = 2^64 a coefficient is one word; q = 2^78, which t = 2^37 with
//! weights of 16 bits needs, takes three limbs of 26 bits, whose products with a weight fit 64 bits with room for 2^22
//! terms.

use std::hint::black_box;

use privet_kernels::{Bench, Limit};
use pulp::Arch;

const N: usize = 4096;

/// Weights of one polynomial that are multiplied in one call: the taps of a 3x3 kernel, and a 1x1 kernel.
const TAPS: [usize; 2] = [9, 1];

pub fn run(bench: &mut Bench) {
    let arch = Arch::new();
    let ciphertext: Vec<u64> = (0..6 * N as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 38).collect();
    for taps in TAPS {
        let weights: Vec<(usize, u64)> = (0..taps).map(|i| (i / 3 * 58 + i % 3, (i as u64 * 997) % 65521)).collect();
        for (limbs, q) in [(1, 64), (3, 78)] {
            let mut sum = vec![0u64; 2 * limbs * N];
            let limit = Limit {
                vectors: (2 * limbs * N * taps) as f64 / 8.0,
                why: "one multiplication for eight coefficients, each limb and each tap, of two polynomials",
                ..Limit::default()
            };
            bench.run(&format!("untransformed-q{q}-{taps}-taps"), limit, || {
                for (sum, part) in sum.chunks_exact_mut(N).zip(black_box(&ciphertext).chunks_exact(N)) {
                    for &(shift, weight) in &weights {
                        arch.dispatch(
                            #[inline(always)]
                            || multiply_add(sum, part, shift, weight),
                        );
                    }
                }
            });
        }
    }
}

/// `sum += weight X^shift part` modulo `X^N + 1`.
#[inline(always)]
fn multiply_add(sum: &mut [u64], part: &[u64], shift: usize, weight: u64) {
    let (wrapped, straight) = sum.split_at_mut(shift);
    for (s, p) in straight.iter_mut().zip(part) {
        *s = s.wrapping_add(p.wrapping_mul(weight));
    }
    for (s, p) in wrapped.iter_mut().zip(&part[N - shift..]) {
        *s = s.wrapping_sub(p.wrapping_mul(weight));
    }
}
