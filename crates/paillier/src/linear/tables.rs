//! Dot products from tables of inputs' products, shared by all outputs.
//!
//! A weight in two's complement is `sum of 2^i b_i - 2^(B-1) b_(B-1)`. For every output there is a row for each digit
//! of the bits below the sign, and one for the sign: the product of the inputs to the powers of their digits. Rows take
//! an entry from each table. In the end the digits' rows are put together by squarings, and the sign's row is divided
//! by: one inversion for everything.

use rayon::prelude::*;

use crate::arch::LANES;
use crate::error::Error;
use crate::keys::PublicKey;
use crate::lanes::{Lanes, Residues, load, store};
use crate::linear::batch;
use crate::linear::weights::{Weights, Windows};
use crate::modulus::Modulus;

/// What a row of products is made of.
struct Digits<'a> {
    weights: &'a Weights,
    /// Inputs of a table.
    group: usize,
    /// Bits of a digit.
    bits: usize,
    /// Digits of a weight, without its sign.
    count: usize,
}

impl Digits<'_> {
    /// Rows: for each output its digits, least significant first, and its sign.
    fn rows(&self) -> usize {
        self.weights.outputs() * (self.count + 1)
    }

    /// Which entry of table `block` a row takes.
    fn entry(&self, row: usize, block: usize) -> usize {
        let (output, digit) = (row / (self.count + 1), row % (self.count + 1));
        let below = self.weights.bits() - 1;
        let (shift, mask) = if digit == self.count {
            (below, 1)
        } else {
            let shift = digit * self.bits;
            (shift, (1 << self.bits.min(below - shift)) - 1)
        };
        let weights = self.weights.row(output).iter().skip(block * self.group).take(self.group);
        weights
            .enumerate()
            .fold(0, |entry, (i, &weight)| entry | ((weight >> shift & mask) as usize) << (i * self.bits))
    }
}

/// Encrypted `[outputs, windows]`; see [`super::Plan::Tables`].
pub(super) fn dot(
    key: &PublicKey,
    inputs: &Residues,
    weights: &Weights,
    windows: &Windows,
    group: usize,
    bits: usize,
) -> Result<Residues, Error> {
    let limbs = key.modulus().limbs();
    let digits = Digits { weights, group, bits, count: (weights.bits() - 1).div_ceil(bits) };
    let (outputs, count) = (weights.outputs(), windows.count());
    let rows: Vec<_> =
        (0..count).into_par_iter().map(|window| rows(key.modulus(), inputs, windows.window(window), &digits)).collect();
    // Window by window, output by output, as everything up to the last step.
    let mut signs = Residues::zero(limbs, outputs * count);
    for at in 0..outputs * count {
        let sign = rows[at / outputs].at(at % outputs * (digits.count + 1) + digits.count);
        signs.at_mut(at).copy_from_slice(sign);
    }
    let mut results = batch::invert(key, &signs)?;
    results.eights_mut().enumerate().par_bridge().for_each(|(vector, numbers)| {
        let row = |lane: usize, digit: usize| {
            let at = (LANES * vector + lane).min(outputs * count - 1);
            rows[at / outputs].at(at % outputs * (digits.count + 1) + digit)
        };
        let mut result = load(limbs, numbers);
        join(key.modulus(), &mut result, &digits, row);
        store(&result, numbers);
    });
    let mut out = Residues::zero(limbs, outputs * count);
    for at in 0..outputs * count {
        out.at_mut(at % outputs * count + at / outputs).copy_from_slice(results.at(at));
    }
    Ok(out)
}

/// From the inverses of eight sign rows to eight results.
fn join<'a>(modulus: &Modulus, result: &mut Lanes, digits: &Digits, row: impl Fn(usize, usize) -> &'a [u64]) {
    let mut position = digits.weights.bits() - 1;
    for digit in (0..digits.count).rev() {
        (digit * digits.bits..position).for_each(|_| modulus.square(result));
        position = digit * digits.bits;
        modulus.multiply(result, &Lanes::gather(modulus.limbs(), |lane| row(lane, digit)));
    }
}

/// All rows of one window.
fn rows(modulus: &Modulus, inputs: &Residues, window: &[Option<usize>], digits: &Digits) -> Residues {
    let limbs = modulus.limbs();
    let one = modulus.one().lane(0);
    let input = |at: usize| window.get(at).copied().flatten().map_or(&one[..], |index| inputs.at(index));
    let blocks = window.len().div_ceil(digits.group);
    let mut rows = Residues::zero(limbs, digits.rows());
    // As many tables at once as keep all threads busy; each takes eight blocks of inputs.
    let at_once = LANES * rayon::current_num_threads();
    for first in (0..blocks).step_by(at_once) {
        let last = (first + at_once).min(blocks);
        let tables: Vec<Residues> = (first..last)
            .step_by(LANES)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|block| table(modulus, digits, |lane, i| input((block + lane) * digits.group + i)))
            .collect();
        rows.eights_mut().enumerate().par_bridge().for_each(|(vector, numbers)| {
            let count = numbers.len() / limbs;
            let (mut sums, mut factor) = (load(limbs, numbers), Lanes::zero(limbs));
            for block in first..last {
                let entries = |lane: usize| digits.entry(LANES * vector + lane.min(count - 1), block);
                let (table, lane) = (&tables[(block - first) / LANES], (block - first) % LANES);
                let entry = |row: usize| table.at(entries(row) * LANES + lane);
                if block == 0 {
                    sums.fill(entry);
                } else {
                    factor.fill(entry);
                    modulus.multiply(&mut sums, &factor);
                }
            }
            store(&sums, numbers);
        });
    }
    rows
}

/// The products of all patterns of digits of eight blocks of inputs: entry by entry, block by block.
fn table<'a>(modulus: &Modulus, digits: &Digits, input: impl Fn(usize, usize) -> &'a [u64]) -> Residues {
    let limbs = modulus.limbs();
    let inputs: Vec<_> = (0..digits.group).map(|i| Lanes::gather(limbs, |lane| input(lane, i))).collect();
    let mut entries: Vec<Lanes> = Vec::with_capacity(1 << (digits.group * digits.bits));
    entries.push(modulus.one().clone());
    for index in 1_usize..1 << (digits.group * digits.bits) {
        // One less in the highest digit that is not zero.
        let at = index.ilog2() as usize / digits.bits;
        let mut entry = entries[index - (1 << (at * digits.bits))].clone();
        modulus.multiply(&mut entry, &inputs[at]);
        entries.push(entry);
    }
    let mut table = Residues::zero(limbs, LANES * entries.len());
    for (numbers, entry) in table.eights_mut().zip(&entries) {
        store(entry, numbers);
    }
    table
}
