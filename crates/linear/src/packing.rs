//! Where elements, weights and results lie in polynomials (Cheetah, Huang et al. 2022, section 3).
//!
//! A tile of `A` elements (its rectangle of the image, zeros where the image ends) with `C` channels is the polynomial with
//! element `x` of channel `c` at `x S + c`, with a step `S >= C`. The kernel from there to `M` output channels has the weight of output
//! `m`, channel `c` and shift `d` at `(m A + D - d) S - c`, where `D` is the largest shift. In the product, result `x` of output `m` is at
//! `(m A + D + x) S`: other channels meet between multiples of `S`, and another term of that coefficient would need a shift of
//! a whole output. All of it fits if `S M A <= N`: what wraps around ends below `D S`, where no result is, or lies between multiples.
//!
//! Several whole groups share a polynomial at places `a_i` of `S M A` coefficients each, on both sides. Group `i` meets its
//! own weights at place `2 a_i`, and groups `i` and `j` meet at `a_i + a_j`, which is no `2 a_k` if the places have no three
//! in arithmetic progression. This packs 128 factors of an elementwise product into 4096 coefficients, where places
//! `i` and `64 i` would pack 64. Where `S` is twice `C` or more, each place has as many lanes: the groups of lane `v` have their channels
//! from `v C`, and weights of their own polynomial, `v C` further down, so their results are at multiples of `S` as well.
//!
//! If `S` is a multiple of `2^k`, `2^k` sums of a section can be merged into one reply ([`privet_bfv::Merge`]).
//!
//! Where a layer has no kernel and tiles are large, each channel may lie apart: element `x` of channel `c` at `c B + x`, with a power of two
//! `B >= A`. The weight of output `m` and channel `c` is at `(m R + R - 1 - c) B`, for the `R` channels that find room beside `M R` outputs, and
//! result `x` of output `m` at `(m R + R - 1) B + x`. Weights are then polynomials in `X^B`, of which a transform has few values
//! ([`privet_bfv::Panel`]).

use std::ops::{Neg, Range};

use privet_bfv::{Columns, Merge};

use crate::correlation::Correlation;
use crate::server::OUTPUTS_PER_TASK;
use crate::tiling::{Counts, Tiling, progression_free};

/// A layer cut into polynomials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packing {
    pub(crate) correlation: Correlation,
    pub(crate) tiling: Tiling,
    pub(crate) counts: Counts,
    /// Places of groups, in the input, by first coefficient.
    starts: Vec<usize>,
    /// Elements of a tile.
    area: usize,
    /// Elements of a row of a tile.
    width: usize,
    /// Coefficients from one element to the next: `S`.
    step: usize,
    /// Coefficients from one channel to the next.
    channel: usize,
    /// Coefficients from one output to the next.
    output: usize,
    /// Position of the first result: `D S`.
    origin: usize,
    /// Coefficients of a polynomial.
    degree: usize,
    /// Where those of weights can be other than zero.
    pub(crate) columns: Columns,
}

/// Where results that follow each other go in the flat output.
pub(crate) struct Places {
    /// Runs of results: place of the first, and how many there are. Places are below 2^24 ([`crate::plan::MOST_RESULTS`]).
    runs: Vec<(u32, u32)>,
    /// From one place of a run to the next.
    step: usize,
}

impl Places {
    /// Puts values there.
    pub(crate) fn put<T: Copy>(&self, mut values: &[T], output: &mut [T]) {
        if self.runs.len() == values.len() {
            // Runs of one, whose step may be none.
            return self.runs.iter().zip(values).for_each(|(&(place, _), &value)| output[place as usize] = value);
        }
        for &(place, count) in &self.runs {
            let (now, later) = values.split_at(count as usize);
            values = later;
            let output = &mut output[place as usize..];
            match self.step {
                1 => output[..now.len()].copy_from_slice(now),
                step => output.iter_mut().step_by(step).zip(now).for_each(|(place, &value)| *place = value),
            }
        }
    }
}

/// Coordinates of a block of results.
struct Block {
    tile: usize,
    groups: usize,
    outputs: usize,
}

impl Packing {
    pub(crate) fn new(correlation: Correlation, tiling: Tiling, degree: usize) -> Self {
        let counts = tiling.counts(&correlation);
        let area = correlation.area(tiling.tile);
        let [down, right] = correlation.axes.each_ref().map(|axis| axis.reach);
        let width = tiling.tile[1] + right;
        let (step, channel, output, origin) = match tiling.blocks {
            Some(blocks) => {
                let (block, channels) = (degree / blocks, blocks / tiling.outputs);
                (1, block, channels * block, (channels - 1) * block)
            }
            None => (tiling.step(), 1, tiling.step() * area, (down * width + right) * tiling.step()),
        };
        let span = tiling.outputs * output;
        let places = tiling.groups.div_ceil(tiling.lanes());
        let starts = progression_free().take(places).map(|place| place * span).collect();
        let columns = Columns::ALL;
        let packing =
            Self { correlation, tiling, counts, starts, area, width, step, channel, output, origin, degree, columns };
        Self { columns: packing.occupied(), ..packing }
    }

    /// Tiles of all images.
    pub(crate) fn tiles(&self) -> usize {
        self.correlation.images * self.counts.tiles[0] * self.counts.tiles[1]
    }

    /// Tiles times blocks of groups: what can be worked on alone.
    pub(crate) fn sections(&self) -> usize {
        self.tiles() * self.counts.groups
    }

    /// Input polynomials, ordered by section (tile, block of groups) and block of channels.
    pub(crate) fn inputs(&self) -> usize {
        self.sections() * self.counts.channels
    }

    /// Weight polynomials, ordered by block of groups, block of outputs, block of channels.
    pub(crate) fn weights(&self) -> usize {
        self.counts.groups * self.counts.outputs * self.counts.channels
    }

    /// Sums of products, ordered by section and block of outputs.
    pub(crate) fn sums(&self) -> usize {
        self.sections() * self.counts.outputs
    }

    /// Replies, ordered by section: each of up to `2^levels` sums that follow each other.
    pub(crate) fn replies(&self) -> usize {
        self.sections() * self.counts.replies
    }

    /// The sums of a section in each of its replies of this number.
    pub(crate) fn merged(&self, reply: usize) -> Range<usize> {
        let first = reply << self.tiling.levels;
        first..self.counts.outputs.min(first + (1 << self.tiling.levels))
    }

    /// Replies of a section that a task makes at once: as many as it holds sums for at least.
    pub(crate) fn replies_per_task(&self) -> usize {
        (OUTPUTS_PER_TASK >> self.tiling.levels).max(1)
    }

    fn sums_of(&self, reply: usize) -> impl Iterator<Item = usize> + use<> {
        let (section, merged) = (reply / self.counts.replies, self.merged(reply % self.counts.replies));
        let outputs = self.counts.outputs;
        merged.map(move |output| section * outputs + output)
    }

    /// The image of a tile and where its results start.
    fn tile(&self, tile: usize) -> (usize, [usize; 2]) {
        let [down, right] = self.counts.tiles;
        let [rows, columns] = self.tiling.tile;
        (tile / (down * right), [tile / right % down * rows, tile % right * columns])
    }

    /// The groups of a block, each with its lane and its place's first coefficient in the input.
    fn groups(&self, block: usize) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let first = block * self.tiling.groups;
        let groups = first..self.correlation.groups.min(first + self.tiling.groups);
        let lanes = self.tiling.lanes();
        groups.enumerate().map(move |(i, group)| (group, i % lanes, self.starts[i / lanes]))
    }

    /// The groups whose results are in a sum, each with its place's first coefficient: those of a lane, or all.
    fn groups_of(&self, block: usize, outputs: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let lanes = self.tiling.lanes();
        let in_lane = move |&(_, lane, _): &(usize, usize, usize)| lanes == 1 || lane == outputs;
        self.groups(block).filter(in_lane).map(|(group, _, start)| (group, start))
    }

    fn channels(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let first = block * self.tiling.channels;
        (first..self.correlation.channels.min(first + self.tiling.channels)).enumerate()
    }

    fn channels_out(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let first = if self.tiling.lanes() == 1 { block * self.tiling.outputs } else { 0 };
        (first..self.correlation.outputs.min(first + self.tiling.outputs)).enumerate()
    }

    /// Writes the elements of input polynomial `index` into `polynomial`, which holds zeros.
    pub(crate) fn fill_input(&self, index: usize, input: &[u64], polynomial: &mut [u64]) {
        let Counts { groups, channels, .. } = self.counts;
        let (image, [top, left]) = self.tile(index / (groups * channels));
        let rows = self.area / self.width;
        for (group, lane, start) in self.groups(index / channels % groups) {
            for (c, channel) in self.channels(index % channels) {
                let plane = &mut polynomial[start + (lane * self.tiling.channels + c) * self.channel..];
                for row in 0..rows {
                    let Some(source) = self.correlation.row(image, group, channel, top + row) else { continue };
                    let line = plane[row * self.width * self.step..].iter_mut().step_by(self.step);
                    for (column, coefficient) in line.take(self.width).enumerate() {
                        *coefficient = source(left + column).map_or(0, |at| input[at]);
                    }
                }
            }
        }
    }

    /// Writes weight polynomial `index` into `polynomial`, which holds zeros.
    pub(crate) fn fill_weights<T: Copy + Neg<Output = T>>(&self, index: usize, weights: &[T], polynomial: &mut [T]) {
        self.each_weight(index, |position, is_negated, at| {
            polynomial[position] = if is_negated { -weights[at] } else { weights[at] };
        });
    }

    /// Writes the weights of polynomial `index`, which is one in `X^B`, into `factors`, which holds zeros: the last first.
    pub(crate) fn fill_factors<T: Copy + Into<i64>>(&self, index: usize, weights: &[T], factors: &mut [i64]) {
        let last = factors.len() - 1;
        self.each_weight(index, |position, _, at| factors[last - position / self.channel] = weights[at].into());
    }

    /// Where weight polynomials have coefficients, any of them: those of the first block of groups and of outputs (in each lane), which are
    /// the fullest. Blocks of channels differ by their phases.
    fn occupied(&self) -> Columns {
        let mut places = Vec::new();
        for index in 0..self.tiling.lanes() * self.counts.channels {
            self.each_weight(index, |position, _, _| places.push(position));
        }
        Columns::of(places)
    }

    /// The weights of polynomial `index`: coefficient, whether it is negated, and place in the layer's weights.
    fn each_weight(&self, index: usize, mut take: impl FnMut(usize, bool, usize)) {
        let Counts { outputs, channels, .. } = self.counts;
        let outputs_block = index / channels % outputs;
        let lane = if self.tiling.lanes() == 1 { 0 } else { outputs_block * self.tiling.channels };
        for (group, start) in self.groups_of(index / (outputs * channels), outputs_block) {
            for (m, output) in self.channels_out(outputs_block) {
                let base = start + m * self.output + self.origin;
                for (c, channel) in self.channels(index % channels) {
                    for (down, right, at) in self.correlation.taps(group, output, channel) {
                        let (up, down) = (base - (down * self.width + right) * self.step, (lane + c) * self.channel);
                        match up.checked_sub(down) {
                            Some(position) => take(position, false, at),
                            // X^N = -1.
                            None => take(self.degree + up - down, true, at),
                        }
                    }
                }
            }
        }
    }

    /// Where a sum is.
    fn block(&self, index: usize) -> Block {
        let section = index / self.counts.outputs;
        let (tile, groups) = (section / self.counts.groups, section % self.counts.groups);
        Block { tile, groups, outputs: index % self.counts.outputs }
    }

    /// The input polynomial with a block of channels of sum `index`.
    pub(crate) fn input(&self, index: usize, channels: usize) -> usize {
        index / self.counts.outputs * self.counts.channels + channels
    }

    /// The weight polynomial that it is multiplied with: the same for all tiles.
    pub(crate) fn weight(&self, index: usize, channels: usize) -> usize {
        let Block { groups, outputs, .. } = self.block(index);
        (groups * self.counts.outputs + outputs) * self.counts.channels + channels
    }

    /// Results in a reply.
    pub(crate) fn used(&self, reply: usize) -> usize {
        self.sums_of(reply).map(|sum| self.summed(sum)).sum()
    }

    /// Results in a sum.
    fn summed(&self, index: usize) -> usize {
        let Block { tile, groups, outputs } = self.block(index);
        let [rows, columns] = self.extent(self.tile(tile).1);
        rows * columns * self.groups_of(groups, outputs).count() * self.channels_out(outputs).count()
    }

    /// Rows and columns of the results of a tile that starts there: fewer at the end of the image.
    fn extent(&self, start: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|axis| self.tiling.tile[axis].min(self.correlation.axes[axis].outputs - start[axis]))
    }

    /// The results in a reply, by rising coefficient: coefficients, and places in the flat output.
    pub(crate) fn results(&self, reply: usize) -> (Vec<usize>, Places) {
        let (mut positions, mut runs) = (Vec::with_capacity(self.used(reply)), Vec::new());
        let step = self.correlation.column_step();
        if self.tiling.levels == 0 {
            for index in self.sums_of(reply) {
                let [_, columns] = self.extent(self.tile(self.block(index).tile).1);
                runs.reserve_exact(self.summed(index) / columns);
                self.each_row(index, |position, place, columns| {
                    match self.step {
                        1 => positions.extend(position..position + columns),
                        step => positions.extend((0..columns).map(|column| position + column * step)),
                    }
                    runs.push((place as u32, columns as u32));
                });
            }
            return (positions, Places { runs, step });
        }
        // Results of different sums alternate.
        let mut by_position = vec![None; self.degree];
        for (number, index) in self.sums_of(reply).enumerate() {
            let offset = Merge::offset(self.tiling.levels, number);
            self.each_row(index, |position, place, columns| {
                let results = by_position[position + offset..].iter_mut().step_by(self.step).take(columns);
                results.enumerate().for_each(|(column, result)| *result = Some((place + column * step) as u32));
            });
        }
        runs.reserve_exact(positions.capacity());
        for (position, place) in by_position.into_iter().enumerate() {
            if let Some(place) = place {
                positions.push(position);
                runs.push((place, 1));
            }
        }
        (positions, Places { runs, step })
    }

    /// The rows of a sum's results: coefficient and place of the first, and how many there are.
    fn each_row(&self, index: usize, mut take: impl FnMut(usize, usize, usize)) {
        let Block { tile, groups, outputs } = self.block(index);
        let (image, start) = self.tile(tile);
        let [rows, columns] = self.extent(start);
        for (group, first) in self.groups_of(groups, outputs) {
            for (m, output) in self.channels_out(outputs) {
                let base = 2 * first + m * self.output + self.origin;
                for row in 0..rows {
                    let place = self.correlation.result(image, group, output, [start[0] + row, start[1]]);
                    take(base + row * self.width * self.step, place, columns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Conv2d, Diagonal, Layer, MatMul};

    const DEGREE: usize = 256;

    /// Adds the product modulo `X^N + 1`.
    fn multiply_add(sum: &mut [i64], x: &[u64], w: &[i64]) {
        for (i, &w) in w.iter().enumerate().filter(|(_, w)| **w != 0) {
            for (j, &x) in x.iter().enumerate().filter(|(_, x)| **x != 0) {
                let sign = if i + j < DEGREE { 1 } else { -1 };
                sum[(i + j) % DEGREE] += sign * w * x as i64;
            }
        }
    }

    /// What merging leaves: results at multiples of `2^levels`, each sum's moved up by its offset.
    fn replied(packing: &Packing, input: &[u64], weights: &[i64], reply: usize) -> Vec<i64> {
        let mut merged = vec![0; DEGREE];
        for (number, index) in packing.sums_of(reply).enumerate() {
            let mut sum = vec![0; DEGREE];
            for channels in 0..packing.counts.channels {
                let (mut x, mut w) = (vec![0; DEGREE], vec![0; DEGREE]);
                packing.fill_input(packing.input(index, channels), input, &mut x);
                packing.fill_weights(packing.weight(index, channels), weights, &mut w);
                let used = w.iter().enumerate().filter(|(_, w)| **w != 0).map(|(place, _)| place);
                let with_these = Columns::of(packing.columns.places().chain(used));
                assert_eq!(packing.columns, with_these, "a weight where none is expected");
                multiply_add(&mut sum, &x, &w);
            }
            let offset = Merge::offset(packing.tiling.levels, number);
            (0..DEGREE).step_by(1 << packing.tiling.levels).for_each(|at| merged[at + offset] = sum[at]);
        }
        merged
    }

    /// The layer by its common form alone.
    fn expected(correlation: &Correlation, input: &[u64], weights: &[i64]) -> Vec<i64> {
        let mut output = vec![0; correlation.output_len];
        let [rows, columns] = correlation.axes.each_ref().map(|axis| axis.outputs);
        for image in 0..correlation.images {
            for group in 0..correlation.groups {
                for at in 0..correlation.outputs * rows * columns {
                    let (m, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
                    let mut sum = 0;
                    for channel in 0..correlation.channels {
                        for (down, right, weight) in correlation.taps(group, m, channel) {
                            let source = correlation.row(image, group, channel, row + down);
                            let element = source.and_then(|source| source(column + right));
                            sum += weights[weight] * element.map_or(0, |at| input[at] as i64);
                        }
                    }
                    output[correlation.result(image, group, m, [row, column])] = sum;
                }
            }
        }
        output
    }

    #[test]
    fn results_of_every_tiling_are_where_they_are_sought_merged_or_not() {
        let convolution = Conv2d {
            batch: 2,
            in_channels: 6,
            height: 5,
            width: 4,
            out_channels: 4,
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 0, 1, 1],
            dilation: [1, 2],
            groups: 1,
        };
        let layers = [
            Layer::Conv2d(convolution.clone()),
            Layer::Conv2d(Conv2d { groups: 2, ..convolution.clone() }),
            Layer::Conv2d(Conv2d { in_channels: 12, out_channels: 12, groups: 12, ..convolution.clone() }),
            Layer::Conv2d(Conv2d {
                height: 9,
                width: 8,
                out_channels: 7,
                kernel: [1, 1],
                padding: [0; 4],
                ..convolution
            }),
            Layer::MatMul(MatMul { rows: 5, inner: 13, columns: 11 }),
            Layer::Diagonal(Diagonal { len: 70 }),
        ];
        for layer in layers {
            let correlation = Correlation::new(&layer).unwrap();
            let input: Vec<u64> = (0..correlation.input_len).map(|i| 1 + i as u64 * 7 % 101).collect();
            let weights: Vec<i64> = (0..correlation.weights_len).map(|i| i as i64 * 31 % 53 - 26).collect();
            let expected = expected(&correlation, &input, &weights);
            for levels in 0..=5 {
                for tiling in Tiling::candidates(&correlation, DEGREE, levels) {
                    let packing = Packing::new(correlation.clone(), tiling, DEGREE);
                    let mut output = vec![None; expected.len()];
                    for reply in 0..packing.replies() {
                        let merged = replied(&packing, &input, &weights, reply);
                        let (positions, places) = packing.results(reply);
                        assert_eq!(positions.len(), packing.used(reply));
                        assert!(positions.is_sorted_by(|a, b| a < b) && positions.iter().all(|&at| at < DEGREE));
                        let before = output.iter().flatten().count();
                        let results: Vec<Option<i64>> = positions.iter().map(|&at| Some(merged[at])).collect();
                        places.put(&results, &mut output);
                        assert_eq!(output.iter().flatten().count(), before + results.len(), "a result comes twice");
                    }
                    let output: Option<Vec<i64>> = output.into_iter().collect();
                    assert_eq!(output.as_ref(), Some(&expected), "{layer:?} by {tiling:?}");
                }
            }
        }
    }
}
