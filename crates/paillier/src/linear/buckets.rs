//! Dot products by buckets, for a few outputs.
//!
//! Weights are written in signed digits `-2^(b-1) <= d <= 2^(b-1)`. A *unit* is one digit of one output, over a part of
//! the inputs, and has a lane to itself: every input is multiplied into the bucket of its digit (that of zero is never
//! read), and the buckets of positive and of negative digits are raised to their digits by running products. Numerators
//! and denominators of all outputs are put together by squarings, and denominators inverted at once.

use rayon::prelude::*;

use crate::arch::LANES;
use crate::error::Error;
use crate::keys::PublicKey;
use crate::lanes::{Lanes, Residues, load, store};
use crate::linear::batch;
use crate::linear::weights::{Weights, Windows};
use crate::modulus::Modulus;

/// The shape of the work.
#[derive(Clone, Copy)]
struct Shape {
    /// Bits of a digit.
    bits: usize,
    /// Digits of a weight.
    digits: usize,
    /// Parts of the inputs.
    parts: usize,
    /// Inputs of a part.
    each: usize,
    outputs: usize,
    windows: usize,
}

/// One lane's work.
#[derive(Clone, Copy)]
struct Unit {
    window: usize,
    output: usize,
    digit: usize,
    part: usize,
}

impl Shape {
    fn units(&self) -> usize {
        self.windows * self.outputs * self.digits * self.parts
    }

    /// Units in order: outputs and windows (as the result has them), then digits, then parts.
    fn unit(&self, index: usize) -> Unit {
        let (rest, part) = (index / self.parts, index % self.parts);
        let (rest, digit) = (rest / self.digits, rest % self.digits);
        Unit { output: rest / self.windows, window: rest % self.windows, digit, part }
    }

    /// Largest magnitude of a digit.
    fn half(&self) -> i64 {
        1 << (self.bits - 1)
    }

    /// A digit of a weight. All but the top one are below `half`, so that the rest is a whole number.
    fn digit(&self, weight: i32, digit: usize) -> i64 {
        let half = self.half();
        let mut rest = i64::from(weight);
        for _ in 0..digit {
            rest = (rest + half) >> self.bits;
        }
        if digit + 1 == self.digits { rest } else { ((rest + half) & (2 * half - 1)) - half }
    }
}

/// Encrypted `[outputs, windows]`; see [`super::Plan::Buckets`].
pub(super) fn dot(
    key: &PublicKey,
    inputs: &Residues,
    weights: &Weights,
    windows: &Windows,
    bits: usize,
    parts: usize,
) -> Result<Residues, Error> {
    let modulus = key.modulus();
    let limbs = modulus.limbs();
    let shape = Shape {
        bits,
        digits: weights.bits().div_ceil(bits),
        parts,
        each: weights.inputs().div_ceil(parts),
        outputs: weights.outputs(),
        windows: windows.count(),
    };
    let units: Vec<[Lanes; 2]> = (0..shape.units().div_ceil(LANES))
        .into_par_iter()
        .map(|vector| {
            let unit = |lane: usize| shape.unit((LANES * vector + lane).min(shape.units() - 1));
            unit_sums(modulus, inputs, weights, windows, shape, unit)
        })
        .collect();
    // Numerators of all results, then denominators.
    let count = shape.outputs * shape.windows;
    let mut halves = Residues::zero(limbs, 2 * count);
    halves.eights_mut().enumerate().par_bridge().for_each(|(vector, numbers)| {
        let sums = |lane: usize, digit: usize, part: usize| {
            let at = (LANES * vector + lane).min(2 * count - 1);
            let unit = (at % count * shape.digits + digit) * shape.parts + part;
            units[unit / LANES][at / count].lane(unit % LANES)
        };
        store(&join(modulus, shape, sums), numbers);
    });
    let mut results = halves.slice(0..count);
    let inverses = batch::invert(key, &halves.slice(count..2 * count))?;
    let inverses: Vec<_> = inverses.eights().collect();
    results.eights_mut().zip(inverses).par_bridge().for_each(|(numbers, inverses)| {
        let mut result = load(limbs, numbers);
        modulus.multiply(&mut result, &load(limbs, inverses));
        store(&result, numbers);
    });
    Ok(results)
}

/// Parts multiplied, digits put together by squarings.
fn join(modulus: &Modulus, shape: Shape, sums: impl Fn(usize, usize, usize) -> Vec<u64>) -> Lanes {
    let mut result = modulus.one().clone();
    for digit in (0..shape.digits).rev() {
        if digit + 1 < shape.digits {
            (0..shape.bits).for_each(|_| modulus.square(&mut result));
        }
        for part in 0..shape.parts {
            let mut factor = Lanes::zero(modulus.limbs());
            (0..LANES).for_each(|lane| factor.set(lane, &sums(lane, digit, part)));
            modulus.multiply(&mut result, &factor);
        }
    }
    result
}

/// Eight units side by side: what is raised to positive digits, and what to negative ones.
fn unit_sums(
    modulus: &Modulus,
    inputs: &Residues,
    weights: &Weights,
    windows: &Windows,
    shape: Shape,
    unit: impl Fn(usize) -> Unit,
) -> [Lanes; 2] {
    let limbs = modulus.limbs();
    let half = shape.half();
    let one = modulus.one().lane(0);
    let units: [Unit; LANES] = std::array::from_fn(unit);
    // For each digit eight numbers, one a lane.
    let mut buckets = Residues::zero(limbs, LANES * (2 * half as usize + 1));
    buckets.eights_mut().for_each(|numbers| store(modulus.one(), numbers));
    let mut apart = vec![0; LANES * limbs];
    let [mut product, mut factor] = [Lanes::zero(limbs), Lanes::zero(limbs)];
    for step in 0..shape.each {
        let at = units.map(|unit| unit.part * shape.each + step);
        let bucket: [usize; LANES] = std::array::from_fn(|lane| {
            let weight = weights.row(units[lane].output).get(at[lane]).copied().unwrap_or(0);
            LANES * (shape.digit(weight, units[lane].digit) + half) as usize + lane
        });
        let input = |lane: usize| {
            let index = windows.window(units[lane].window).get(at[lane]).copied().flatten();
            index.map_or(&one[..], |index| inputs.at(index))
        };
        product.fill(|lane| buckets.at(bucket[lane]));
        factor.fill(input);
        modulus.multiply(&mut product, &factor);
        store(&product, &mut apart);
        for (number, &bucket) in apart.chunks_exact(limbs).zip(&bucket) {
            buckets.at_mut(bucket).copy_from_slice(number);
        }
    }
    let bucket = |digit: i64| Lanes::gather(limbs, |lane| buckets.at(LANES * (digit + half) as usize + lane));
    // The product of `bucket(d)^d`: the running product of buckets from the top on, multiplied up.
    [1, -1].map(|sign| {
        let mut running = bucket(sign * half);
        let mut product = running.clone();
        for digit in (1..half).rev() {
            modulus.multiply(&mut running, &bucket(sign * digit));
            modulus.multiply(&mut product, &running);
        }
        product
    })
}
