//! The linear layers of a model, by their public shapes.

/// A linear layer whose weights the server holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A convolution.
    Conv2d(Conv2d),
    /// A matrix product.
    MatMul(MatMul),
    /// An elementwise product.
    Diagonal(Diagonal),
}

/// A two-dimensional convolution (a correlation, as in ONNX): input `[batch, in_channels, height, width]`, weights
/// `[out_channels, in_channels / groups, kernel]`, output `[batch, out_channels, rows, columns]`, all row-major.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conv2d {
    /// Images.
    pub batch: usize,
    /// Channels of the input, a multiple of `groups`.
    pub in_channels: usize,
    /// Rows of the input.
    pub height: usize,
    /// Columns of the input.
    pub width: usize,
    /// Channels of the output, a multiple of `groups`.
    pub out_channels: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Steps between neighbouring outputs, down and right.
    pub stride: [usize; 2],
    /// Zeros around the input: top, left, bottom, right.
    pub padding: [usize; 4],
    /// Steps between neighbouring elements of the kernel, down and right.
    pub dilation: [usize; 2],
    /// Groups of channels that do not meet.
    pub groups: usize,
}

/// The product of an input `[rows, inner]` with private weights `[inner, columns]`, row-major.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MatMul {
    /// Rows of the input.
    pub rows: usize,
    /// Columns of the input.
    pub inner: usize,
    /// Columns of the weights.
    pub columns: usize,
}

/// The elementwise product of two vectors of length `len`, one of them private.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagonal {
    /// Elements.
    pub len: usize,
}
