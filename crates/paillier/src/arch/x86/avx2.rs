//! AVX2, for processors without IFMA: a limb of 52 bits is two halves of 26, whose products fill a word of 64 bits to no
//! more than 2^61 in a whole number of [`MOST_LIMBS`].
//!
//! The loops over lanes are plain code, which the compiler makes vectors of; what needs care is that factors are words of
//! 32 bits, as that is what the processor's multiplication takes.

use super::super::{Kernels, LANES, LIMB_BITS, MOST_LIMBS, Row, portable};

/// What this processor can run.
pub(in super::super) fn kernels() -> Option<Kernels> {
    is_x86_feature_detected!("avx2").then_some(Kernels { name: "avx2", multiply, ..portable::KERNELS })
}

/// See [`Kernels::multiply`].
///
/// # Panics
/// If the lengths differ or are too large.
fn multiply(out: &mut [Row], a: &[Row], b: &[Row], modulus: &[Row], inverse: &Row) {
    let limbs = out.len();
    assert!((1..=MOST_LIMBS).contains(&limbs), "so many limbs");
    assert!(a.len() == limbs && b.len() == limbs && modulus.len() == limbs, "operands of one length");
    // SAFETY: the feature was detected before this function was handed out.
    unsafe { halves(out, a, b, modulus, inverse) }
}

const HALF_BITS: usize = LIMB_BITS / 2;
const MASK: u64 = (1 << HALF_BITS) - 1;

/// The same half limb of eight numbers.
type Half = [u32; LANES];

/// Operand scanning: after each half limb of `b` all sums move down by one.
#[target_feature(enable = "avx2")]
fn halves(out: &mut [Row], a: &[Row], b: &[Row], modulus: &[Row], inverse: &Row) {
    let (a, b, modulus) = (&split(a), &split(b), &split(modulus));
    let halves = 2 * out.len();
    let mut sums = [[0; LANES]; 2 * MOST_LIMBS + 1];
    for b in &b[..halves] {
        let mut low = plus(&sums[0], &a[0], b);
        let quotient: Half =
            std::array::from_fn(|lane| (low[lane] as u32).wrapping_mul(inverse.0[lane] as u32) & MASK as u32);
        low = plus(&low, &modulus[0], &quotient);
        for i in 1..halves {
            sums[i - 1] = plus(&plus(&sums[i], &a[i], b), &modulus[i], &quotient);
        }
        sums[halves - 1] = [0; LANES];
        for (sum, low) in sums[0].iter_mut().zip(low) {
            *sum += low >> HALF_BITS;
        }
    }
    let mut carry = [0; LANES];
    for (out, sums) in out.iter_mut().zip(sums.chunks_exact(2)) {
        for lane in 0..LANES {
            let low = sums[0][lane] + carry[lane];
            let high = sums[1][lane] + (low >> HALF_BITS);
            out.0[lane] = low & MASK | (high & MASK) << HALF_BITS;
            carry[lane] = high >> HALF_BITS;
        }
    }
}

/// The two halves of each limb, one after the other.
#[inline(always)]
fn split(rows: &[Row]) -> [Half; 2 * MOST_LIMBS] {
    let mut halves = [[0; LANES]; 2 * MOST_LIMBS];
    for (halves, row) in halves.chunks_exact_mut(2).zip(rows) {
        halves[0] = row.0.map(|limb| (limb & MASK) as u32);
        halves[1] = row.0.map(|limb| (limb >> HALF_BITS) as u32);
    }
    halves
}

/// `sum + a b` in each lane.
#[inline(always)]
fn plus(sum: &[u64; LANES], a: &Half, b: &Half) -> [u64; LANES] {
    std::array::from_fn(|lane| sum[lane] + u64::from(a[lane]) * u64::from(b[lane]))
}
