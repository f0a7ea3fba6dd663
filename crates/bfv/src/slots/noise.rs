//! How much noise a sum of rotated products carries, and what then leaves with the reply. All bounds hold always.
//!
//! With `p` the plaintext prime, a product of a fresh ciphertext and a polynomial of slots, whose coefficients are at most
//! `p / 2`, has noise of at most `N (p / 2)(21 + 1/2)`. A rotation adds what its key's errors make of three digits below the
//! special prime, which it divides by that prime, and half a unit of rounding in each part.

use crate::flood::Flood;
use crate::noise::LOSS_BITS;
use crate::sample::{ERROR_BOUND, ERROR_VARIANCE};

use super::parameters::LIMBS;

/// Widest reply: rounding is done in 64 bits.
const WIDEST_REPLY: u32 = 60;

/// Bound on the error of a sum of `terms` products after `rotations` rotations, with a fresh encryption of zero on top.
pub(super) fn sum_bound(degree: usize, prime: u64, terms: usize, rotations: usize) -> f64 {
    let (degree, errors) = (degree as f64, ERROR_BOUND as f64);
    let products = terms as f64 * degree * (prime as f64 / 2.0) * (errors + 0.5);
    let rotated = rotations as f64 * (LIMBS as f64 * degree * errors + (degree + 1.0) / 2.0);
    products + rotated + errors * 2.0 * degree
}

/// Root mean square of that error and of the share's half unit: errors of fresh ciphertexts are independent, the half units of
/// encodings may all point one way, and of the rest the bound is taken.
pub(super) fn sum_deviation(degree: usize, prime: u64, terms: usize, rotations: usize) -> f64 {
    let (weights, heaviest) = ((terms * degree) as f64, prime as f64 / 2.0);
    let products = heaviest * (ERROR_VARIANCE * weights + weights * weights / 4.0).sqrt();
    products + sum_bound(degree, prime, 0, rotations) + 0.5
}

/// What hides the errors of `replies` replies: of all their coefficients, because slots mix them.
pub(super) fn flood(degree: usize, deviation: f64, replies: usize) -> Flood {
    Flood::hiding(deviation, degree * replies, LOSS_BITS)
}

/// Bound on how far a coefficient is rounded when it goes to `2^k`: half a unit, and the units of 2^-64 by which the fraction
/// that is rounded may be off, three for each prime.
fn rounding(reply_bits: u32) -> f64 {
    0.5 + (f64::from(reply_bits) - 60.0).exp2()
}

/// What scaled noise and flood may take of half the distance between two messages, in units of `2^k`.
fn allowance(degree: usize, prime: u64, reply_bits: u32) -> f64 {
    f64::from(reply_bits).exp2() / (2.0 * prime as f64) - (degree as f64 + 1.0) * rounding(reply_bits) - 1.0
}

/// The smallest reply width that leaves the flood enough room.
pub(super) fn reply_bits(degree: usize, prime: u64) -> Option<u32> {
    (1..WIDEST_REPLY).find(|&bits| allowance(degree, prime, bits) >= degree as f64 / 4.0)
}

/// The logarithm of the modulus that noise and flood need.
pub(super) fn modulus_bits(degree: usize, prime: u64, reply_bits: u32, bound: f64, flood: Flood) -> f64 {
    let carried = bound + 0.5 + flood.most() as f64;
    // A thousandth of a bit for the rounding of floating-point numbers.
    carried.log2() + f64::from(reply_bits) - allowance(degree, prime, reply_bits).log2() + 0.001
}
