//! Which element lies in which slot, and which slots meet.
//!
//! A row of slots has `half` blocks, a plane each. Rotating by a whole number of blocks brings input channels to output
//! channels, so that a result is a sum over `span` neighbouring blocks.
//!
//! - **Few channels** (at most a row): the channels, up to a power of two `c`, are repeated to the end of the slots. Output `o` lies
//!   in copy `o / span`, at each block `b` of it with `b mod span = o mod span`. Each of these sees `span` blocks ahead, all of
//!   them together every channel once; the parties add up their shares of these partial results.
//! - **Many channels, few outputs**: rows have different channels, and every row is such a copy.
//! - **Many of both**: outputs lie as inputs do, and sums are also made with rows swapped.
//! - **Groups** lie side by side, inputs and outputs at the same place, so that few rotations meet all of a group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::correlation::Correlation;

use super::geometry::Geometry;
use super::steps::Step;

/// The steps to an output ciphertext in order, and the input ciphertexts of each.
pub(super) type Steps = Vec<(Step, Arc<[usize]>)>;

/// A layer in slots.
#[derive(Clone, Debug)]
pub(super) struct Packing {
    pub(super) correlation: Correlation,
    pub(super) geometry: Geometry,
    /// Blocks of a row.
    half: usize,
    form: Form,
    /// Ciphertexts of an image's strip, in and out.
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Kernel elements that read any input: down and right.
    taps: Vec<[usize; 2]>,
    /// Slots by which inputs lie later in their row, which is a circle, so that the first kernel element reads its own slot.
    delay: usize,
    /// For each output ciphertext its steps in order; for all alike if there are no groups.
    steps: Vec<Steps>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `period` channels repeated, `span` outputs a copy.
    Copies { period: usize, span: usize },
    /// Rows of different channels, the same `span` outputs in each.
    Rows { span: usize },
    /// Outputs as inputs.
    Full,
    /// Groups of `pitch` blocks.
    Groups { pitch: usize },
}

impl Packing {
    /// The layer in blocks of `block` slots, in rows of `row` slots; `None` if they are too small.
    pub(super) fn new(correlation: &Correlation, row: usize, block: usize) -> Option<Self> {
        let geometry = Geometry::new(correlation, block)?;
        let half = row / block;
        let &Correlation { groups, channels, outputs, .. } = correlation;
        let (form, inputs, results) = if groups > 1 {
            let pitch = channels.max(outputs).next_power_of_two();
            let ciphertexts = (groups * pitch).div_ceil(2 * half);
            (Form::Groups { pitch }, ciphertexts, ciphertexts)
        } else if channels <= half {
            let period = channels.next_power_of_two();
            let copies = 2 * half / period;
            let span = outputs.div_ceil(copies).next_power_of_two().min(period);
            (Form::Copies { period, span }, 1, outputs.div_ceil(copies * span))
        } else if outputs <= half {
            (Form::Rows { span: outputs.next_power_of_two() }, channels.div_ceil(2 * half), 1)
        } else {
            (Form::Full, channels.div_ceil(2 * half), outputs.div_ceil(2 * half))
        };
        let taps = taps(correlation, &geometry);
        let furthest = taps.iter().map(|&tap| geometry.offset(tap)).min().unwrap_or(0);
        let mut packing = Self {
            correlation: correlation.clone(),
            geometry,
            half,
            form,
            inputs,
            outputs: results,
            taps,
            delay: (-furthest).rem_euclid(row as isize).unsigned_abs(),
            steps: Vec::new(),
        };
        let different = if groups > 1 { results } else { 1 };
        packing.steps = (0..different).map(|output| packing.steps_of(output)).collect();
        Some(packing)
    }

    /// The steps to an output ciphertext.
    pub(super) fn steps_to(&self, output: usize) -> &Steps {
        &self.steps[output.min(self.steps.len() - 1)]
    }

    /// Each different way to an output ciphertext, and how many take it.
    pub(super) fn ways(&self) -> impl Iterator<Item = (&Steps, usize)> {
        let outputs_per_step = self.outputs / self.steps.len();
        self.steps.iter().map(move |steps| (steps, outputs_per_step))
    }

    /// Images and their strips: what is computed apart.
    pub(super) fn tiles(&self) -> usize {
        self.correlation.images * self.geometry.strips()
    }

    /// The group and channel whose plane lies in a block of an input ciphertext.
    fn input(&self, ciphertext: usize, block: usize) -> Option<[usize; 2]> {
        let &Correlation { groups, channels, .. } = &self.correlation;
        let place = ciphertext * 2 * self.half + block;
        match self.form {
            Form::Copies { period, .. } => Some([0, block % period]),
            Form::Rows { .. } | Form::Full => Some([0, place]),
            Form::Groups { pitch } => Some([place / pitch, place % pitch]),
        }
        .filter(|&[group, channel]| group < groups && channel < channels)
    }

    /// The group and output whose plane, or a part of it, lies in a block of an output ciphertext.
    fn output(&self, ciphertext: usize, block: usize) -> Option<[usize; 2]> {
        let &Correlation { groups, outputs, .. } = &self.correlation;
        let place = ciphertext * 2 * self.half + block;
        match self.form {
            Form::Copies { period, span } => {
                let copies = 2 * self.half / period;
                Some([0, (ciphertext * copies + block / period) * span + block % span])
            }
            Form::Rows { span } => Some([0, block % span]),
            Form::Full => Some([0, place]),
            Form::Groups { pitch } => Some([place / pitch, place % pitch]),
        }
        .filter(|&[group, output]| group < groups && output < outputs)
    }

    /// The steps to an output ciphertext, sorted as they are taken, and the input ciphertexts of each.
    fn steps_of(&self, output: usize) -> Steps {
        let every: Arc<[usize]> = (0..self.inputs).collect();
        let blocks: Vec<(bool, usize, Arc<[usize]>)> = match self.form {
            Form::Copies { span, .. } | Form::Rows { span } => {
                (0..span).map(|ahead| (false, ahead, Arc::clone(&every))).collect()
            }
            Form::Full => {
                let of_rows = |swap| (0..self.half).map(move |ahead| (swap, ahead));
                let all = of_rows(false).chain(of_rows(true));
                all.map(|(swap, ahead)| (swap, ahead, Arc::clone(&every))).collect()
            }
            Form::Groups { pitch } => self.meetings(output, pitch),
        };
        // The kernel element that reads furthest back needs no rotation.
        let first = [0, 1].map(|axis| self.taps.iter().map(|tap| tap[axis]).min().unwrap_or(0));
        let mut steps = Steps::new();
        for (swap, ahead, inputs) in blocks {
            for &tap in &self.taps {
                let [down, right] = [tap[0] - first[0], tap[1] - first[1]];
                let left = [right, self.geometry.slot([down, 0]), ahead * self.geometry.block];
                steps.push((Step { swap, ahead, tap, left }, Arc::clone(&inputs)));
            }
        }
        let falling = |step: &Step| std::cmp::Reverse((step.swap, step.left[2], step.left[1], step.left[0]));
        steps.sort_by_key(|(step, _)| falling(step));
        steps
    }

    /// For an output ciphertext of a grouped layer: whether rows are swapped, by how many blocks to rotate, and which
    /// inputs then meet one of its outputs.
    fn meetings(&self, output: usize, pitch: usize) -> Vec<(bool, usize, Arc<[usize]>)> {
        let mut meetings: BTreeMap<(bool, usize), BTreeSet<usize>> = BTreeMap::new();
        for block in 0..2 * self.half {
            let Some([group, _]) = self.output(output, block) else { continue };
            for channel in 0..self.correlation.channels {
                let place = group * pitch + channel;
                let from = place % (2 * self.half);
                let swap = from / self.half != block / self.half;
                let ahead = (from + self.half - block % self.half) % self.half;
                meetings.entry((swap, ahead)).or_default().insert(place / (2 * self.half));
            }
        }
        meetings.into_iter().map(|((swap, ahead), inputs)| (swap, ahead, inputs.into_iter().collect())).collect()
    }

    /// Writes the elements of an input ciphertext of a tile to its slots, which are zero.
    pub(super) fn fill_input(&self, tile: usize, ciphertext: usize, elements: &[u64], slots: &mut [u64]) {
        let (image, strip) = (tile / self.geometry.strips(), tile % self.geometry.strips());
        let [rows, columns] = self.geometry.input();
        for block in 0..2 * self.half {
            let Some([group, channel]) = self.input(ciphertext, block) else { continue };
            for row in 0..rows {
                let source = self.correlation.row(image, group, channel, self.geometry.input_row(strip, row));
                let Some(source) = source else { continue };
                for column in 0..columns {
                    if let Some(element) = source(self.geometry.input_column(column)) {
                        slots[self.delayed(block, self.geometry.slot([row, column]))] = elements[element];
                    }
                }
            }
        }
    }

    /// The slot of an input pixel.
    fn delayed(&self, block: usize, pixel: usize) -> usize {
        let (row, size) = (block / self.half, self.half * self.geometry.block);
        row * size + (block % self.half * self.geometry.block + pixel + self.delay) % size
    }

    /// Slots of an output ciphertext that hold a result or a part of it, and the result's place in the output.
    pub(super) fn results(&self, tile: usize, ciphertext: usize) -> Vec<(usize, usize)> {
        let (image, strip) = (tile / self.geometry.strips(), tile % self.geometry.strips());
        let (first, rows) = self.geometry.output_rows(strip);
        let mut results = Vec::new();
        for block in 0..2 * self.half {
            let Some([group, output]) = self.output(ciphertext, block) else { continue };
            for row in 0..rows {
                for column in 0..self.geometry.columns() {
                    let place = self.correlation.result(image, group, output, [first + row, column]);
                    results.push((block * self.geometry.block + self.geometry.slot([row, column]), place));
                }
            }
        }
        results
    }

    /// Writes the weights by which a step multiplies an input ciphertext to slots, which are zero; whether there are any.
    /// `residue`: a weight by its index, modulo `p`.
    pub(super) fn fill_weights(
        &self,
        strip: usize,
        [output, input]: [usize; 2],
        step: &Step,
        residue: impl Fn(usize) -> u64,
        slots: &mut [u64],
    ) -> bool {
        let size = self.half * self.geometry.block;
        let [rows, columns] = self.geometry.reading(strip, step.tap);
        let mut any = false;
        for block in 0..2 * self.half {
            let from = ((block / self.half) ^ usize::from(step.swap)) * self.half + (block + step.ahead) % self.half;
            let (Some([group, to]), Some([of, channel])) = (self.output(output, block), self.input(input, from)) else {
                continue;
            };
            if group != of {
                continue;
            }
            let mut taps = self.correlation.taps(group, to, channel);
            let Some((_, _, weight)) = taps.find(|&(down, right, _)| [down, right] == step.tap) else { continue };
            let weight = residue(weight);
            any = true;
            // Where the input is that rotating by the step will bring to the output.
            let left: usize = step.left.iter().sum();
            let (row, start) = (from / self.half, block % self.half * self.geometry.block + left);
            for pixel_row in rows.clone() {
                for pixel in
                    self.geometry.slot([pixel_row, columns.start])..self.geometry.slot([pixel_row, columns.end])
                {
                    slots[row * size + (start + pixel) % size] = weight;
                }
            }
        }
        any
    }
}

/// Kernel elements that give input to some output.
fn taps(correlation: &Correlation, geometry: &Geometry) -> Vec<[usize; 2]> {
    let [rows, columns] = &correlation.axes;
    let shifts = |axis: &crate::axis::Axis| -> BTreeSet<usize> { axis.taps.iter().map(|tap| tap.1).collect() };
    let (down, right) = (shifts(rows), shifts(columns));
    let all = down.iter().flat_map(|&down| right.iter().map(move |&right| [down, right]));
    let used = |tap: &[usize; 2]| {
        let reads = |strip| geometry.reading(strip, *tap).iter().all(|range| !range.is_empty());
        (0..geometry.strips()).any(reads)
    };
    all.filter(used).collect()
}
