//! Linear layers modulo 2^128, for values with message authentication codes (suite `fss`, malicious mode).
//!
//! Shapes and layouts are those of [`crate::linear`]. Operands are cut into limbs of 52 bits, the width of the processor's
//! multiplier, where it has one; an operand of fewer bits has fewer limbs, and so takes fewer multiplications.

use std::borrow::Cow;

use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::arch::{LANES, LIMB_BITS, LIMBS, Row, WideRow, kernels};
use crate::linear::Conv2d;

/// An operand of a product modulo 2^128, unsigned.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    values: Values<'a>,
    limbs: usize,
}

#[derive(Clone, Copy)]
enum Values<'a> {
    Words(&'a [u64]),
    Doubles(&'a [u128]),
    Cut(&'a [Vec<u64>]),
}

/// An operand of many products, cut into limbs once; wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Cut {
    limbs: Vec<Vec<u64>>,
}

impl Cut {
    /// The operand.
    pub fn operand(&self) -> Operand<'_> {
        Operand { values: Values::Cut(&self.limbs), limbs: self.limbs.len() }
    }

    /// The values, `[n]`.
    pub fn values(&self) -> Vec<u128> {
        (0..self.operand().len()).map(|i| self.operand().get(i)).collect()
    }
}

impl<'a> Operand<'a> {
    /// Values below 2^`bits`.
    pub fn words(values: &'a [u64], bits: u32) -> Self {
        Self { values: Values::Words(values), limbs: limbs(bits.min(u64::BITS)) }
    }

    /// Values below 2^`bits`.
    pub fn doubles(values: &'a [u128], bits: u32) -> Self {
        Self { values: Values::Doubles(values), limbs: limbs(bits.min(u128::BITS)) }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self.values {
            Values::Words(values) => values.len(),
            Values::Doubles(values) => values.len(),
            Values::Cut(limbs) => limbs[0].len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, index: usize) -> u128 {
        match self.values {
            Values::Words(values) => values[index].into(),
            Values::Doubles(values) => values[index],
            Values::Cut(limbs) => {
                limbs.iter().rev().fold(0, |value, limb| value << LIMB_BITS | u128::from(limb[index]))
            }
        }
    }

    /// Limbs `limb` of the values from `first` on.
    fn limb(&self, limb: usize, first: usize, out: &mut [u64]) {
        match self.values {
            Values::Words(values) => {
                let shift = limb as u32 * LIMB_BITS;
                out.iter_mut().zip(&values[first..]).for_each(|(out, value)| *out = value >> shift & LOW);
            }
            Values::Doubles(values) => {
                let shift = limb as u32 * LIMB_BITS;
                out.iter_mut().zip(&values[first..]).for_each(|(out, value)| *out = (value >> shift) as u64 & LOW);
            }
            Values::Cut(limbs) => out.copy_from_slice(&limbs[limb][first..][..out.len()]),
        }
    }

    /// The same operand, cut into limbs for good.
    pub fn cut(&self) -> Cut {
        Cut { limbs: self.planes().into_owned() }
    }

    /// All values, limb by limb.
    fn planes(&self) -> Cow<'a, [Vec<u64>]> {
        if let Values::Cut(limbs) = self.values {
            return Cow::Borrowed(limbs);
        }
        let plane = |limb| {
            let mut plane = vec![0; self.len()];
            if plane.len() <= CHUNK {
                self.limb(limb, 0, &mut plane);
            } else {
                let chunks = plane.par_chunks_mut(CHUNK).enumerate();
                chunks.for_each(|(index, out)| self.limb(limb, index * CHUNK, out));
            }
            plane
        };
        Cow::Owned((0..self.limbs).map(plane).collect())
    }

    /// The products of values with those at the same places of `other`, modulo 2^128.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn scaled(&self, other: Operand<'_>) -> Vec<u128> {
        assert_eq!(self.len(), other.len(), "factors");
        (0..self.len()).into_par_iter().map(|i| self.get(i).wrapping_mul(other.get(i))).collect()
    }
}

/// The bits of a limb.
const LOW: u64 = (1 << LIMB_BITS) - 1;

/// Values that a task cuts into limbs.
const CHUNK: usize = 1 << 14;

/// Elements of the inner dimension that are multiplied at once, so that their panel stays in the caches.
const DEPTH: usize = 128;

fn limbs(bits: u32) -> usize {
    bits.div_ceil(LIMB_BITS).max(1) as usize
}

/// The results of tasks `0..count`. One alone takes no other thread.
fn tasks<T: Send>(count: usize, compute: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    match count {
        1 => vec![compute(0)],
        _ => (0..count).into_par_iter().map(compute).collect(),
    }
}

/// Adds to `sums` the products of rows of `left`, which are `stride` apart, with the panel; `panels`: one for each limb.
fn multiply(sums: &mut [WideRow], left: &[&[u64]], stride: usize, panels: &[Vec<Row>]) {
    let panels: Vec<&[Row]> = panels.iter().map(Vec::as_slice).collect();
    (kernels().multiply_wide)(sums, left, stride, &panels);
}

/// Adds the sums of a row modulo 2^128 to `out`.
fn join(sum: &WideRow, out: &mut [u128]) {
    for (lane, out) in out.iter_mut().enumerate() {
        let limb = |limb: usize| u128::from(sum.0[limb].0[lane]) << (limb as u32 * LIMB_BITS);
        *out = (0..LIMBS).fold(*out, |sum, index| sum.wrapping_add(limb(index)));
    }
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

    /// Convolves `batch` images `x` with `weights`, modulo 2^128, and adds the result to `out`.
    ///
    /// # Panics
    /// If the lengths do not fit the shape.
    pub fn add_wide(&self, out: &mut [u128], x: Operand<'_>, weights: Operand<'_>, batch: usize) {
        assert_eq!(out.len(), self.outputs(batch), "output of a convolution");
        assert_eq!(x.len(), self.inputs(batch), "input of a convolution");
        assert_eq!(weights.len(), self.weights(), "weights of a convolution");
        let plane = self.positions[0] * self.positions[1];
        let in_len = self.inputs(1);
        let (per_in, per_out) = (self.in_channels / self.groups, self.out_channels / self.groups);
        let taps = per_in * self.kernel[0] * self.kernel[1];
        let (x, weights) = (x.planes(), weights.planes());
        let tiles = plane.div_ceil(LANES);
        let compute = |index: usize| {
            let (member, tile) = (index / tiles, index % tiles);
            let (image, group) = (member / self.groups, member % self.groups);
            let mut sums = vec![WideRow::ZERO; per_out];
            for first in (0..taps).step_by(DEPTH) {
                let gathered = |plane: &Vec<u64>| {
                    let mut panel = vec![Row([0; LANES]); DEPTH.min(taps - first)];
                    let x = &plane[image * in_len..][..in_len];
                    self.gather(&mut panel, x, group * per_in, first, tile * LANES);
                    panel
                };
                let panels: Vec<_> = x.iter().map(gathered).collect();
                let weights: Vec<_> = weights.iter().map(|limb| &limb[group * per_out * taps + first..]).collect();
                multiply(&mut sums, &weights, taps, &panels);
            }
            sums
        };
        let sums = tasks(batch * self.groups * tiles, compute);
        let add = |(index, out): (usize, &mut [u128])| {
            let (member, channel) = (index / per_out, index % per_out);
            for (tile, out) in out.chunks_mut(LANES).enumerate() {
                join(&sums[member * tiles + tile][channel], out);
            }
        };
        match out.len() <= CHUNK {
            true => out.chunks_mut(plane.max(1)).enumerate().for_each(add),
            false => out.par_chunks_mut(plane).enumerate().for_each(add),
        }
    }
}

/// Adds to `out` the product of `x`, of shape `[rows, inner]`, and `weights`, of shape `[inner, columns]`, modulo 2^128.
///
/// # Panics
/// If the lengths do not fit the shape.
pub fn add_matmul(out: &mut [u128], x: Operand<'_>, weights: Operand<'_>, [rows, inner, columns]: [usize; 3]) {
    assert_eq!(out.len(), rows * columns, "output of a matrix product");
    assert_eq!((x.len(), weights.len()), (rows * inner, inner * columns), "operands of a matrix product");
    let x = x.planes();
    let compute = |tile: usize| {
        let first_column = tile * LANES;
        let width = LANES.min(columns - first_column);
        let mut sums = vec![WideRow::ZERO; rows];
        for first in (0..inner).step_by(DEPTH) {
            let gathered = |limb| {
                let mut panel = vec![Row([0; LANES]); DEPTH.min(inner - first)];
                for (t, row) in panel.iter_mut().enumerate() {
                    weights.limb(limb, (first + t) * columns + first_column, &mut row.0[..width]);
                }
                panel
            };
            let panels: Vec<_> = (0..weights.limbs).map(gathered).collect();
            let x: Vec<_> = x.iter().map(|limb| &limb[first..]).collect();
            multiply(&mut sums, &x, inner, &panels);
        }
        sums
    };
    let tiles = tasks(columns.div_ceil(LANES), compute);
    let add = |(row, out): (usize, &mut [u128])| {
        tiles.iter().zip(out.chunks_mut(LANES)).for_each(|(tile, out)| join(&tile[row], out));
    };
    match out.len() <= CHUNK {
        true => out.chunks_mut(columns.max(1)).enumerate().for_each(add),
        false => out.par_chunks_mut(columns).enumerate().for_each(add),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Modulus, linear};

    fn words(count: usize, seed: u64) -> Vec<u64> {
        (0..count as u64).map(|i| (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32 % 61)).collect()
    }

    fn word(words: &[u64]) -> Operand<'_> {
        Operand::words(words, 64)
    }

    fn double(words: &[u128]) -> Operand<'_> {
        Operand::doubles(words, 128)
    }

    fn matmul(x: Operand<'_>, weights: Operand<'_>, rows: usize, inner: usize, columns: usize) -> Vec<u128> {
        let mut out = vec![0; rows * columns];
        add_matmul(&mut out, x, weights, [rows, inner, columns]);
        out
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
            let wide = |x: Operand<'_>, weights: Operand<'_>| {
                let mut out = vec![0; shape.outputs(batch)];
                shape.add_wide(&mut out, x, weights, batch);
                out
            };
            check([&x[0], &x[1]], [&weights[0], &weights[1]], |x, w| shape.apply(x, w, batch, ring), [
                &|x, w, _, _| wide(word(x), word(w)),
                &|_, w, x, _| wide(double(x), word(w)),
                &|x, _, _, w| wide(word(x), double(w)),
                &|_, _, x, w| wide(double(x), double(w)),
            ]);
        }

        #[test]
        fn matrix_products_are_those_of_64_bits_and_more(
            rows in 1usize..4, inner in 1usize..10, columns in 1usize..300, seed: u64,
        ) {
            let x = [1, 2].map(|i| words(rows * inner, seed ^ i));
            let weights = [3, 4].map(|i| words(inner * columns, seed ^ i));
            let ring = Modulus::new(64);
            check([&x[0], &x[1]], [&weights[0], &weights[1]], |x, w| linear::matmul(x, w, [rows, inner, columns], ring), [
                &|x, w, _, _| matmul(word(x), word(w), rows, inner, columns),
                &|_, w, x, _| matmul(double(x), word(w), rows, inner, columns),
                &|x, _, _, w| matmul(word(x), double(w), rows, inner, columns),
                &|_, _, x, w| matmul(double(x), double(w), rows, inner, columns),
            ]);
        }
    }

    #[test]
    fn carries_reach_the_upper_half() {
        assert_eq!(matmul(word(&[u64::MAX; 2]), word(&[u64::MAX; 2]), 1, 2, 1), [2u128.wrapping_sub(1 << 66)]);
        assert_eq!(matmul(double(&[1 << 127, 3]), word(&[2, 1 << 63]), 1, 2, 1), [3 << 63]);
        assert_eq!(double(&[1 << 127, 3]).scaled(word(&[2, 1 << 63])), [0, 3 << 63]);
    }

    #[test]
    fn operands_of_few_bits_are_as_good() {
        let x: Vec<u64> = words(12, 3).into_iter().map(|word| word >> 12).collect();
        let weights: Vec<u128> = words(12, 4).into_iter().map(|word| (word >> 13).into()).collect();
        let long = matmul(word(&x), double(&weights), 3, 4, 3);
        assert_eq!(matmul(Operand::words(&x, 52), Operand::doubles(&weights, 51), 3, 4, 3), long);
    }
}
