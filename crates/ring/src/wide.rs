//! Linear layers modulo 2^128, for values with message authentication codes (suite `fss`, malicious mode).
//!
//! Shapes and layouts are those of [`crate::linear`]. Either operand may have 64 or 128 bits; one of 64 is unsigned and
//! takes fewer multiplications.

use rayon::prelude::*;

use crate::linear::Conv2d;

/// An operand of a product modulo 2^128.
pub trait Factor: Copy + Send + Sync + Into<u128> {}

impl Factor for u64 {}
impl Factor for u128 {}

fn multiply<X: Factor, W: Factor>(x: X, weight: W) -> u128 {
    let (x, weight): (u128, u128) = (x.into(), weight.into());
    x.wrapping_mul(weight)
}

impl Conv2d {
    /// Elements of the input of `batch` images.
    pub fn inputs(&self, batch: usize) -> usize {
        batch * self.in_channels * self.image[0] * self.image[1]
    }

    /// Elements of the output of `batch` images.
    pub fn outputs(&self, batch: usize) -> usize {
        batch * self.out_channels * self.positions[0] * self.positions[1]
    }

    /// Number of weights.
    pub fn weights(&self) -> usize {
        self.out_channels * self.in_channels / self.groups * self.kernel[0] * self.kernel[1]
    }

    /// Convolves `batch` images `x` with `weights`, modulo 2^128.
    ///
    /// # Panics
    /// If the lengths do not fit the shape.
    pub fn apply_wide<X: Factor, W: Factor>(&self, x: &[X], weights: &[W], batch: usize) -> Vec<u128> {
        assert_eq!(x.len(), self.inputs(batch), "input of a convolution");
        assert_eq!(weights.len(), self.weights(), "weights of a convolution");
        let plane = self.positions[0] * self.positions[1];
        let taps = self.kernel[0] * self.kernel[1];
        let (per_in, per_out) = (self.in_channels / self.groups, self.out_channels / self.groups);
        let mut out = vec![0; self.outputs(batch)];
        out.par_chunks_mut(plane.max(1)).enumerate().for_each(|(index, out)| {
            let (image, channel) = (index / self.out_channels, index % self.out_channels);
            let first = image * self.in_channels + channel / per_out * per_in;
            for from in 0..per_in {
                let x = &x[(first + from) * self.image[0] * self.image[1]..][..self.image[0] * self.image[1]];
                let weights = &weights[(channel * per_in + from) * taps..][..taps];
                self.accumulate_wide(x, weights, out);
            }
        });
        out
    }

    /// Adds what one channel of the input gives to one channel of the output.
    fn accumulate_wide<X: Factor, W: Factor>(&self, x: &[X], weights: &[W], out: &mut [u128]) {
        let step = self.stride[1];
        for (tap, &weight) in weights.iter().enumerate() {
            let (ky, kx) = (tap / self.kernel[1], tap % self.kernel[1]);
            let columns = self.valid(1, kx);
            if columns.is_empty() {
                continue;
            }
            let left = columns.start * step + kx * self.dilation[1] - self.origin[1];
            for row in self.valid(0, ky) {
                let y = row * self.stride[0] + ky * self.dilation[0] - self.origin[0];
                let out = &mut out[row * self.positions[1]..][columns.clone()];
                let x = &x[y * self.image[1] + left..];
                match step {
                    1 => out.iter_mut().zip(x).for_each(|(out, x)| *out = out.wrapping_add(multiply(*x, weight))),
                    _ => (out.iter_mut().zip(x.iter().step_by(step)))
                        .for_each(|(out, x)| *out = out.wrapping_add(multiply(*x, weight))),
                }
            }
        }
    }
}

/// `x` of shape `[rows, inner]` times `weights` of shape `[inner, columns]`, modulo 2^128.
///
/// # Panics
/// If the lengths do not fit the shape.
pub fn matmul<X: Factor, W: Factor>(x: &[X], weights: &[W], rows: usize, inner: usize, columns: usize) -> Vec<u128> {
    /// Columns that one task takes, so that its part of the output stays in the first cache.
    const WIDTH: usize = 128;
    assert_eq!((x.len(), weights.len()), (rows * inner, inner * columns), "operands of a matrix product");
    let blocks: Vec<Vec<u128>> = (0..columns.div_ceil(WIDTH))
        .into_par_iter()
        .map(|block| {
            let first = block * WIDTH;
            let width = WIDTH.min(columns - first);
            let mut out = vec![0u128; rows * width];
            for k in 0..inner {
                let weights = &weights[k * columns + first..][..width];
                for (row, out) in out.chunks_mut(width).enumerate() {
                    let x = x[row * inner + k];
                    out.iter_mut().zip(weights).for_each(|(out, w)| *out = out.wrapping_add(multiply(x, *w)));
                }
            }
            out
        })
        .collect();
    let mut out = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for (index, block) in blocks.iter().enumerate() {
            let width = WIDTH.min(columns - index * WIDTH);
            out.extend_from_slice(&block[row * width..][..width]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Modulus, linear};

    fn words(count: usize, seed: u64) -> Vec<u64> {
        (0..count as u64).map(|i| (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32 % 61)).collect()
    }

    /// `low + 2^64 high`.
    fn joined(low: &[u64], high: &[u64]) -> Vec<u128> {
        low.iter().zip(high).map(|(low, high)| u128::from(*low) | u128::from(*high) << 64).collect()
    }

    /// The low 64 bits of a product are those of the product of low bits, and the kernels of `linear` know these.
    fn low(product: &[u128]) -> Vec<u64> {
        product.iter().map(|x| *x as u64).collect()
    }

    /// A product of any widths: both operands of 64 bits and both of 128.
    type Product<'a> = &'a dyn Fn(&[u64], &[u64], &[u128], &[u128]) -> Vec<u128>;

    /// `(a + 2^64 b) w = a w + 2^64 b w`, where `a w` needs all its bits: so each pair of widths is held against another.
    fn check(
        x: [&[u64]; 2],
        weights: [&[u64]; 2],
        narrow: impl Fn(&[u64], &[i64]) -> Vec<u64>,
        [small, tall, wide, both]: [Product<'_>; 4],
    ) {
        let signed = |words: &[u64]| words.iter().map(|word| *word as i64).collect::<Vec<_>>();
        let (long, heavy) = (joined(x[0], x[1]), joined(weights[0], weights[1]));
        let base = small(x[0], weights[0], &long, &heavy);
        assert_eq!(low(&base), narrow(x[0], &signed(weights[0])));
        let plus = |a: &[u128], b: &[u64]| -> Vec<u128> {
            a.iter().zip(b).map(|(a, b)| a.wrapping_add(u128::from(*b) << 64)).collect()
        };
        let above = narrow(x[1], &signed(weights[0]));
        assert_eq!(tall(x[0], weights[0], &long, &heavy), plus(&base, &above));
        let beyond = narrow(x[0], &signed(weights[1]));
        assert_eq!(wide(x[0], weights[0], &long, &heavy), plus(&base, &beyond));
        assert_eq!(both(x[0], weights[0], &long, &heavy), plus(&plus(&base, &above), &beyond));
    }

    proptest! {
        #[test]
        fn convolutions_are_those_of_64_bits_and_more(
            batch in 1usize..3, groups in 1usize..3, channels in [1usize..4, 1usize..4], image in [1usize..8, 1usize..8],
            kernel in [1usize..4, 1usize..4], stride in [1usize..3, 1usize..3], origin in [0usize..3, 0usize..3], seed: u64,
        ) {
            let dilation = [1, 1 + groups % 2];
            let span = |axis: usize| (image[axis] + 2 * origin[axis]).checked_sub((kernel[axis] - 1) * dilation[axis] + 1);
            let (Some(tall), Some(wide)) = (span(0), span(1)) else { return Ok(()) };
            let shape = Conv2d {
                in_channels: groups * channels[0], image, out_channels: groups * channels[1],
                positions: [tall / stride[0] + 1, wide / stride[1] + 1], kernel, stride, origin, dilation, groups,
            };
            let x = [1, 2].map(|i| words(shape.inputs(batch), seed ^ i));
            let weights = [3, 4].map(|i| words(shape.weights(), seed ^ i));
            let ring = Modulus::new(64);
            check([&x[0], &x[1]], [&weights[0], &weights[1]], |x, w| shape.apply(x, w, batch, ring), [
                &|x, w, _, _| shape.apply_wide(x, w, batch),
                &|_, w, x, _| shape.apply_wide(x, w, batch),
                &|x, _, _, w| shape.apply_wide(x, w, batch),
                &|_, _, x, w| shape.apply_wide(x, w, batch),
            ]);
        }

        #[test]
        fn matrix_products_are_those_of_64_bits_and_more(
            rows in 1usize..4, inner in 1usize..10, columns in 1usize..300, seed: u64,
        ) {
            let x = [1, 2].map(|i| words(rows * inner, seed ^ i));
            let weights = [3, 4].map(|i| words(inner * columns, seed ^ i));
            check([&x[0], &x[1]], [&weights[0], &weights[1]], |x, w| linear::matmul(x, w, rows, inner, columns), [
                &|x, w, _, _| matmul(x, w, rows, inner, columns),
                &|_, w, x, _| matmul(x, w, rows, inner, columns),
                &|x, _, _, w| matmul(x, w, rows, inner, columns),
                &|_, _, x, w| matmul(x, w, rows, inner, columns),
            ]);
        }
    }

    #[test]
    fn carries_reach_the_upper_half() {
        assert_eq!(matmul(&[u64::MAX; 2], &[u64::MAX; 2], 1, 2, 1), [2u128.wrapping_sub(1 << 66)]);
        assert_eq!(matmul(&[1u128 << 127, 3], &[2u64, 1 << 63], 1, 2, 1), [3 << 63]);
    }
}
