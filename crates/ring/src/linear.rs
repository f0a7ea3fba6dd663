//! Plaintext linear algebra modulo 2^64 between ring values and signed weights: what the server computes online.
//!
//! A ring Z_2^l embeds in Z_2^64, so callers reduce the results. The loops are compiled for the widest vector unit
//! found at run time (`pulp`).

use pulp::Arch;
use rayon::prelude::*;

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

impl Conv2d {
    /// Convolves `batch` images `x` of shape `[batch, in_channels, image]` with `weights`.
    pub fn apply(&self, x: &[u64], weights: &[i64], batch: usize) -> Vec<u64> {
        let plane = self.positions[0] * self.positions[1];
        let in_len = self.in_channels * self.image[0] * self.image[1];
        assert_eq!(x.len(), batch * in_len, "input of a convolution");
        let mut out = vec![0; batch * self.out_channels * plane];
        out.par_chunks_mut(plane.max(1)).enumerate().for_each(|(index, out)| {
            let (image, channel) = (index / self.out_channels, index % self.out_channels);
            let x = &x[image * in_len..][..in_len];
            Arch::new().dispatch(
                #[inline(always)]
                || self.channel(x, weights, channel, out),
            );
        });
        out
    }

    /// One output channel of one image.
    #[inline(always)]
    fn channel(&self, x: &[u64], weights: &[i64], channel: usize, out: &mut [u64]) {
        let per_group = self.in_channels / self.groups;
        let first = channel / (self.out_channels / self.groups) * per_group;
        let [height, width] = self.image;
        let [kernel_height, kernel_width] = self.kernel;
        let taps = per_group * kernel_height * kernel_width;
        let weights = &weights[channel * taps..][..taps];
        for (tap, &weight) in weights.iter().enumerate() {
            let input = tap / (kernel_height * kernel_width);
            let (ky, kx) = (tap / kernel_width % kernel_height, tap % kernel_width);
            let plane = &x[(first + input) * height * width..][..height * width];
            let columns = self.valid(1, kx);
            if columns.is_empty() {
                continue;
            }
            let left = columns.start * self.stride[1] + kx * self.dilation[1] - self.origin[1];
            for row in self.valid(0, ky) {
                let y = row * self.stride[0] + ky * self.dilation[0] - self.origin[0];
                let source = &plane[y * width..][..width];
                let target = &mut out[row * self.positions[1]..][columns.clone()];
                accumulate(target, &source[left..], self.stride[1], weight as u64);
            }
        }
    }

    /// Output positions along `axis` at which kernel element `k` lies on the image.
    #[inline(always)]
    fn valid(&self, axis: usize, k: usize) -> std::ops::Range<usize> {
        let (offset, stride) = (k * self.dilation[axis], self.stride[axis]);
        let start = self.origin[axis].saturating_sub(offset).div_ceil(stride);
        let end = (self.image[axis] + self.origin[axis]).saturating_sub(offset).div_ceil(stride);
        start.min(self.positions[axis])..end.clamp(start.min(self.positions[axis]), self.positions[axis])
    }
}

/// `target[i] += source[i * stride] * weight`.
#[inline(always)]
fn accumulate(target: &mut [u64], source: &[u64], stride: usize, weight: u64) {
    if stride == 1 {
        for (t, s) in target.iter_mut().zip(source) {
            *t = t.wrapping_add(s.wrapping_mul(weight));
        }
    } else {
        for (t, s) in target.iter_mut().zip(source.iter().step_by(stride)) {
            *t = t.wrapping_add(s.wrapping_mul(weight));
        }
    }
}

/// `x` of shape `[rows, inner]` times `weights` of shape `[inner, columns]`.
pub fn matmul(x: &[u64], weights: &[i64], rows: usize, inner: usize, columns: usize) -> Vec<u64> {
    /// Columns that one task takes, so that its part of the output stays in the first cache.
    const WIDTH: usize = 256;
    assert_eq!((x.len(), weights.len()), (rows * inner, inner * columns), "operands of a matrix product");
    let blocks: Vec<(usize, Vec<u64>)> = (0..columns.div_ceil(WIDTH))
        .into_par_iter()
        .map(|block| {
            let first = block * WIDTH;
            let width = WIDTH.min(columns - first);
            let mut out = vec![0u64; rows * width];
            Arch::new().dispatch(
                #[inline(always)]
                || {
                    for k in 0..inner {
                        let weights = &weights[k * columns + first..][..width];
                        for (row, out) in out.chunks_mut(width).enumerate() {
                            let value = x[row * inner + k];
                            for (o, &w) in out.iter_mut().zip(weights) {
                                *o = o.wrapping_add(value.wrapping_mul(w as u64));
                            }
                        }
                    }
                },
            );
            (first, out)
        })
        .collect();
    let mut out = vec![0; rows * columns];
    for (first, block) in &blocks {
        let width = block.len() / rows.max(1);
        for row in 0..rows {
            out[row * columns + first..][..width].copy_from_slice(&block[row * width..][..width]);
        }
    }
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
            groups in 1usize..3, channels in [1usize..3, 1usize..3], batch in 1usize..3, seed: u64,
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
            prop_assert_eq!(shape.apply(&x, &weights, batch), slow(&shape, &x, &weights, batch));
        }

        #[test]
        fn matmul_is_its_definition(rows in 1usize..4, inner in 1usize..20, columns in 1usize..600, seed: u64) {
            let x: Vec<u64> = (0..rows * inner).map(|i| seed.wrapping_mul(i as u64 * 2 + 1)).collect();
            let weights: Vec<i64> = (0..inner * columns).map(|i| i as i64 * 77 - 1000).collect();
            let product = matmul(&x, &weights, rows, inner, columns);
            for (i, &value) in product.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let sum = (0..inner).fold(0u64, |sum, k| {
                    sum.wrapping_add(x[row * inner + k].wrapping_mul(weights[k * columns + column] as u64))
                });
                prop_assert_eq!(value, sum);
            }
        }
    }
}
