//! Where elements, weights and results lie in polynomials (Cheetah, Huang et al. 2022, section 3).
//!
//! A tile of `A` elements (its rectangle of the image, zeros where the image ends) with `C` channels is the polynomial with
//! element `x` of channel `c` at `c A + x`. The kernel from there to `M` output channels has the weight of output `m`,
//! channel `c` and shift `d` at `m C A + O - c A - d`, where `O = (C - 1) A + D` and `D` is the largest shift. In the product,
//! result `x` of output `m` is at `m C A + O + x`: another term of that coefficient would need a shift of a whole channel.
//! All of it fits if `C M A <= N`: what wraps around ends below `O`, where no result is.
//!
//! Several whole groups share a polynomial at places `a_i` of `C M A` coefficients each, on both sides. Group `i` meets its
//! own weights at place `2 a_i`, and groups `i` and `j` meet at `a_i + a_j`, which is no `2 a_k` if the places have no three
//! in arithmetic progression. This packs 128 factors of an elementwise product into 4096 coefficients, where places
//! `i` and `64 i` would pack 64.

use privet_bfv::Parameters;

use crate::correlation::Correlation;
use crate::error::Error;
use crate::tiling::{Counts, Tiling, progression_free};

/// A layer cut into polynomials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packing {
    pub(crate) correlation: Correlation,
    pub(crate) tiling: Tiling,
    pub(crate) counts: Counts,
    /// First coefficient of each group, in the input.
    starts: Vec<usize>,
    /// Elements of a tile.
    area: usize,
    /// Elements of a row of a tile.
    width: usize,
    /// Position of the first result: `O`.
    origin: usize,
}

/// Coordinates of a block of results.
struct Block {
    tile: usize,
    groups: usize,
    outputs: usize,
}

impl Packing {
    pub(crate) fn new(correlation: Correlation, parameters: &Parameters) -> Result<Self, Error> {
        let tiling = Tiling::choose(&correlation, parameters)?;
        let counts = tiling.counts(&correlation);
        let area = correlation.area(tiling.tile);
        let [down, right] = correlation.axes.each_ref().map(|axis| axis.reach);
        let width = tiling.tile[1] + right;
        let span = tiling.channels * tiling.outputs * area;
        let starts = progression_free().take(tiling.groups).map(|place| place * span).collect();
        let origin = (tiling.channels - 1) * area + down * width + right;
        Ok(Self { correlation, tiling, counts, starts, area, width, origin })
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

    /// Output polynomials, ordered by section and block of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.sections() * self.counts.outputs
    }

    /// The image of a tile and where its results start.
    fn tile(&self, tile: usize) -> (usize, [usize; 2]) {
        let [down, right] = self.counts.tiles;
        let [rows, columns] = self.tiling.tile;
        (tile / (down * right), [tile / right % down * rows, tile % right * columns])
    }

    /// The groups of a block, each with its first coefficient in the input.
    fn groups(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let first = block * self.tiling.groups;
        let groups = first..self.correlation.groups.min(first + self.tiling.groups);
        groups.zip(self.starts.iter().copied())
    }

    fn channels(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let first = block * self.tiling.channels;
        (first..self.correlation.channels.min(first + self.tiling.channels)).enumerate()
    }

    fn channels_out(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let first = block * self.tiling.outputs;
        (first..self.correlation.outputs.min(first + self.tiling.outputs)).enumerate()
    }

    /// Writes the elements of input polynomial `index` into `polynomial`, which holds zeros.
    pub(crate) fn fill_input(&self, index: usize, input: &[u64], polynomial: &mut [u64]) {
        let Counts { groups, channels, .. } = self.counts;
        let (image, [top, left]) = self.tile(index / (groups * channels));
        let rows = self.area / self.width;
        for (group, start) in self.groups(index / channels % groups) {
            for (c, channel) in self.channels(index % channels) {
                let plane = &mut polynomial[start + c * self.area..][..self.area];
                for (row, line) in plane.chunks_mut(self.width).enumerate().take(rows) {
                    let Some(source) = self.correlation.row(image, group, channel, top + row) else { continue };
                    for (column, coefficient) in line.iter_mut().enumerate() {
                        *coefficient = source(left + column).map_or(0, |at| input[at]);
                    }
                }
            }
        }
    }

    /// Writes weight polynomial `index` into `polynomial`, which holds zeros.
    pub(crate) fn fill_weights<T: Copy>(&self, index: usize, weights: &[T], polynomial: &mut [T]) {
        let Counts { outputs, channels, .. } = self.counts;
        for (group, start) in self.groups(index / (outputs * channels)) {
            for (m, output) in self.channels_out(index / channels % outputs) {
                let base = start + m * self.tiling.channels * self.area + self.origin;
                for (c, channel) in self.channels(index % channels) {
                    for (down, right, at) in self.correlation.taps(group, output, channel) {
                        polynomial[base - c * self.area - down * self.width - right] = weights[at];
                    }
                }
            }
        }
    }

    fn block(&self, index: usize) -> Block {
        let section = index / self.counts.outputs;
        let (tile, groups) = (section / self.counts.groups, section % self.counts.groups);
        Block { tile, groups, outputs: index % self.counts.outputs }
    }

    /// The input polynomial with a block of channels that output polynomial `index` sums.
    pub(crate) fn input(&self, index: usize, channels: usize) -> usize {
        index / self.counts.outputs * self.counts.channels + channels
    }

    /// The weight polynomial that it is multiplied with: the same for all tiles.
    pub(crate) fn weight(&self, index: usize, channels: usize) -> usize {
        let Block { groups, outputs, .. } = self.block(index);
        (groups * self.counts.outputs + outputs) * self.counts.channels + channels
    }

    /// Results in output polynomial `index`.
    pub(crate) fn used(&self, index: usize) -> usize {
        let Block { tile, groups, outputs } = self.block(index);
        let [rows, columns] = self.extent(self.tile(tile).1);
        rows * columns * self.groups(groups).count() * self.channels_out(outputs).count()
    }

    /// Rows and columns of the results of a tile that starts there: fewer at the end of the image.
    fn extent(&self, start: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|axis| self.tiling.tile[axis].min(self.correlation.axes[axis].outputs - start[axis]))
    }

    /// The results in output polynomial `index`, by rising coefficient: coefficients, and places in the flat output.
    pub(crate) fn results(&self, index: usize) -> (Vec<usize>, Vec<usize>) {
        let used = self.used(index);
        let (mut positions, mut places) = (Vec::with_capacity(used), Vec::with_capacity(used));
        let Block { tile, groups, outputs } = self.block(index);
        let (image, start) = self.tile(tile);
        let [rows, columns] = self.extent(start);
        for (group, first) in self.groups(groups) {
            for (m, output) in self.channels_out(outputs) {
                let base = 2 * first + m * self.tiling.channels * self.area + self.origin;
                for row in 0..rows {
                    for column in 0..columns {
                        let at = [start[0] + row, start[1] + column];
                        positions.push(base + row * self.width + column);
                        places.push(self.correlation.result(image, group, output, at));
                    }
                }
            }
        }
        (positions, places)
    }
}
