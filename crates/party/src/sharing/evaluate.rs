//! Operations that a party does on its own share, or the server on what was opened to it.

use privet_program::{Operation, Operator, Program, Value, Weights};
use privet_ring::{Field, Modulus, layout, linear};

use crate::layers::window_groups;

/// A linear operation on the opened input, in the clear: `W (x - r) + bias`; the server adds its share of `W r`.
pub(crate) fn linear(program: &Program, operation: &Operation, opened: &[u64], weights: &Weights) -> Vec<u64> {
    let mut out = product(program, operation, opened, weights.tensor(weight_of(operation)));
    add_bias(program, operation, &mut out, weights);
    out
}

/// The same modulo the field's prime, without the bias.
pub(super) fn linear_in(
    field: Field,
    program: &Program,
    operation: &Operation,
    opened: &[u64],
    weights: &Weights,
) -> Vec<u64> {
    // In two halves, whose products with the weights of a result stay within a word.
    const LOW: u32 = 20;
    let times =
        |x: Vec<u64>| product_in(Modulus::new(64), program, operation, &x, weights.tensor(weight_of(operation)));
    let low = times(opened.iter().map(|&x| field.signed(x).cast_unsigned() & ((1 << LOW) - 1)).collect());
    let high = times(opened.iter().map(|&x| (field.signed(x) >> LOW).cast_unsigned()).collect());
    let residue = |(low, high): (u64, u64)| {
        let shifted = field.signed(field.from_signed(high.cast_signed())) << LOW;
        field.add(field.from_signed(low.cast_signed()), field.from_signed(shifted))
    };
    low.into_iter().zip(high).map(residue).collect()
}

/// The name of a linear operation's weights.
fn weight_of(operation: &Operation) -> &str {
    match &operation.operator {
        Operator::Conv2d { weight, .. } | Operator::Dense { weight, .. } | Operator::Scale { weight, .. } => weight,
        other => unreachable!("{} is not linear", other.name()),
    }
}

/// Adds the bias of a linear operation, if it has one.
pub(super) fn add_bias(program: &Program, operation: &Operation, out: &mut [u64], weights: &Weights) {
    let output = &program.value(operation.output).shape;
    let bias_of = |bias: &Option<String>| bias.as_ref().map(|name| weights.tensor(name));
    match &operation.operator {
        Operator::Conv2d { bias, .. } => {
            if let Some(bias) = bias_of(bias) {
                let plane = output[2] * output[3];
                for (index, plane) in out.chunks_mut(plane).enumerate() {
                    plane.iter_mut().for_each(|x| *x = x.wrapping_add(bias[index % bias.len()] as u64));
                }
            }
        }
        Operator::Dense { weight_shape: [_, columns], bias, .. } => {
            if let Some(bias) = bias_of(bias) {
                for row in out.chunks_mut(*columns) {
                    row.iter_mut().zip(bias).for_each(|(x, &bias)| *x = x.wrapping_add(bias as u64));
                }
            }
        }
        _ => {}
    }
}

/// `W x` modulo the program's ring or a larger one for a linear operation with these weights, without its bias.
pub(super) fn product(program: &Program, operation: &Operation, x: &[u64], weights: &[i64]) -> Vec<u64> {
    product_in(Modulus::new(program.ring_bits()), program, operation, x, weights)
}

/// The same modulo `ring` or a larger one.
fn product_in(ring: Modulus, program: &Program, operation: &Operation, x: &[u64], weights: &[i64]) -> Vec<u64> {
    let input = &program.value(operation.inputs[0]).shape;
    let output = &program.value(operation.output).shape;
    match &operation.operator {
        Operator::Conv2d { weight_shape, stride, padding, dilation, groups, .. } => {
            let shape = linear::Conv2d {
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
            shape.apply(x, weights, input[0], ring)
        }
        Operator::Dense { weight_shape: [inner, columns], .. } => {
            linear::matmul(x, weights, input[0], *inner, *columns)
        }
        Operator::Scale { .. } => x.iter().zip(weights).map(|(x, &w)| x.wrapping_mul(w as u64)).collect(),
        other => unreachable!("{} is not linear", other.name()),
    }
}

/// An operation that each party does on its own share. `weights`: at the server only, which adds private and public
/// constants to its share.
pub(crate) fn local(
    program: &Program,
    operation: &Operation,
    inputs: &[&[u64]],
    weights: Option<&Weights>,
    ring: Modulus,
) -> Vec<u64> {
    let values: Vec<&Value> = operation.inputs.iter().map(|&id| program.value(id)).collect();
    let (x, shape) = (inputs[0], values[0].shape.as_slice());
    let output = program.value(operation.output).shape.as_slice();
    match &operation.operator {
        Operator::AddConstant { bias, bias_shape } => match weights {
            Some(weights) => {
                let bias = layout::broadcast(weights.tensor(bias), bias_shape, shape);
                x.iter().zip(bias).map(|(x, bias)| ring.reduce(x.wrapping_add(bias as u64))).collect()
            }
            None => x.to_vec(),
        },
        Operator::Add => ring.add(x, inputs[1]),
        Operator::Sub => ring.sub(x, inputs[1]),
        Operator::Negate => x.iter().map(|x| ring.reduce(x.wrapping_neg())).collect(),
        Operator::ShiftLeft { bits } => x.iter().map(|x| ring.reduce(x << bits)).collect(),
        Operator::AvgPool2d { window, factors } => {
            let groups = window_groups(program, operation, window);
            privet_gmw::sum_windows(x, &groups, |i| factors[i % factors.len()], ring)
        }
        Operator::Reshape => x.to_vec(),
        Operator::Broadcast => layout::broadcast(x, shape, output),
        Operator::Transpose { perm } => layout::transpose(x, shape, perm),
        Operator::Slice { starts, steps, .. } => layout::slice(x, shape, starts, steps, output),
        Operator::Concat { axis } => {
            let parts: Vec<_> = inputs.iter().zip(&values).map(|(x, value)| (*x, value.shape.as_slice())).collect();
            layout::concat(&parts, *axis)
        }
        Operator::Pad { before, constant, .. } => {
            let fill = if weights.is_some() { ring.reduce(*constant as u64) } else { 0 };
            layout::pad(x, shape, before, output, fill)
        }
        other => unreachable!("{} is not local", other.name()),
    }
}
