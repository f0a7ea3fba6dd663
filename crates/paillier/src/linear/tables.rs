//! Dot products from tables of inputs' products, shared by all outputs.
//!
//! A weight in two's complement is `sum of 2^i b_i - 2^(B-1) b_(B-1)`. For every output there is a row for each digit
//! of the bits below the sign, and one for the sign: the product of the inputs to the powers of their digits. Rows take
//! an entry from each table. Windows that read some inputs together share their tables, and what is padding for a window
//! is left out. In the end the digits' rows are put together by squarings, and the sign's row is divided
//! by: one inversion for everything.

use std::ops::Range;

use rayon::prelude::*;

use crate::arch::LANES;
use crate::error::Error;
use crate::keys::PublicKey;
use crate::lanes::{Lanes, Residues, load, store};
use crate::linear::batch;
use crate::linear::runs::Runs;
use crate::linear::weights::{Weights, Windows};
use crate::modulus::Modulus;

/// Bytes of rows that are held at once: as many windows go together.
const ROW_BYTES: usize = 1 << 28;

/// How inputs are put into tables.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Inputs that windows read together; a divisor of their number.
    pub run: usize,
    /// Inputs of a table.
    pub group: usize,
    /// Bits of a digit.
    pub bits: usize,
}

impl Shape {
    /// Tables of a run.
    fn blocks(&self) -> usize {
        self.run.div_ceil(self.group)
    }

    /// The inputs of a block within its run.
    fn block(&self, index: usize) -> Range<usize> {
        index * self.group..((index + 1) * self.group).min(self.run)
    }
}

/// What a row of products is made of.
struct Digits<'a> {
    weights: &'a Weights,
    shape: Shape,
    /// Digits of a weight, without its sign.
    count: usize,
}

impl Digits<'_> {
    /// Rows: for each output its digits, least significant first, and its sign.
    fn rows(&self) -> usize {
        self.weights.outputs() * (self.count + 1)
    }

    /// Which entry of the table of some inputs a row takes.
    fn entry(&self, row: usize, inputs: Range<usize>) -> usize {
        let (output, digit) = (row / (self.count + 1), row % (self.count + 1));
        let (below, bits) = (self.weights.bits() - 1, self.shape.bits);
        let (shift, mask) = if digit == self.count {
            (below, 1)
        } else {
            let shift = digit * bits;
            (shift, (1 << bits.min(below - shift)) - 1)
        };
        let weights = self.weights.row(output)[inputs].iter().enumerate();
        weights.fold(0, |entry, (i, &weight)| entry | ((weight >> shift & mask) as usize) << (i * bits))
    }
}

/// Encrypted `[outputs, windows]`; see [`super::Plan::Tables`].
pub(super) fn dot(
    key: &PublicKey,
    inputs: &Residues,
    weights: &Weights,
    windows: &Windows,
    shape: Shape,
) -> Result<Residues, Error> {
    let limbs = key.modulus().limbs();
    let digits = Digits { weights, shape, count: (weights.bits() - 1).div_ceil(shape.bits) };
    let (outputs, count) = (weights.outputs(), windows.count());
    let at_once = (ROW_BYTES / (digits.rows() * limbs * size_of::<u64>())).max(1);
    let mut out = Residues::zero(limbs, outputs * count);
    for first in (0..count).step_by(at_once) {
        let range = first..(first + at_once).min(count);
        let rows = rows(key.modulus(), inputs, &Runs::of(windows, shape.run, range.clone()), range.len(), &digits);
        let results = finish(key, &rows, &digits)?;
        for at in 0..outputs * range.len() {
            out.at_mut(at % outputs * count + first + at / outputs).copy_from_slice(results.at(at));
        }
    }
    Ok(out)
}

/// Results from the rows of some windows: window by window, output by output.
fn finish(key: &PublicKey, rows: &[Residues], digits: &Digits) -> Result<Residues, Error> {
    let limbs = key.modulus().limbs();
    let outputs = digits.weights.outputs();
    let count = outputs * rows.len();
    let mut signs = Residues::zero(limbs, count);
    for at in 0..count {
        let sign = rows[at / outputs].at(at % outputs * (digits.count + 1) + digits.count);
        signs.at_mut(at).copy_from_slice(sign);
    }
    let mut results = batch::invert(key, &signs)?;
    results.eights_mut().enumerate().par_bridge().for_each(|(vector, numbers)| {
        let row = |lane: usize, digit: usize| {
            let at = (LANES * vector + lane).min(count - 1);
            rows[at / outputs].at(at % outputs * (digits.count + 1) + digit)
        };
        let mut result = load(limbs, numbers);
        join(key.modulus(), &mut result, digits, row);
        store(&result, numbers);
    });
    Ok(results)
}

/// From the inverses of eight sign rows to eight results.
fn join<'a>(modulus: &Modulus, result: &mut Lanes, digits: &Digits, row: impl Fn(usize, usize) -> &'a [u64]) {
    let mut position = digits.weights.bits() - 1;
    for digit in (0..digits.count).rev() {
        (digit * digits.shape.bits..position).for_each(|_| modulus.square(result));
        position = digit * digits.shape.bits;
        modulus.multiply(result, &Lanes::gather(modulus.limbs(), |lane| row(lane, digit)));
    }
}

/// All rows of `count` windows.
fn rows(modulus: &Modulus, inputs: &Residues, runs: &Runs<'_>, count: usize, digits: &Digits) -> Vec<Residues> {
    let shape = digits.shape;
    let mut rows = vec![Residues::zero(modulus.limbs(), digits.rows()); count];
    // As many blocks of a run at once as keep all threads busy.
    let at_once = (LANES * rayon::current_num_threads()).div_ceil(runs.distinct().max(1));
    for first in (0..shape.blocks()).step_by(at_once) {
        let blocks = first..(first + at_once).min(shape.blocks());
        let tables = Tables::new(modulus, inputs, runs, blocks, shape);
        rows.par_iter_mut().enumerate().for_each(|(window, rows)| {
            rows.eights_mut().enumerate().par_bridge().for_each(|(vector, numbers)| {
                tables.multiply(modulus, runs.window(window), digits, vector, numbers);
            });
        });
    }
    rows
}

/// The tables of some blocks of every run: eight side by side, run by run.
struct Tables {
    blocks: Range<usize>,
    shape: Shape,
    eights: Vec<Residues>,
}

impl Tables {
    fn new(modulus: &Modulus, inputs: &Residues, runs: &Runs<'_>, blocks: Range<usize>, shape: Shape) -> Self {
        let one = modulus.one().lane(0);
        // Where a block is shorter, and where there is none, entries repeat.
        let input = |table: usize, i: usize| {
            let (place, block) = (table / blocks.len(), blocks.start + table % blocks.len());
            let at = (place < runs.distinct()).then(|| shape.block(block).nth(i)).flatten();
            at.and_then(|at| runs.inputs(place)[at]).map_or(&one[..], |index| inputs.at(index))
        };
        let eights = (0..runs.distinct() * blocks.len())
            .step_by(LANES)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|first| table(modulus, shape, |lane, i| input(first + lane, i)))
            .collect();
        Self { blocks, shape, eights }
    }

    /// Multiplies the entries of some rows of a window, eight from `vector` on, into what they have; before the first
    /// block they have nothing yet.
    fn multiply(
        &self,
        modulus: &Modulus,
        window: &[Option<usize>],
        digits: &Digits,
        vector: usize,
        numbers: &mut [u64],
    ) {
        let limbs = modulus.limbs();
        let count = numbers.len() / limbs;
        let mut empty = self.blocks.start == 0;
        let (mut sums, mut factor) = (load(limbs, numbers), Lanes::zero(limbs));
        let read = window.iter().enumerate().filter_map(|(run, place)| Some((run, (*place)?)));
        for ((run, place), block) in read.flat_map(|at| self.blocks.clone().map(move |block| (at, block))) {
            let at = place * self.blocks.len() + block - self.blocks.start;
            let (table, lane) = (&self.eights[at / LANES], at % LANES);
            let Range { start, end } = self.shape.block(block);
            let weights = run * self.shape.run + start..run * self.shape.run + end;
            let entry = |row: usize| {
                let entry = digits.entry(LANES * vector + row.min(count - 1), weights.clone());
                table.at(entry * LANES + lane)
            };
            if empty {
                sums.fill(entry);
                empty = false;
            } else {
                factor.fill(entry);
                modulus.multiply(&mut sums, &factor);
            }
        }
        store(if empty { modulus.one() } else { &sums }, numbers);
    }
}

/// The products of all patterns of digits of eight blocks of inputs: entry by entry, block by block.
fn table<'a>(modulus: &Modulus, shape: Shape, input: impl Fn(usize, usize) -> &'a [u64]) -> Residues {
    let limbs = modulus.limbs();
    let inputs: Vec<_> = (0..shape.group).map(|i| Lanes::gather(limbs, |lane| input(lane, i))).collect();
    let mut entries: Vec<Lanes> = Vec::with_capacity(1 << (shape.group * shape.bits));
    entries.push(modulus.one().clone());
    for index in 1_usize..1 << (shape.group * shape.bits) {
        // One less in the highest digit that is not zero.
        let at = index.ilog2() as usize / shape.bits;
        let mut entry = entries[index - (1 << (at * shape.bits))].clone();
        modulus.multiply(&mut entry, &inputs[at]);
        entries.push(entry);
    }
    let mut table = Residues::zero(limbs, LANES * entries.len());
    for (numbers, entry) in table.eights_mut().zip(&entries) {
        store(entry, numbers);
    }
    table
}
