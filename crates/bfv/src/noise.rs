//! How much noise a result carries, and the guard bits that hold it.
//!
//! The phase of the server's sum, before it leaves, is `q m / 2^l` plus an error of at most [`product_bound`], whatever the
//! randomness. Switching from `q` to `2^k` scales that error by `2^k / q` and adds a rounding error `r0 + r1 s`. Every `r`
//! is at most [`rounding`]. `r1` depends on the uniform part of ciphertexts and on the server's draws, never on `s`; the
//! coefficients of `s` are independent, uniform in {-1, 0, 1} and so sub-Gaussian with variance factor 2/3. One
//! coefficient of `r1 s` therefore exceeds `T` with probability at most `2 exp(-T^2 / (2 N (2/3) rounding^2))`.
//! If the total stays below `2^(k-l)`, the two shares sum to `m` up to one unit.

use crate::error::{Error, Misuse};
use crate::sample::ERROR_BOUND;

/// A coefficient fails with probability below 2^-64, so 2^24 of them do below 2^-40.
const FAILURE_BITS: f64 = 64.0;

/// What the scaled error of the product may take of the guard range.
const PRODUCT_ALLOWANCE: u64 = 1;

const RING_BITS: std::ops::RangeInclusive<u32> = 8..=50;

/// Bound on the error in the server's sum: weights times fresh errors (and the half unit of their encoding), and the
/// encryption of zero, `e u + e1 s` with ternary `u` and `s`.
pub(crate) fn product_bound(degree: usize, weight_sum: u64) -> f64 {
    let fresh = ERROR_BOUND as f64 + 0.5;
    weight_sum as f64 * fresh + ERROR_BOUND as f64 * (2 * degree) as f64
}

/// Bound on how far one coefficient is rounded when it goes to `2^k`: half a unit, and the few units of 2^-64 by which
/// the fraction that is rounded may be off.
fn rounding(reply_bits: u32) -> f64 {
    0.5 + (f64::from(reply_bits) - 61.0).exp2()
}

/// Minus the logarithm of the probability that one coefficient fails, in bits.
pub(crate) fn failure_bits(degree: usize, ring_bits: u32, reply_bits: u32) -> f64 {
    let rounding = rounding(reply_bits);
    let range = f64::from(reply_bits - ring_bits).exp2() - PRODUCT_ALLOWANCE as f64 - rounding;
    let variance = degree as f64 * (2.0 / 3.0) * rounding * rounding;
    range * range / (2.0 * variance) * std::f64::consts::LOG2_E - 1.0
}

/// The smallest reply width whose guard bits make failure improbable enough.
pub(crate) fn reply_bits(degree: usize, ring_bits: u32) -> Result<u32, Error> {
    if !RING_BITS.contains(&ring_bits) {
        return Err(Misuse::RingWidth { ring_bits }.into());
    }
    let enough = (ring_bits + 1..=60).find(|&k| failure_bits(degree, ring_bits, k) >= FAILURE_BITS);
    enough.ok_or(Misuse::RingWidth { ring_bits }.into())
}

/// The bits that a modulus needs for this noise, rounded down.
pub(crate) fn modulus_bits(degree: usize, ring_bits: u32, weight_sum: u64) -> Result<u32, Error> {
    let reply_bits = reply_bits(degree, ring_bits)?;
    Ok(reply_bits + product_bound(degree, weight_sum).log2() as u32)
}

/// Checks that the scaled error of the product stays within its allowance.
pub(crate) fn check(
    degree: usize,
    ring_bits: u32,
    reply_bits: u32,
    weight_sum: u64,
    modulus: u128,
) -> Result<(), Error> {
    let bound = product_bound(degree, weight_sum);
    if bound.ceil() as u128 > (modulus >> reply_bits) * u128::from(PRODUCT_ALLOWANCE) {
        let modulus_bits = (modulus as f64).log2();
        return Err(Misuse::NoiseTooLarge { noise_bits: bound.log2(), ring_bits, modulus_bits }.into());
    }
    Ok(())
}
