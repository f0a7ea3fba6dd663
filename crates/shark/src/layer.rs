//! Linear layers: the server's hidden weights times a masked value. No message.
//!
//! With `W' = V + A` authenticated ([`crate::setup`]) and `x^ = x + r` public,
//!
//! ```text
//! W' (x^ - r) = W' x^ - V r - A r
//! ```
//!
//! The first term is linear in `W'`: the server multiplies in the clear, and each party multiplies its shares of the codes. The
//! second is linear in `r`, and needs no input. The third is what the dealer shares, who knows `A` and `r`: one secret for
//! each output. It learns neither `W` nor `x`.
//!
//! Products are modulo 2^128, so that codes stay codes. Offline two products of 64 by 128 bits, online one and at the server
//! another.

use privet_fss::KeyBytes;
use privet_ring::linear::Conv2d;
use privet_ring::wide::{self, Operand};
use zeroize::Zeroizing;

use crate::dealer::{Dealer, SECRET_BYTES};
use crate::values::add_all;
use crate::{Error, Party, Values, Weights};

/// The shape of a linear layer.
#[derive(Clone, Copy, Debug)]
pub enum Layer {
    /// A convolution of `batch` images.
    Conv2d {
        /// Its shape.
        shape: Conv2d,
        /// Images.
        batch: usize,
    },
    /// `x` of shape `[rows, inner]` times weights of shape `[inner, columns]`.
    MatMul {
        /// Rows of `x`.
        rows: usize,
        /// Columns of `x`.
        inner: usize,
        /// Columns of the weights.
        columns: usize,
    },
    /// A weight for each element.
    Diagonal {
        /// Number of elements.
        len: usize,
    },
}

impl Layer {
    /// Number of weights.
    pub fn weights(&self) -> usize {
        match self {
            Self::Conv2d { shape, .. } => shape.weights(),
            Self::MatMul { inner, columns, .. } => inner * columns,
            Self::Diagonal { len } => *len,
        }
    }

    /// Elements of the output.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Conv2d { shape, batch } => shape.outputs(*batch),
            Self::MatMul { rows, columns, .. } => rows * columns,
            Self::Diagonal { len } => *len,
        }
    }

    /// Bytes of the key of a run. The setup takes [`crate::dealer::MASK_BYTES`] for each weight besides.
    pub fn key_bytes(&self) -> KeyBytes {
        KeyBytes { words: 0, corrections: self.outputs() * SECRET_BYTES }
    }

    /// The layer on `x`, modulo 2^128.
    fn apply(&self, x: Operand<'_>, weights: Operand<'_>) -> Vec<u128> {
        let mut out = vec![0; self.outputs()];
        self.add(&mut out, x, weights);
        out
    }

    /// Adds to `out` the layer on `x`.
    fn add(&self, out: &mut [u128], x: Operand<'_>, weights: Operand<'_>) {
        match *self {
            Self::Conv2d { shape, batch } => shape.add_wide(out, x, weights, batch),
            Self::MatMul { rows, inner, columns } => wide::add_matmul(out, x, weights, [rows, inner, columns]),
            Self::Diagonal { .. } => add_all(out, &x.scaled(weights)),
        }
    }

    /// Deals for an input behind `masks`; `hidden`: `A`, from [`crate::Hiding::next`].
    ///
    /// # Panics
    /// If the lengths do not fit the shape.
    pub fn deal(&self, dealer: &mut Dealer<'_>, hidden: &[u64], masks: &[u128]) -> Result<(), Error> {
        let mut products =
            Zeroizing::new(self.apply(Operand::doubles(masks, u128::BITS), Operand::words(hidden, u64::BITS)));
        products.iter_mut().for_each(|product| *product = product.wrapping_neg());
        Ok(dealer.secrets(&products)?)
    }

    /// What can be done before there is an input: `-W' r`.
    ///
    /// # Panics
    /// If the lengths do not fit the shape.
    pub fn prepare(&self, party: &mut Party<'_>, weights: &Weights, mask: &Values) -> Result<Values, Error> {
        let products = party.secrets(self.outputs())?;
        let public = Operand::words(&weights.public, widest(&weights.public));
        let [shares, codes] = mask.parts.each_ref().map(|part| self.apply(Operand::doubles(part, u128::BITS), public));
        Ok(products.sub(&Values::from_parts(shares, codes)))
    }

    /// `W x`, from what was prepared for the mask of `x` and from the opened `x^`; valid in the ring of `x` if the weights are of the same
    /// ring.
    ///
    /// # Panics
    /// If the lengths do not fit the shape.
    pub fn finish(&self, mut prepared: Values, weights: &Weights, opened: &[u64]) -> Values {
        let opened = Operand::words(opened, widest(opened));
        let [shares, codes] = &mut prepared.parts;
        // The client's shares of the weights are zero, the server's are sums of two numbers below 2^bits.
        if let Some(whole) = &weights.whole {
            self.add(shares, opened, whole.operand());
        }
        self.add(codes, opened, weights.codes.operand());
        prepared
    }
}

/// Bits that the largest of these numbers has, or more.
fn widest(values: &[u64]) -> u32 {
    u64::BITS - values.iter().fold(0, |all, value| all | value).leading_zeros()
}
