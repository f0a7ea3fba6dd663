//! Linear operations on encrypted tensors, as the server computes them.

use privet_paillier::{Ciphertexts, Weights, Windows};
use privet_program::{Operation, Operator, Program};
use privet_ring::layout;

use super::packed::Samples;
use crate::Error;
use crate::ops::{Node, Pooling};

/// The result of a linear operation on encrypted values: a function of its inputs, to be re-randomised before it
/// leaves.
///
/// # Errors
/// If a weight does not have the program's width.
pub(super) fn compute(
    program: &Program,
    operation: &Operation,
    inputs: &[&Ciphertexts],
    weights: &privet_program::Weights,
    samples: Samples,
) -> Result<Ciphertexts, Error> {
    let x = inputs[0];
    let shape = program.value(operation.inputs[0]).shape.as_slice();
    let output = program.value(operation.output).shape.as_slice();
    let width = program.weight_bits() as usize + 1;
    let bias_of = |bias: &Option<String>| bias.as_ref().map(|name| weights.tensor(name));
    match &operation.operator {
        Operator::Conv2d { weight, bias, .. } => {
            let product = convolve(program, operation, x, weights.tensor(weight))?;
            match bias_of(bias) {
                Some(bias) => add_constant(product, &layout::broadcast(bias, &[bias.len(), 1, 1], output), samples),
                None => Ok(product),
            }
        }
        Operator::Dense { weight, weight_shape: [inner, columns], bias } => {
            let transposed = layout::transpose(weights.tensor(weight), &[*inner, *columns], &[1, 0]);
            let matrix = Weights::new(*columns, *inner, width, narrow(&transposed)?)?;
            let rows = Windows::new(*inner, (0..x.len()).map(Some).collect())?;
            let product = transpose(x.dot(&matrix, &rows)?, &[*columns, shape[0]], &[1, 0])?;
            match bias_of(bias) {
                Some(bias) => add_constant(product, &layout::broadcast(bias, &[*columns], output), samples),
                None => Ok(product),
            }
        }
        Operator::Scale { weight, .. } => {
            Ok(x.scale(&Weights::new(1, x.len(), width, narrow(weights.tensor(weight))?)?)?)
        }
        Operator::AddConstant { bias, bias_shape } => {
            add_constant(x.clone(), &layout::broadcast(weights.tensor(bias), bias_shape, shape), samples)
        }
        Operator::Add => sum(x, inputs[1]),
        Operator::Sub => sum(&negate(inputs[1])?, x),
        Operator::Negate => negate(x),
        Operator::ShiftLeft { bits } => (0..*bits).try_fold(x.clone(), |x, _| sum(&x, &x)),
        Operator::AvgPool2d { .. } => pool(program, operation, x),
        _ => moved(program, operation, inputs, samples),
    }
}

/// A convolution without its bias: `[N, O, H', W']`.
fn convolve(program: &Program, operation: &Operation, x: &Ciphertexts, weights: &[i64]) -> Result<Ciphertexts, Error> {
    let Operator::Conv2d { weight_shape, groups, .. } = &operation.operator else {
        unreachable!("only for convolutions");
    };
    let [batch, out, height, width] = axes(&program.value(operation.output).shape);
    let taps: usize = weight_shape[1..].iter().product();
    let rows = out / groups;
    let weights = channels_last(weights, weight_shape);
    let mut result: Option<Ciphertexts> = None;
    for group in 0..*groups {
        let part = narrow(&weights[group * rows * taps..][..rows * taps])?;
        let matrix = Weights::new(rows, taps, program.weight_bits() as usize + 1, part)?;
        let windows = Windows::in_runs(taps, weight_shape[1], patches(program, operation, group))?;
        let product = x.dot(&matrix, &windows)?;
        match &mut result {
            Some(result) => result.append(product)?,
            None => result = Some(product),
        }
    }
    let product = result.ok_or_else(|| Error::Misuse("a convolution without groups".into()))?;
    transpose(product, &[out, batch, height * width], &[1, 0, 2])
}

/// A convolution's weights as `[O, kh, kw, C]`: positions of an image that overlap read the same channels together.
pub(super) fn channels_last(weights: &[i64], shape: &[usize; 4]) -> Vec<i64> {
    layout::transpose(weights, shape, &[0, 2, 3, 1])
}

/// The elements that each position of a convolution reads, image by image, of one group of channels:
/// `[N, H', W', kh, kw, C]`, none where padding is read.
pub(super) fn patches(program: &Program, operation: &Operation, group: usize) -> Vec<Option<usize>> {
    let Operator::Conv2d { weight_shape, stride, padding, dilation, .. } = &operation.operator else {
        unreachable!("only for convolutions");
    };
    let [batch, channels, height, width] = axes(&program.value(operation.inputs[0]).shape);
    let [_, _, out_height, out_width] = axes(&program.value(operation.output).shape);
    let [_, per_group, kernel_height, kernel_width] = *weight_shape;
    let taps = per_group * kernel_height * kernel_width;
    let along = |axis: usize, position: usize, tap: usize, size: usize| {
        (position * stride[axis] + tap * dilation[axis]).checked_sub(padding[axis]).filter(|&at| at < size)
    };
    let mut indices = Vec::with_capacity(batch * out_height * out_width * taps);
    for (image, position) in (0..batch).flat_map(|n| (0..out_height * out_width).map(move |p| (n, p))) {
        let (top, left) = (position / out_width, position % out_width);
        indices.extend((0..taps).map(|tap| {
            let (place, channel) = (tap / per_group, group * per_group + tap % per_group);
            let row = along(0, top, place / kernel_width, height)?;
            let column = along(1, left, place % kernel_width, width)?;
            Some(((image * channels + channel) * height + row) * width + column)
        }));
    }
    indices
}

/// Sums over the windows of an average pooling, times their public factors.
fn pool(program: &Program, operation: &Operation, x: &Ciphertexts) -> Result<Ciphertexts, Error> {
    let Operator::AvgPool2d { window, factors } = &operation.operator else { unreachable!("only for poolings") };
    let groups = Pooling { node: Node { program, operation }, window }.groups();
    let size = groups.sizes().max().unwrap_or(1);
    let indices = groups.iter().flat_map(|group| group.map(Some).chain(std::iter::repeat(None)).take(size)).collect();
    let windows = Windows::new(size, indices)?;
    let each = if let [factor] = factors[..] { factor } else { 1 };
    let sums = x.dot(&public(1, &vec![each; size])?, &windows)?;
    if factors.len() == 1 {
        return Ok(sums);
    }
    let by: Vec<i64> = factors.iter().copied().cycle().take(sums.len()).collect();
    Ok(sums.scale(&public(1, &by)?)?)
}

/// The result of an operation that only moves elements.
fn moved(
    program: &Program,
    operation: &Operation,
    inputs: &[&Ciphertexts],
    samples: Samples,
) -> Result<Ciphertexts, Error> {
    let mut pool = inputs[0].clone();
    inputs[1..].iter().try_for_each(|&input| pool.append(input.clone()))?;
    if let Operator::Pad { constant, .. } = &operation.operator {
        let zero = pool.slice(0..1).scale(&public(1, &[0])?)?;
        pool.append(add_constant(zero, &[*constant], samples)?)?;
    }
    Ok(pool.select(&movement(program, operation))?)
}

/// Where an operation that only moves elements takes each of its output from: indices into its inputs, one behind the
/// other; behind them all a padding's constant.
pub(super) fn movement(program: &Program, operation: &Operation) -> Vec<usize> {
    let mut end = 0;
    let mut parts: Vec<(Vec<usize>, &[usize])> = Vec::new();
    for &id in &operation.inputs {
        let start = end;
        end += program.value(id).len();
        parts.push(((start..end).collect(), &program.value(id).shape));
    }
    let (x, shape) = (&parts[0].0, parts[0].1);
    let output = program.value(operation.output).shape.as_slice();
    match &operation.operator {
        Operator::Reshape => parts.swap_remove(0).0,
        Operator::Broadcast => layout::broadcast(x, shape, output),
        Operator::Transpose { perm } => layout::transpose(x, shape, perm),
        Operator::Slice { starts, steps, .. } => layout::slice(x, shape, starts, steps, output),
        Operator::Concat { axis } => {
            let parts: Vec<_> = parts.iter().map(|(indices, shape)| (indices.as_slice(), *shape)).collect();
            layout::concat(&parts, *axis)
        }
        Operator::Pad { before, .. } => layout::pad(x, shape, before, output, end),
        other => unreachable!("{} is the client's", other.name()),
    }
}

/// Adds the same constants for every sample.
pub(super) fn add_constant(mut x: Ciphertexts, constant: &[i64], samples: Samples) -> Result<Ciphertexts, Error> {
    let plaintexts = constant.iter().map(|&value| samples.constant(value)).collect::<Result<Vec<_>, _>>()?;
    x.add_plain(&plaintexts)?;
    Ok(x)
}

pub(super) fn sum(x: &Ciphertexts, y: &Ciphertexts) -> Result<Ciphertexts, Error> {
    let mut sum = x.clone();
    sum.add(y)?;
    Ok(sum)
}

pub(super) fn negate(x: &Ciphertexts) -> Result<Ciphertexts, Error> {
    Ok(x.scale(&public(1, &vec![-1; x.len()])?)?)
}

fn transpose(x: Ciphertexts, shape: &[usize], perm: &[usize]) -> Result<Ciphertexts, Error> {
    let indices: Vec<usize> = (0..x.len()).collect();
    let order = layout::transpose(&indices, shape, perm);
    if order == indices { Ok(x) } else { Ok(x.select(&order)?) }
}

/// Weights that everybody knows, as wide as the largest.
pub(super) fn public(rows: usize, values: &[i64]) -> Result<Weights, Error> {
    let largest = values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
    let bits = (u64::BITS - largest.leading_zeros()) as usize + 1;
    Ok(Weights::new(rows, values.len() / rows, bits.max(2), narrow(values)?)?)
}

pub(super) fn narrow(values: &[i64]) -> Result<Vec<i32>, Error> {
    let narrow = values.iter().map(|&value| i32::try_from(value)).collect::<Result<_, _>>();
    narrow.map_err(|_| Error::Misuse("a weight has more than 31 bits".into()))
}

fn axes(shape: &[usize]) -> [usize; 4] {
    shape.try_into().expect("an image has four axes in a checked program")
}
