//! How much noise a result carries, and the guard bits that hold it.
//!
//! The phase of the server's sum, before it leaves, is `q m / 2^l` plus an error of at most [`product_bound`], whatever the
//! randomness. Switching from `q` to `2^k` scales that error by `2^k / q` and adds a rounding error `r0 + r1 s`. Every `r`
//! is at most [`rounding`]. `r1` depends on the uniform part of ciphertexts and on the server's draws, never on `s`; the
//! coefficients of `s` are independent, uniform in {-1, 0, 1} and so sub-Gaussian with variance factor 2/3. One
//! coefficient of `r1 s` therefore exceeds `T` with probability at most `2 exp(-T^2 / (2 N (2/3) rounding^2))`.
//! If the total stays below `2^(k-l)`, the two shares sum to `m` up to one unit.
//!
//! Merged replies ([`crate::Merge`]) carry what switching keys adds: an error that is linear in those of the keys, with factors that depend
//! on the uniform parts of keys and ciphertexts and on the weights, never on errors. Errors are independent and sub-Gaussian, so
//! a bound that fails with probability `2^-100` grows with the root of the degree ([`merge_bound`]).
//!
//! Where what ciphertexts are multiplied by is not weights but uniform masks ([`Load::masks`]), as wide as the ring, the worst case is far from
//! what happens. The sum of `r_j (e_j + h_j)` over `n` terms, masks within `R`, fresh errors and half units of encodings that are anything within
//! them, is sub-Gaussian but for a shift of `n / 4`: given the masks, the errors' part has variance factor `n R^2` [`ERROR_VARIANCE`]; a uniform
//! mask has its own variance `R^2 / 3` as its factor, so that the half units' part has `n R^2 / 12`. The bound fails with probability
//! `2^-80` ([`mask_bound`]).
//!
//! An exact reply carries a [`flood`] besides. There the total stays below half of `2^(k-l)` always: the rounding
//! errors are bounded by `(N + 1)` [`rounding`], and the modulus is chosen such that the rest fits.

use crate::error::{Error, Misuse};
use crate::flood::Flood;
use crate::parameters::{Load, Resharing};
use crate::sample::{ERROR_BOUND, ERROR_VARIANCE};

/// All results of an inference together fail, or tell something of weights, with probability below `2^-41`: half of what may be lost
/// in an inference.
pub(crate) const LOSS_BITS: i32 = 41;

/// What the scaled error of the product may take of the guard range.
const PRODUCT_ALLOWANCE: u64 = 1;

const RING_BITS: std::ops::RangeInclusive<u32> = 8..=50;

/// Rings up to this width can be reshared exactly: the rounding to `2^k` is done in 64 bits, with `k` up to 60.
const EXACT_RING_BITS: u32 = 45;

/// The flood of an exact reply.
pub(crate) fn flood(degree: usize, load: &Load) -> Flood {
    Flood::hiding(product_deviation(degree, load), load.results, LOSS_BITS)
}

/// What all results under the flood tell.
pub(crate) fn flood_loss(degree: usize, load: &Load) -> f64 {
    flood(degree, load).loss(product_deviation(degree, load), load.results)
}

/// Root mean square of the error in the server's sum and of its share's half unit, over the honest parties' draws: errors are
/// independent, while the half units of encodings may all point one way.
pub(crate) fn product_deviation(degree: usize, load: &Load) -> f64 {
    let squares = load.weight_sum as f64 * load.heaviest as f64;
    let drawn = ERROR_VARIANCE * (squares + 2.0 * degree as f64 * 2.0 / 3.0);
    let rounded = (load.weight_sum as f64 + 1.0) / 2.0;
    (drawn + rounded * rounded).sqrt()
}

/// Bound on the error in the server's sum: weights times fresh errors (and the half unit of their encoding), and the
/// encryption of zero, `e u + e1 s` with ternary `u` and `s`.
pub(crate) fn product_bound(degree: usize, load: &Load) -> f64 {
    let fresh = match load.masks {
        false => load.weight_sum as f64 * (ERROR_BOUND as f64 + 0.5),
        true => mask_bound(load),
    };
    fresh + ERROR_BOUND as f64 * (2 * degree) as f64
}

/// A sum of masks times fresh errors is beyond [`mask_bound`] with probability below `2^-MASK_BITS`.
const MASK_BITS: f64 = 80.0;

/// Bound on masks times fresh errors and half units of their encodings.
fn mask_bound(load: &Load) -> f64 {
    let most = load.heaviest as f64;
    let terms = load.weight_sum as f64 / most;
    let variance = terms * most * most * (ERROR_VARIANCE + 1.0 / 12.0);
    (2.0 * variance * (MASK_BITS + 1.0) * std::f64::consts::LN_2).sqrt() + terms / 4.0
}

/// The probability that one of the bounds fails that do not hold always, beside that on rounding.
pub(crate) fn lost(load: &Load, merged: bool) -> f64 {
    let probability = |fails: bool, bits: f64| if fails { (-bits).exp2() } else { 0.0 };
    probability(merged, MERGE_BITS) + probability(load.masks, MASK_BITS)
}

/// A merged result carries more noise from the switching of keys than [`merge_bound`] with probability below `2^-MERGE_BITS`.
const MERGE_BITS: f64 = 100.0;

/// Bound on the noise that merging `2^levels` replies adds, under keys modulo `q` times a special prime.
///
/// A fold adds to a coefficient the products of two digits, below the primes of `q`, with errors of its key, divided by the special
/// prime: a sum of `2 N` independent terms of variance [`ERROR_VARIANCE`], which is their sub-Gaussian factor too. It rounds the second part,
/// by half a unit, and the last step the first. What the fold at level `i` of `k` adds is doubled `k - i` times.
pub(crate) fn merge_bound(degree: usize, primes: [u64; 2], special: u64, levels: u32) -> f64 {
    let doubled = f64::from(levels).exp2();
    let digits: f64 = primes.iter().map(|&prime| (prime as f64 / special as f64).powi(2)).sum();
    let variance = ERROR_VARIANCE * degree as f64 * digits * (doubled * doubled - 1.0) / 3.0;
    let switched = (2.0 * variance * (MERGE_BITS + 1.0) * std::f64::consts::LN_2).sqrt();
    switched + (doubled - 1.0) * degree as f64 / 2.0 + 1.0
}

/// Bound on how far one coefficient is rounded when it goes to `2^k`: half a unit, and the few units of 2^-64 by which
/// the fraction that is rounded may be off.
fn rounding(reply_bits: u32) -> f64 {
    0.5 + (f64::from(reply_bits) - 61.0).exp2()
}

/// Minus the logarithm of the probability that one coefficient fails, in bits; `lost` of it has other reasons than rounding ([`lost`]).
pub(crate) fn failure_bits(degree: usize, ring_bits: u32, reply_bits: u32, lost: f64) -> f64 {
    let rounding = rounding(reply_bits);
    let range = f64::from(reply_bits - ring_bits).exp2() - PRODUCT_ALLOWANCE as f64 - rounding;
    let variance = degree as f64 * (2.0 / 3.0) * rounding * rounding;
    let rounded = range * range / (2.0 * variance) * std::f64::consts::LOG2_E - 1.0;
    if lost > 0.0 { -((-rounded).exp2() + lost).log2() } else { rounded }
}

/// The smallest reply width whose guard bits make failure improbable enough, or impossible.
pub(crate) fn reply_bits(degree: usize, ring_bits: u32, load: &Load, resharing: Resharing) -> Result<u32, Error> {
    if !RING_BITS.contains(&ring_bits) {
        return Err(Misuse::RingWidth { ring_bits }.into());
    }
    let failure = f64::from(LOSS_BITS) + (load.results.max(1) as f64).log2();
    let enough = |&k: &u32| match resharing {
        // The same width with merging and without.
        Resharing::Approximate => failure_bits(degree, ring_bits, k, lost(load, true)) >= failure,
        // Less would leave so little for the flood that the modulus grows by more than the reply shrinks.
        Resharing::Exact => allowance(degree, ring_bits, k, resharing) >= (degree / 4) as u64,
    };
    let refusal = match resharing {
        Resharing::Approximate => Misuse::RingWidth { ring_bits },
        Resharing::Exact => Misuse::ExactRingWidth { ring_bits, limit: EXACT_RING_BITS },
    };
    let within = resharing == Resharing::Approximate || ring_bits <= EXACT_RING_BITS;
    (ring_bits + 1..=60).find(enough).filter(|_| within).ok_or(refusal.into())
}

/// What the scaled error in the server's sum, and the flood if there is one, may take of the guard range, in units of `2^k`.
fn allowance(degree: usize, ring_bits: u32, reply_bits: u32, resharing: Resharing) -> u64 {
    match resharing {
        Resharing::Approximate => PRODUCT_ALLOWANCE,
        Resharing::Exact => {
            let rounded = ((degree + 1) as f64 * rounding(reply_bits)).ceil() as u64;
            // Strictly below half of the range.
            (1_u64 << (reply_bits - ring_bits - 1)).saturating_sub(rounded + 1)
        }
    }
}

/// Bound on what the phase carries beside the message before the switch.
fn error_bound(degree: usize, load: &Load, resharing: Resharing) -> f64 {
    let product = product_bound(degree, load);
    match resharing {
        Resharing::Approximate => product,
        Resharing::Exact => product + 0.5 + flood(degree, load).most() as f64,
    }
}

/// The bits that a modulus needs for this noise, rounded down.
pub(crate) fn modulus_bits(degree: usize, ring_bits: u32, load: &Load, resharing: Resharing) -> Result<u32, Error> {
    let reply_bits = reply_bits(degree, ring_bits, load, resharing)?;
    let allowance = allowance(degree, ring_bits, reply_bits, resharing) as f64;
    Ok((f64::from(reply_bits) + error_bound(degree, load, resharing).log2() - allowance.log2()) as u32)
}

/// Checks that the scaled error of the sum, and the flood if there is one, stay within their allowance.
pub(crate) fn check(
    degree: usize,
    ring_bits: u32,
    reply_bits: u32,
    load: &Load,
    modulus: u128,
    resharing: Resharing,
    merged: f64,
) -> Result<(), Error> {
    let bound = error_bound(degree, load, resharing) + merged;
    // A unit in 2^50 for the rounding of floating-point numbers.
    let needed = (bound * (1.0 + 2_f64.powi(-50))).ceil() as u128;
    let allowance = allowance(degree, ring_bits, reply_bits, resharing);
    if needed > (modulus >> reply_bits) * u128::from(allowance) {
        let modulus_bits = (modulus as f64).log2();
        return Err(Misuse::NoiseTooLarge { noise_bits: bound.log2(), ring_bits, modulus_bits }.into());
    }
    Ok(())
}
