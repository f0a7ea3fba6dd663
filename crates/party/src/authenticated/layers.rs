//! Operations of a program as gates on authenticated values take them.

use privet_program::{Operation, Operator, Program};
use privet_ring::linear::Conv2d;
use privet_shark::Layer;

/// A private tensor: its name and length.
type Tensor = (String, usize);

/// A linear operation's layer and private tensors, weights first; `None` for any other.
pub(super) fn linear(program: &Program, operation: &Operation) -> Option<(Layer, Vec<Tensor>)> {
    let input = &program.value(operation.inputs[0]).shape;
    let output = &program.value(operation.output).shape;
    let (layer, weight, bias) = match &operation.operator {
        Operator::Conv2d { weight, weight_shape, bias, stride, padding, dilation, groups } => {
            let shape = Conv2d {
                in_channels: input[1],
                image: [input[2], input[3]],
                out_channels: output[1],
                positions: [output[2], output[3]],
                kernel: [weight_shape[2], weight_shape[3]],
                stride: *stride,
                origin: [padding[0], padding[1]],
                dilation: *dilation,
                groups: *groups,
            };
            (Layer::Conv2d { shape, batch: input[0] }, weight, bias.as_ref().map(|bias| (bias, output[1])))
        }
        Operator::Dense { weight, weight_shape: [inner, columns], bias } => {
            let layer = Layer::MatMul { rows: input[0], inner: *inner, columns: *columns };
            (layer, weight, bias.as_ref().map(|bias| (bias, *columns)))
        }
        Operator::Scale { weight, weight_shape } => {
            (Layer::Diagonal { len: weight_shape.iter().product() }, weight, None)
        }
        _ => return None,
    };
    let mut tensors = vec![(weight.clone(), layer.weights())];
    tensors.extend(bias.map(|(bias, len)| (bias.clone(), len)));
    Some((layer, tensors))
}

/// Whether a linear operation adds a private tensor to its product.
pub(super) fn has_bias(operation: &Operation) -> bool {
    matches!(&operation.operator, Operator::Conv2d { bias: Some(_), .. } | Operator::Dense { bias: Some(_), .. })
}

/// The private tensor of an operation that adds one.
pub(super) fn constant(operation: &Operation) -> Option<Tensor> {
    match &operation.operator {
        Operator::AddConstant { bias, bias_shape } => Some((bias.clone(), bias_shape.iter().product())),
        _ => None,
    }
}

/// How many outputs of a linear layer follow one another that an element of its bias is added to; elements take turns.
pub(super) fn bias_run(program: &Program, operation: &Operation) -> usize {
    let output = program.value(operation.output);
    match operation.operator {
        Operator::Conv2d { .. } => output.shape[2] * output.shape[3],
        _ => 1,
    }
}

/// Indices of groups of elements that run along `axis`, backwards if the last of equals is wanted.
pub(super) fn along(shape: &[usize], axis: usize, backwards: bool) -> Vec<Vec<usize>> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let size = shape[axis];
    let place = |group: usize, i: usize| (group / inner * size + i) * inner + group % inner;
    let group = |group| (0..size).map(|i| place(group, if backwards { size - 1 - i } else { i })).collect();
    (0..outer * inner).map(group).collect()
}
