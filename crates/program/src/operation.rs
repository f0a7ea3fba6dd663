//! The operations of a program.
//!
//! Each is exact integer arithmetic on row-major tensors (images are NCHW), so that a plaintext executor and every
//! suite agree up to the suite's stated bound. Here is all that the file format says of an operation: its attributes, the
//! shape of its result, and the widths that it may have. Whatever else of a program is checked is in `check.rs`.

use serde::{Deserialize, Serialize};

use crate::function::{self, Step};
use crate::shape;

/// One step of a program: an operator, the values it reads and the value it writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The ONNX node that it came from, for messages and cost tables.
    pub name: String,
    /// Ids of the values read.
    pub inputs: Vec<usize>,
    /// Id of the value written.
    pub output: usize,
    /// What is computed.
    #[serde(flatten)]
    pub operator: Operator,
}

/// The rectangle that a pooling slides over an image; padding is top, left, bottom, right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal step.
    pub stride: [usize; 2],
    /// Rows and columns around the image that hold no element.
    pub padding: [usize; 4],
    /// Distance between neighbouring elements of the window; 1 where the file names none.
    #[serde(default = "undilated")]
    pub dilation: [usize; 2],
}

fn undilated() -> [usize; 2] {
    [1, 1]
}

/// What an operation computes. Weights and biases are names of private tensors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[allow(missing_docs)] // the fields are ONNX's attributes of the same names
pub enum Operator {
    /// `[N, C, H, W] -> [N, O, H', W']` with weights `[O, C / groups, kh, kw]` and zero padding.
    Conv2d {
        weight: String,
        weight_shape: [usize; 4],
        bias: Option<String>,
        stride: [usize; 2],
        padding: [usize; 4],
        dilation: [usize; 2],
        groups: usize,
    },
    /// `[M, K] -> [M, N]` with weights `[K, N]`.
    Dense { weight: String, weight_shape: [usize; 2], bias: Option<String> },
    /// Elementwise product with a private constant of the input's shape.
    Scale { weight: String, weight_shape: Vec<usize> },
    /// Sum with a private constant that broadcasts to the input's shape.
    AddConstant { bias: String, bias_shape: Vec<usize> },
    /// Sum of two values of one shape and scale.
    Add,
    /// Difference of two values of one shape and scale.
    Sub,
    /// Product of two values of one shape, element by element.
    Mul,
    /// `[B, M, K] x [B, K, N] -> [B, M, N]`: a matrix product of two values for each of `B`.
    Matmul,
    /// `sum_k coefficients[k] T_k(x / bound)` of each element, with Chebyshev's T_k; bound and coefficients are private
    /// tensors of 1 and `degree + 1` elements.
    Polynomial { coefficients: String, bound: String, degree: usize },
    /// A public function of each element, which a party computes in the clear. Its argument is `x / 2^scale`; its value
    /// at the output's scale is rounded, halves to even, and kept within the ring.
    Function { steps: Vec<Step> },
    /// A public function of each element by `2^index_bits` lines. With `u = min(max(x - low, 0), 2^bits - 1) = i 2^f + d`,
    /// `f = bits - index_bits`, the value is `slopes[i] d + offsets[i]` of the table that follows from the function of
    /// `(u + low) / 2^scale` (docs/reference/operators.md); if it `rises`, `2^f` times more for each unit of `x` above the table.
    /// `nonnegative` says that `x - low` is never negative, by how `x` is made.
    Piecewise {
        steps: Vec<Step>,
        low: i64,
        bits: u32,
        index_bits: u32,
        #[serde(default, skip_serializing_if = "is_false")]
        rises: bool,
        #[serde(default, skip_serializing_if = "is_false")]
        nonnegative: bool,
    },
    /// `-x`.
    Negate,
    /// `x * 2^bits`.
    ShiftLeft { bits: u32 },
    /// `floor(x / 2^bits)`; on shares in a ring of `width` bits, if that is given.
    Truncate {
        bits: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        width: Option<u32>,
    },
    /// `max(x, 0)`.
    Relu,
    /// `y` where `x >= 0`, else 0, of two values `x` and `y` of one shape.
    Select,
    /// 1 where `x >= 0`, else 0, for signed integers of `bits` bits.
    Step { bits: u32 },
    /// `[N, T (2^depth - 1)] -> [N, T 2^depth]`: which leaf each of `T` complete trees ends in, 1 for that one and 0 for the
    /// others, where `x >= 0` goes left. `x` as for [`Operator::Step`]. The number of a node of level `k`, counted from
    /// `2^k - 1`, has bit `j` set if the way to it goes right at level `j`; trees are next to one another at each node. Leaves
    /// are level `depth`, counted from 0.
    Leaves { bits: u32, depth: u32 },
    /// Maximum over the elements of each window that lie on the image.
    #[serde(rename = "max_pool2d")]
    MaxPool2d {
        #[serde(flatten)]
        window: Window,
    },
    /// Sum over the elements of each window that lie on the image, times a public factor: one for all positions or one
    /// per output position.
    #[serde(rename = "avg_pool2d")]
    AvgPool2d {
        #[serde(flatten)]
        window: Window,
        factors: Vec<i64>,
    },
    /// The same elements in another shape.
    Reshape,
    /// Numpy broadcasting to the output's shape.
    Broadcast,
    /// Axis `i` of the output is axis `perm[i]` of the input.
    Transpose { perm: Vec<usize> },
    /// Elements `start, start + step, ..` before `end` on each axis; steps may be negative.
    Slice { starts: Vec<i64>, ends: Vec<i64>, steps: Vec<i64> },
    /// Inputs joined along `axis`.
    Concat { axis: usize },
    /// `before` and `after` elements of `constant` around each axis.
    Pad { before: Vec<usize>, after: Vec<usize>, constant: i64 },
    /// Index of the largest element along `axis`; the first or, on request, the last of equals.
    Argmax { axis: usize, keepdims: bool, select_last: bool },
}

/// Whether a choice is left out of the file.
fn is_false(choice: &bool) -> bool {
    !choice
}

impl Operator {
    /// The name in the file format, which is also what people see.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Conv2d { .. } => "conv2d",
            Self::Dense { .. } => "dense",
            Self::Scale { .. } => "scale",
            Self::AddConstant { .. } => "add_constant",
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Matmul => "matmul",
            Self::Polynomial { .. } => "polynomial",
            Self::Function { .. } => "function",
            Self::Piecewise { .. } => "piecewise",
            Self::Negate => "negate",
            Self::ShiftLeft { .. } => "shift_left",
            Self::Truncate { .. } => "truncate",
            Self::Relu => "relu",
            Self::Select => "select",
            Self::Step { .. } => "step",
            Self::Leaves { .. } => "leaves",
            Self::MaxPool2d { .. } => "max_pool2d",
            Self::AvgPool2d { .. } => "avg_pool2d",
            Self::Reshape => "reshape",
            Self::Broadcast => "broadcast",
            Self::Transpose { .. } => "transpose",
            Self::Slice { .. } => "slice",
            Self::Concat { .. } => "concat",
            Self::Pad { .. } => "pad",
            Self::Argmax { .. } => "argmax",
        }
    }

    /// The shape of its result on inputs of these shapes; `declared` is the output's shape in the file, which reshape,
    /// broadcast and poolings take as their target.
    pub(crate) fn shape(&self, inputs: &[&[usize]], declared: &[usize]) -> Result<Vec<usize>, String> {
        let arity = match self {
            Self::Add | Self::Sub | Self::Mul | Self::Matmul | Self::Select => Some(2),
            Self::Concat { .. } => None,
            _ => Some(1),
        };
        if inputs.is_empty() || arity.is_some_and(|arity| inputs.len() != arity) {
            return Err(format!("{} inputs", inputs.len()));
        }
        let x = inputs[0];
        match self {
            Self::Conv2d { weight_shape, stride, padding, dilation, groups, .. } => {
                let kernel = [weight_shape[2], weight_shape[3]];
                let window = Window { kernel, stride: *stride, padding: *padding, dilation: *dilation };
                shape::convolution(x, weight_shape, &window, *groups)
            }
            Self::Dense { weight_shape, .. } => shape::dense(x, *weight_shape),
            Self::Scale { weight_shape, .. } => shape::same(x, weight_shape),
            Self::AddConstant { bias_shape, .. } => shape::broadcasts(bias_shape, x).map(|()| x.to_vec()),
            Self::Add | Self::Sub | Self::Mul | Self::Select => shape::same(x, inputs[1]),
            Self::Matmul => shape::matmul(x, inputs[1]),
            Self::Polynomial { degree, .. } => shape::polynomial(*degree).map(|()| x.to_vec()),
            Self::Function { steps } => function::check(steps).map(|()| x.to_vec()),
            Self::Piecewise { steps, low, bits, index_bits, .. } => {
                function::check(steps)?;
                shape::lines(*low, [*bits, *index_bits]).map(|()| x.to_vec())
            }
            Self::Negate | Self::ShiftLeft { .. } | Self::Truncate { .. } | Self::Relu | Self::Step { .. } => {
                Ok(x.to_vec())
            }
            Self::Leaves { depth, .. } => shape::leaves(x, *depth),
            Self::MaxPool2d { window } => shape::pooling(x, window, declared),
            Self::AvgPool2d { window, factors } => {
                shape::factors(factors.len(), declared)?;
                shape::pooling(x, window, declared)
            }
            Self::Reshape => shape::reshape(x, declared),
            Self::Broadcast => shape::broadcasts(x, declared).map(|()| declared.to_vec()),
            Self::Transpose { perm } => shape::transpose(x, perm),
            Self::Slice { starts, ends, steps } => shape::slice(x, starts, ends, steps),
            Self::Concat { axis } => shape::concat(inputs, *axis),
            Self::Pad { before, after, .. } => shape::pad(x, before, after),
            Self::Argmax { axis, keepdims, .. } => shape::argmax(x, *axis, *keepdims),
        }
    }

    /// Checks its widths against the ring of the program.
    pub(crate) fn check_bits(&self, ring_bits: u32) -> Result<(), String> {
        match self {
            Self::Truncate { bits, .. } | Self::ShiftLeft { bits } if *bits + 4 > ring_bits => {
                Err(format!("{bits} bits of a ring of {ring_bits}"))
            }
            Self::Truncate { bits, width: Some(width) } if !(4..=ring_bits - bits).contains(width) => {
                Err(format!("{width} bits of what {bits} bits leave of a ring of {ring_bits}"))
            }
            Self::Piecewise { bits, .. } if *bits + 2 > ring_bits => {
                Err(format!("{bits} bits of a ring of {ring_bits}"))
            }
            Self::Step { bits } | Self::Leaves { bits, .. } if !(2..=ring_bits).contains(bits) => {
                Err(format!("a comparison of {bits} bits in a ring of {ring_bits}"))
            }
            _ => Ok(()),
        }
    }

    /// The shape of its weights, if it has some.
    pub(crate) fn weight_shape(&self) -> Option<&[usize]> {
        match self {
            Self::Conv2d { weight_shape, .. } => Some(weight_shape),
            Self::Dense { weight_shape, .. } => Some(weight_shape),
            Self::Scale { weight_shape, .. } => Some(weight_shape),
            _ => None,
        }
    }
}
