//! Shapes of a program's linear layers and poolings as kernels and packings take them, and which values must be in which
//! ring.

use privet_gmw::Sign;
use privet_linear::{Conv2d, Diagonal, Layer, MatMul};
use privet_program::{Operation, Operator, Program, Window};
use privet_ring::window::{Groups, Sizes, Windows};

use crate::Error;

/// The weights' name and the shape of a linear operation; `None` for any other.
pub(crate) fn linear_layer<'a>(program: &Program, operation: &'a Operation) -> Option<(&'a str, Layer)> {
    let shape = &program.value(operation.inputs[0]).shape;
    match &operation.operator {
        Operator::Conv2d { weight, weight_shape, stride, padding, dilation, groups, .. } => {
            let layer = Conv2d {
                batch: shape[0],
                in_channels: shape[1],
                height: shape[2],
                width: shape[3],
                out_channels: weight_shape[0],
                kernel: [weight_shape[2], weight_shape[3]],
                stride: *stride,
                padding: *padding,
                dilation: *dilation,
                groups: *groups,
            };
            Some((weight, Layer::Conv2d(layer)))
        }
        Operator::Dense { weight, weight_shape: [inner, columns], .. } => {
            Some((weight, Layer::MatMul(MatMul { rows: shape[0], inner: *inner, columns: *columns })))
        }
        Operator::Scale { weight, weight_shape } => {
            Some((weight, Layer::Diagonal(Diagonal { len: weight_shape.iter().product() })))
        }
        _ => None,
    }
}

/// The windows of a pooling on one image plane.
pub(crate) fn windows(program: &Program, operation: &Operation, window: &Window) -> Windows {
    let input = &program.value(operation.inputs[0]).shape;
    let output = &program.value(operation.output).shape;
    Windows {
        image: [input[2], input[3]],
        positions: [output[2], output[3]],
        kernel: window.kernel,
        stride: window.stride,
        origin: [window.padding[0], window.padding[1]],
        dilation: window.dilation,
    }
}

/// Indices into a pooling's input that each of its outputs reads.
pub(crate) fn window_groups(program: &Program, operation: &Operation, window: &Window) -> Groups {
    let input = &program.value(operation.inputs[0]).shape;
    Groups::on_planes(windows(program, operation, window).elements(), input[0] * input[1], input[2] * input[3])
}

/// How a max pooling is computed: indices into its input, and into what each stage leaves to the next
/// ([`Windows::maxima`]).
pub(crate) fn pooling_stages(program: &Program, operation: &Operation, window: &Window) -> Vec<Groups> {
    let input = &program.value(operation.inputs[0]).shape;
    let mut plane = input[2] * input[3];
    let on_planes = |groups: Vec<Vec<usize>>| {
        let left = groups.len();
        Groups::on_planes(groups, input[0] * input[1], std::mem::replace(&mut plane, left))
    };
    windows(program, operation, window).maxima().into_iter().map(on_planes).collect()
}

/// How many groups of each size the stages of [`pooling_stages`] have, without the groups.
pub(crate) fn pooling_sizes(program: &Program, operation: &Operation, window: &Window) -> Vec<Sizes> {
    let input = &program.value(operation.inputs[0]).shape;
    let planes = input[0] * input[1];
    let on_planes = |sizes: Sizes| sizes.into_iter().map(|(size, count)| (size, planes * count)).collect();
    windows(program, operation, window).stages().into_iter().map(on_planes).collect()
}

/// Whether an operation's inputs must be in the wide ring. For a truncation, because a second drop of bits would leave too
/// little room for comparisons.
pub(crate) fn computes_in_ring(operator: &Operator) -> bool {
    matches!(
        operator,
        Operator::Conv2d { .. }
            | Operator::Dense { .. }
            | Operator::Scale { .. }
            | Operator::ShiftLeft { .. }
            | Operator::AvgPool2d { .. }
            | Operator::Truncate { .. }
    )
}

/// Refuses what only suite `ckks` or `stream` computes.
///
/// # Errors
/// [`Error::Misuse`], which names the first such layer.
pub(crate) fn check_supported(program: &Program) -> Result<(), Error> {
    let smooth = |operation: &&Operation| {
        matches!(operation.operator, Operator::Mul | Operator::Polynomial { .. } | Operator::Function { .. })
    };
    match program.operations().iter().find(smooth) {
        None => Ok(()),
        Some(operation) => {
            let (name, operator) = (&operation.name, operation.operator.name());
            let (suite, instead) = match operation.operator {
                Operator::Function { .. } => ("stream", "compile the model for another suite"),
                _ => ("ckks", "choose that suite"),
            };
            Err(Error::Misuse(format!(
                "layer {name} ({operator}) runs only in suite {suite}: {instead}, or put a ReLU in its place"
            )))
        }
    }
}

/// For each value, whether a step that reads it, perhaps rearranged, needs it in the wide ring.
pub(crate) fn needs_ring(program: &Program) -> Vec<bool> {
    let mut needs = vec![false; program.values().len()];
    for reader in program.operations().iter().rev() {
        let needed = match reader.operator {
            Operator::Relu | Operator::MaxPool2d { .. } | Operator::Argmax { .. } => false,
            ref operator => computes_in_ring(operator) || needs[reader.output],
        };
        reader.inputs.iter().for_each(|&input| needs[input] |= needed);
    }
    needs
}

/// What is known of each value's sign, in whatever ring it is and whatever the input: a ReLU's result has a clear top bit, and so
/// has what is chosen from or made up of such results. A sum may wrap, and a linear layer, so theirs is unknown.
pub(crate) fn signs(program: &Program) -> Vec<Sign> {
    let mut signs = vec![Sign::Unknown; program.values().len()];
    for operation in program.operations() {
        let keeps = match operation.operator {
            Operator::Relu => {
                signs[operation.output] = Sign::NonNegative;
                continue;
            }
            Operator::Pad { constant, .. } => constant == 0,
            Operator::MaxPool2d { .. }
            | Operator::Reshape
            | Operator::Broadcast
            | Operator::Transpose { .. }
            | Operator::Slice { .. }
            | Operator::Concat { .. } => true,
            _ => false,
        };
        if keeps && operation.inputs.iter().all(|&input| signs[input] == Sign::NonNegative) {
            signs[operation.output] = Sign::NonNegative;
        }
    }
    signs
}

/// The elements of `x` in groups that run along `axis`, in the order of the output without that axis.
pub(crate) fn along<T: Copy>(x: &[T], shape: &[usize], axis: usize) -> Vec<Vec<T>> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let size = shape[axis];
    (0..outer * inner)
        .map(|group| (0..size).map(|i| x[(group / inner * size + i) * inner + group % inner]).collect())
        .collect()
}
