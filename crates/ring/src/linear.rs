//! Plaintext linear algebra between ring values and signed weights: what the server computes online.
//!
//! Products modulo 2^52 and less use the processor's 52-bit multiplier where it has one.

use rayon::prelude::*;

use crate::Modulus;
use crate::arch::{LANES, Row, kernels};

/// Shape of a convolution; weights are `[out_channels, in_channels / groups, kernel[0], kernel[1]]`.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    /// Input channels.
    pub in_channels: usize,
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Output channels.
    pub out_channels: usize,
    /// Output height and width.
    pub positions: [usize; 2],
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal step.
    pub stride: [usize; 2],
    /// Zero padding above and to the left.
    pub origin: [usize; 2],
    /// Distance between neighbouring elements of the kernel.
    pub dilation: [usize; 2],
    /// Number of channel groups.
    pub groups: usize,
}

/// Elements of the inner dimension that are multiplied at once, so that their panel stays in the first cache.
const DEPTH: usize = 128;

impl Conv2d {
    /// Convolves `batch` images `x` of shape `[batch, in_channels, image]` with `weights`, modulo `ring`.
    ///
    /// A task takes [`LANES`] neighbouring positions of one group: it gathers what each tap reads there and multiplies
    /// by the weights of all the group's output channels.
    pub fn apply(&self, x: &[u64], weights: &[i64], batch: usize, ring: Modulus) -> Vec<u64> {
        let plane = self.positions[0] * self.positions[1];
        let in_len = self.in_channels * self.image[0] * self.image[1];
        assert_eq!(x.len(), batch * in_len, "input of a convolution");
        let (per_in, per_out) = (self.in_channels / self.groups, self.out_channels / self.groups);
        let taps = per_in * self.kernel[0] * self.kernel[1];
        assert_eq!(weights.len(), self.out_channels * taps, "weights of a convolution");
        let multiply = if ring.bits() <= 52 { kernels().multiply_52 } else { kernels().multiply };
        let tiles = plane.div_ceil(LANES);
        let compute = |index: usize| {
            let (member, tile) = (index / tiles, index % tiles);
            let (image, group) = (member / self.groups, member % self.groups);
            let x = &x[image * in_len..][..in_len];
            let mut sums = vec![Row([0; LANES]); per_out];
            let mut panel = Vec::with_capacity(DEPTH.min(taps));
            for first in (0..taps).step_by(DEPTH) {
                panel.clear();
                panel.resize(DEPTH.min(taps - first), Row([0; LANES]));
                self.gather(&mut panel, x, group * per_in, first, tile * LANES);
                multiply(&mut sums, &weights[group * per_out * taps + first..], taps, &panel);
            }
            sums
        };
        let sums: Vec<Vec<Row>> = (0..batch * self.groups * tiles).into_par_iter().map(compute).collect();
        let mut out = vec![0; batch * self.out_channels * plane];
        out.par_chunks_mut(plane.max(1)).enumerate().for_each(|(index, out)| {
            let (member, channel) = (index / per_out, index % per_out);
            for (tile, out) in out.chunks_mut(LANES).enumerate() {
                let row = &sums[member * tiles + tile][channel].0;
                out.iter_mut().zip(row).for_each(|(out, &sum)| *out = ring.reduce(sum));
            }
        });
        out
    }

    /// What taps `first_tap ..` read of the channels from `channel` on for the positions from `first` on; zero where a
    /// tap is off the image. `panel` is zero before.
    pub(crate) fn gather(&self, panel: &mut [Row], x: &[u64], channel: usize, first_tap: usize, first: usize) {
        let ([height, width], [kernel_height, kernel_width]) = (self.image, self.kernel);
        let columns = self.positions[1];
        let last = (first + LANES).min(self.positions[0] * columns);
        for (t, panel) in panel.iter_mut().enumerate() {
            let tap = first_tap + t;
            let (ky, kx) = (tap / kernel_width % kernel_height, tap % kernel_width);
            let plane = &x[(channel + tap / (kernel_height * kernel_width)) * height * width..][..height * width];
            let (rows, valid) = (self.valid(0, ky), self.valid(1, kx));
            for row in first / columns..=(last - 1) / columns {
                let start = first.max(row * columns + valid.start);
                let end = last.min(row * columns + valid.end);
                if start >= end || !rows.contains(&row) {
                    continue;
                }
                let y = row * self.stride[0] + ky * self.dilation[0] - self.origin[0];
                let left = (start - row * columns) * self.stride[1] + kx * self.dilation[1] - self.origin[1];
                let (source, target) = (&plane[y * width + left..], &mut panel.0[start - first..end - first]);
                if self.stride[1] == 1 {
                    target.copy_from_slice(&source[..target.len()]);
                } else {
                    target.iter_mut().zip(source.iter().step_by(self.stride[1])).for_each(|(t, &s)| *t = s);
                }
            }
        }
    }

    /// Output positions along `axis` at which kernel element `k` lies on the image.
    pub(crate) fn valid(&self, axis: usize, k: usize) -> std::ops::Range<usize> {
        let (offset, stride) = (k * self.dilation[axis], self.stride[axis]);
        let start = self.origin[axis].saturating_sub(offset).div_ceil(stride);
        let end = (self.image[axis] + self.origin[axis]).saturating_sub(offset).div_ceil(stride);
        start.min(self.positions[axis])..end.clamp(start.min(self.positions[axis]), self.positions[axis])
    }
}

/// `x` of shape `[rows, inner]` times `weights` of shape `[inner, columns]`, modulo `ring`.
pub fn matmul(x: &[u64], weights: &[i64], [rows, inner, columns]: [usize; 3], ring: Modulus) -> Vec<u64> {
    /// Rows from which on it pays to bring columns together.
    const MANY: usize = 16;
    assert_eq!((x.len(), weights.len()), (rows * inner, inner * columns), "operands of a matrix product");
    if rows < MANY {
        return multiply_few(x, weights, [rows, inner, columns], ring);
    }
    multiply(x, [1, rows, inner, columns], ring, |row, first| {
        row.iter_mut().zip(&weights[first..]).for_each(|(row, weight)| *row = weight.cast_unsigned());
    })
}

/// Reads the weights once, in the order in which they are.
fn multiply_few(x: &[u64], weights: &[i64], [rows, inner, columns]: [usize; 3], ring: Modulus) -> Vec<u64> {
    /// Columns that one task takes, so that its part of the output stays in the first cache.
    const WIDTH: usize = 256;
    let blocks: Vec<Vec<u64>> = (0..columns.div_ceil(WIDTH))
        .into_par_iter()
        .map(|block| {
            let first = block * WIDTH;
            let width = WIDTH.min(columns - first);
            let mut out = vec![0u64; rows * width];
            for k in 0..inner {
                let weights = &weights[k * columns + first..][..width];
                for (row, out) in out.chunks_mut(width).enumerate() {
                    (kernels().accumulate)(out, weights, x[row * inner + k]);
                }
            }
            ring.reduce_all(&mut out);
            out
        })
        .collect();
    let mut out = vec![0; rows * columns];
    for (block, first) in blocks.iter().zip((0..).step_by(WIDTH)) {
        let width = block.len() / rows.max(1);
        for row in 0..rows {
            out[row * columns + first..][..width].copy_from_slice(&block[row * width..][..width]);
        }
    }
    out
}

/// Products of matrices `x` of shape `[batch, rows, inner]` with `y` of shape `[batch, inner, columns]`, modulo `ring`.
pub fn products(x: &[u64], y: &[u64], sizes: [usize; 4], ring: Modulus) -> Vec<u64> {
    let [batch, rows, inner, columns] = sizes;
    assert_eq!((x.len(), y.len()), (batch * rows * inner, batch * inner * columns), "operands of products");
    multiply(x, sizes, ring, |row, first| row.copy_from_slice(&y[first..][..row.len()]))
}

/// Products of matrices whose right factors `read` copies from: a part of a row that begins at a place.
///
/// A task takes some neighbouring columns of some rows of one pair: [`LANES`], or a few times as many where there are enough, as what
/// lies far apart in memory is visited once for all of them.
fn multiply(
    x: &[u64],
    [batch, rows, inner, columns]: [usize; 4],
    ring: Modulus,
    read: impl Fn(&mut [u64], usize) + Sync,
) -> Vec<u64> {
    /// Rows that one task takes, so that its sums stay in the second cache.
    const HEIGHT: usize = 256;
    /// Most panels of columns that one task takes.
    const PANELS: usize = 4;
    /// Sums that one task puts in their places, at least.
    const PLACED: usize = 1 << 16;
    let multiply = if ring.bits() <= 52 { kernels().multiply_52 } else { kernels().multiply };
    let (bands, tiles) = (rows.div_ceil(HEIGHT), columns.div_ceil(LANES));
    let panels = (batch * bands * tiles / (4 * rayon::current_num_threads())).clamp(1, PANELS);
    let strips = tiles.div_ceil(panels);
    let factors: Vec<i64> = x.iter().map(|&x| ring.reduce(x).cast_signed()).collect();
    let compute = |index: usize| {
        let (member, top) = (index / strips / bands, index / strips % bands * HEIGHT);
        let (left, height) = (index % strips * panels * LANES, HEIGHT.min(rows - top));
        let width = (panels * LANES).min(columns - left);
        let factors = &factors[(member * rows + top) * inner..][..height * inner];
        let mut sums = vec![vec![Row([0; LANES]); height]; width.div_ceil(LANES)];
        let mut panels = vec![vec![Row([0; LANES]); DEPTH.min(inner)]; sums.len()];
        for first in (0..inner).step_by(DEPTH) {
            let depth = DEPTH.min(inner - first);
            for k in 0..depth {
                let row = (member * inner + first + k) * columns + left;
                for (panel, from) in panels.iter_mut().zip((0..).step_by(LANES)) {
                    read(&mut panel[k].0[..LANES.min(width - from)], row + from);
                }
            }
            for (sums, panel) in sums.iter_mut().zip(&panels) {
                multiply(sums, &factors[first..], inner, &panel[..depth]);
            }
        }
        sums
    };
    let sums: Vec<Vec<Vec<Row>>> = (0..batch * bands * strips).into_par_iter().map(compute).collect();
    let mut out = vec![0; batch * rows * columns];
    let lines = out.par_chunks_mut(columns.max(1)).with_min_len(PLACED / columns.max(1));
    lines.enumerate().for_each(|(index, out)| {
        let (member, row) = (index / rows, index % rows);
        for (tile, out) in out.chunks_mut(LANES).enumerate() {
            let strip = &sums[(member * bands + row / HEIGHT) * strips + tile / panels];
            out.iter_mut().zip(&strip[tile % panels][row % HEIGHT].0).for_each(|(out, &sum)| *out = ring.reduce(sum));
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, one element at a time.
    fn slow(shape: &Conv2d, x: &[u64], weights: &[i64], batch: usize) -> Vec<u64> {
        let (per_group, per_out) = (shape.in_channels / shape.groups, shape.out_channels / shape.groups);
        let mut out = Vec::new();
        for n in 0..batch {
            for o in 0..shape.out_channels {
                for (oy, ox) in (0..shape.positions[0]).flat_map(|y| (0..shape.positions[1]).map(move |x| (y, x))) {
                    let mut sum = 0u64;
                    for c in 0..per_group {
                        for (ky, kx) in (0..shape.kernel[0]).flat_map(|y| (0..shape.kernel[1]).map(move |x| (y, x))) {
                            let y = (oy * shape.stride[0] + ky * shape.dilation[0]).wrapping_sub(shape.origin[0]);
                            let at = (ox * shape.stride[1] + kx * shape.dilation[1]).wrapping_sub(shape.origin[1]);
                            if y < shape.image[0] && at < shape.image[1] {
                                let channel = n * shape.in_channels + o / per_out * per_group + c;
                                let value = x[(channel * shape.image[0] + y) * shape.image[1] + at];
                                let tap = ((o * per_group + c) * shape.kernel[0] + ky) * shape.kernel[1] + kx;
                                sum = sum.wrapping_add(value.wrapping_mul(weights[tap] as u64));
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn convolution_is_its_definition(
            image in [1usize..8, 1usize..8], kernel in [1usize..4, 1usize..4], stride in [1usize..4, 1usize..4],
            padding in [0usize..3, 0usize..3, 0usize..3, 0usize..3], dilation in [1usize..3, 1usize..3],
            groups in 1usize..3, channels in [1usize..3, 1usize..9], batch in 1usize..3, bits in 1u32..=64, seed: u64,
        ) {
            let span = |axis: usize| {
                (image[axis] + padding[axis] + padding[axis + 2]).checked_sub((kernel[axis] - 1) * dilation[axis] + 1)
            };
            let (Some(tall), Some(wide)) = (span(0), span(1)) else { return Ok(()) };
            let shape = Conv2d {
                in_channels: groups * channels[0], image, out_channels: groups * channels[1],
                positions: [tall / stride[0] + 1, wide / stride[1] + 1], kernel, stride,
                origin: [padding[0], padding[1]], dilation, groups,
            };
            let mut state = seed;
            let mut next = || { state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); state };
            let x: Vec<u64> = (0..batch * shape.in_channels * image[0] * image[1]).map(|_| next()).collect();
            let taps = shape.out_channels * channels[0] * kernel[0] * kernel[1];
            let weights: Vec<i64> = (0..taps).map(|_| next() as i64 >> 40).collect();
            let ring = Modulus::new(bits);
            let mut expected = slow(&shape, &x, &weights, batch);
            ring.reduce_all(&mut expected);
            prop_assert_eq!(shape.apply(&x, &weights, batch, ring), expected);
        }

        #[test]
        fn convolutions_of_many_channels_are_their_definition(channels in 1usize..40, bits in 1u32..=64, seed: u64) {
            let shape = Conv2d {
                in_channels: channels, image: [3, 12], out_channels: channels, positions: [3, 12], kernel: [3, 3],
                stride: [1, 1], origin: [1, 1], dilation: [1, 1], groups: 1,
            };
            let x: Vec<u64> = (0..36 * channels as u64).map(|i| seed.wrapping_mul(2 * i + 1)).collect();
            let weights: Vec<i64> = (0..9 * channels * channels).map(|i| (seed as i64 / 100).wrapping_add(i as i64 * 77)).collect();
            let ring = Modulus::new(bits);
            let mut expected = slow(&shape, &x, &weights, 1);
            ring.reduce_all(&mut expected);
            prop_assert_eq!(shape.apply(&x, &weights, 1, ring), expected);
        }

        #[test]
        fn products_of_matrices_are_their_definition(
            batch in 1usize..4, rows in 1usize..70, inner in 1usize..140, columns in 1usize..70, bits in 1u32..=64, seed: u64,
        ) {
            let ring = Modulus::new(bits);
            let x: Vec<u64> = (0..(batch * rows * inner) as u64).map(|i| ring.reduce(seed.wrapping_mul(2 * i + 1))).collect();
            let y: Vec<u64> = (0..(batch * inner * columns) as u64).map(|i| ring.reduce(seed.rotate_left(7).wrapping_mul(2 * i + 3))).collect();
            let product = products(&x, &y, [batch, rows, inner, columns], ring);
            for (at, &value) in product.iter().enumerate() {
                let (member, row, column) = (at / columns / rows, at / columns % rows, at % columns);
                let sum = (0..inner).fold(0u64, |sum, k| {
                    let (x, y) = (x[(member * rows + row) * inner + k], y[(member * inner + k) * columns + column]);
                    sum.wrapping_add(x.wrapping_mul(y))
                });
                prop_assert_eq!(value, ring.reduce(sum));
            }
        }

        #[test]
        fn matmul_is_its_definition(
            rows in 1usize..70, inner in 1usize..140, columns in 1usize..300, bits in 1u32..=64, seed: u64,
        ) {
            let ring = Modulus::new(bits);
            let x: Vec<u64> = (0..rows * inner).map(|i| seed.wrapping_mul(i as u64 * 2 + 1)).collect();
            let weights: Vec<i64> = (0..inner * columns).map(|i| i as i64 * 77 - 1000).collect();
            let product = matmul(&x, &weights, [rows, inner, columns], ring);
            for (i, &value) in product.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let sum = (0..inner).fold(0u64, |sum, k| {
                    sum.wrapping_add(x[row * inner + k].wrapping_mul(weights[k * columns + column] as u64))
                });
                prop_assert_eq!(value, ring.reduce(sum));
            }
        }
    }

    #[test]
    fn products_of_many_rows_and_columns_are_their_definition() {
        let (ring, [batch, rows, inner, columns]) = (Modulus::new(40), [2, 300, 130, 1100]);
        let numbers = |count: usize, factor: u64| {
            (0..count as u64).map(|i| ring.reduce(i.wrapping_mul(factor) ^ i << 29)).collect()
        };
        let (x, y): (Vec<u64>, Vec<u64>) = (numbers(batch * rows * inner, 77), numbers(batch * inner * columns, 913));
        let product = products(&x, &y, [batch, rows, inner, columns], ring);
        for (member, row, column) in
            [(0, 0, 0), (0, 255, 127), (1, 256, 128), (1, 299, 1099), (0, 299, 31), (1, 7, 1088)]
        {
            let sum = (0..inner).fold(0u64, |sum, k| {
                let (x, y) = (x[(member * rows + row) * inner + k], y[(member * inner + k) * columns + column]);
                sum.wrapping_add(x.wrapping_mul(y))
            });
            assert_eq!(
                product[(member * rows + row) * columns + column],
                ring.reduce(sum),
                "{member}, {row}, {column}"
            );
        }
    }
}
