//! Parts of linear operations: some elements of a result from only the elements that they read (PP-Stream,
//! Section IV-D).

use std::collections::{BTreeMap, BTreeSet};

use privet_program::{Operation, Operator, Program};
use privet_ring::layout;

use super::elements::{Elements, Matrix};
use super::linear::{channels_last, movement, patches};
use crate::Error;
use crate::ops::{Node, Pooling};

/// Some elements of a tensor.
pub(super) struct Part<E> {
    /// Their indices in it, ascending.
    pub indices: Vec<usize>,
    /// As many hidden elements.
    pub elements: E,
}

impl<E: Elements> Part<E> {
    /// The places of some elements among these.
    fn places(&self, wanted: impl Iterator<Item = usize>) -> Result<Vec<usize>, Error> {
        let place = |index: usize| self.indices.binary_search(&index).map_err(|_| missing(index));
        wanted.map(place).collect()
    }

    /// Some of the elements, in the order of `wanted`.
    pub fn select(&self, wanted: &[usize]) -> Result<E, Error> {
        self.elements.pick(&self.places(wanted.iter().copied())?)
    }

    /// The windows of a linear map by places among these.
    fn windows<'a>(&self, chunks: impl Iterator<Item = &'a [Option<usize>]>) -> Result<Vec<Option<usize>>, Error> {
        let place = |index: &Option<usize>| {
            index.map(|index| self.indices.binary_search(&index).map_err(|_| missing(index))).transpose()
        };
        chunks.flatten().map(place).collect()
    }
}

fn missing(index: usize) -> Error {
    Error::Misuse(format!("element {index} is needed for this part of a stage and was not given"))
}

/// Which elements of each of its inputs an operation reads for `wanted` of its output, input by input.
pub(super) fn needs(program: &Program, operation: &Operation, wanted: &[usize]) -> Vec<Vec<usize>> {
    let shape = program.value(operation.output).shape.as_slice();
    match &operation.operator {
        Operator::Conv2d { weight_shape, groups, .. } => {
            let taps: usize = weight_shape[1..].iter().product();
            let mut read = BTreeSet::new();
            for group in 0..*groups {
                let (_, positions) = rectangle(wanted, shape, *groups, group);
                let patches = patches(program, operation, group);
                read.extend(positions.iter().flat_map(|at| patches[at * taps..][..taps].iter().flatten().copied()));
            }
            vec![read.into_iter().collect()]
        }
        Operator::Dense { weight_shape: [inner, columns], .. } => {
            let rows: BTreeSet<usize> = wanted.iter().map(|index| index / columns).collect();
            vec![rows.into_iter().flat_map(|row| row * inner..(row + 1) * inner).collect()]
        }
        Operator::AvgPool2d { window, .. } => {
            let groups: Vec<Vec<usize>> =
                Pooling { node: Node { program, operation }, window }.groups().iter().map(Iterator::collect).collect();
            let read: BTreeSet<usize> = wanted.iter().flat_map(|&index| groups[index].iter().copied()).collect();
            vec![read.into_iter().collect()]
        }
        Operator::Scale { .. }
        | Operator::AddConstant { .. }
        | Operator::Add
        | Operator::Sub
        | Operator::Negate
        | Operator::ShiftLeft { .. } => vec![wanted.to_vec(); operation.inputs.len()],
        _ => {
            let from = movement(program, operation);
            let mut read: BTreeSet<usize> = wanted.iter().map(|&index| from[index]).collect();
            if matches!(operation.operator, Operator::Pad { .. }) {
                // The constant is made from a ciphertext, whichever.
                read.insert(0);
            }
            let mut start = 0;
            let lengths = operation.inputs.iter().map(|&id| program.value(id).len());
            lengths
                .map(|length| {
                    let part = read.range(start..start + length).map(|index| index - start).collect();
                    start += length;
                    part
                })
                .collect()
        }
    }
}

/// The elements `wanted` (ascending) of an operation's output, as [`super::linear::compute`] gives all.
///
/// # Errors
/// [`Error::Misuse`] if `inputs` lack an element that [`needs`] names.
pub(super) fn compute<E: Elements>(
    program: &Program,
    operation: &Operation,
    inputs: &[&Part<E>],
    weights: &privet_program::Weights,
    wanted: &[usize],
) -> Result<E, Error> {
    let x = inputs[0];
    let shape = program.value(operation.output).shape.as_slice();
    let bits = program.weight_bits() as usize + 1;
    let pick = |values: &[i64]| wanted.iter().map(|&index| values[index]).collect::<Vec<_>>();
    let biased = |product: E, bias: &Option<String>, bias_shape: &dyn Fn(usize) -> Vec<usize>| match bias {
        Some(name) => {
            let bias = weights.tensor(name);
            product.plus_constants(&pick(&layout::broadcast(bias, &bias_shape(bias.len()), shape)))
        }
        None => Ok(product),
    };
    let every = |factor: i64| Matrix::public(1, vec![factor; wanted.len()]);
    match &operation.operator {
        Operator::Conv2d { weight, bias, .. } => {
            let product = convolve(program, operation, x, weights.tensor(weight), wanted)?;
            biased(product, bias, &|channels| vec![channels, 1, 1])
        }
        Operator::Dense { weight, weight_shape: [inner, columns], bias } => {
            let product = dense(x, weights.tensor(weight), [*inner, *columns], bits, wanted)?;
            biased(product, bias, &|columns| vec![columns])
        }
        Operator::Scale { weight, .. } => {
            let values = pick(weights.tensor(weight));
            x.select(wanted)?.times(&Matrix { rows: 1, inner: wanted.len(), run: wanted.len(), bits, values })
        }
        Operator::AddConstant { bias, bias_shape } => {
            let constants = layout::broadcast(weights.tensor(bias), bias_shape, shape);
            x.select(wanted)?.plus_constants(&pick(&constants))
        }
        Operator::Add => x.select(wanted)?.plus(&inputs[1].select(wanted)?),
        Operator::Sub => inputs[1].select(wanted)?.times(&every(-1))?.plus(&x.select(wanted)?),
        Operator::Negate => x.select(wanted)?.times(&every(-1)),
        Operator::ShiftLeft { bits } => (0..*bits).try_fold(x.select(wanted)?, |x, _| x.plus(&x)),
        Operator::AvgPool2d { .. } => pool(program, operation, x, wanted),
        _ => moved(program, operation, inputs, wanted),
    }
}

/// The channels and the positions (of all images) that cover what is wanted of a group of a convolution's output
/// `[N, O, H, W]`.
fn rectangle(wanted: &[usize], shape: &[usize], groups: usize, group: usize) -> (Vec<usize>, Vec<usize>) {
    let (channels, area) = (shape[1], shape[2] * shape[3]);
    let rows = channels / groups;
    let (mut outputs, mut positions) = (BTreeSet::new(), BTreeSet::new());
    for &index in wanted {
        let channel = index / area % channels;
        if channel / rows == group {
            outputs.insert(channel);
            positions.insert(index / (area * channels) * area + index % area);
        }
    }
    (outputs.into_iter().collect(), positions.into_iter().collect())
}

fn convolve<E: Elements>(
    program: &Program,
    operation: &Operation,
    x: &Part<E>,
    weights: &[i64],
    wanted: &[usize],
) -> Result<E, Error> {
    let Operator::Conv2d { weight_shape, groups, .. } = &operation.operator else {
        unreachable!("only for convolutions");
    };
    let shape = program.value(operation.output).shape.as_slice();
    let inner: usize = weight_shape[1..].iter().product();
    let (run, bits) = (weight_shape[1], program.weight_bits() as usize + 1);
    let weights = channels_last(weights, weight_shape);
    let mut products: Option<E> = None;
    let mut places = BTreeMap::new();
    for group in 0..*groups {
        let (outputs, positions) = rectangle(wanted, shape, *groups, group);
        if outputs.is_empty() {
            continue;
        }
        let values = outputs.iter().flat_map(|&output| &weights[output * inner..][..inner]).copied().collect();
        let matrix = Matrix { rows: outputs.len(), inner, run, bits, values };
        let patches = patches(program, operation, group);
        let windows = x.windows(positions.iter().map(|&at| &patches[at * inner..][..inner]))?;
        let start = products.as_ref().map_or(0, Elements::count);
        for (row, &output) in outputs.iter().enumerate() {
            let row_start = start + row * positions.len();
            places.extend(positions.iter().enumerate().map(|(column, &at)| ((output, at), row_start + column)));
        }
        let product = x.elements.dot(&matrix, windows)?;
        products = Some(match products {
            Some(products) => products.join(&product)?,
            None => product,
        });
    }
    let products = products.ok_or_else(|| Error::Misuse("a part of a convolution without elements".into()))?;
    let (channels, area) = (shape[1], shape[2] * shape[3]);
    let place = |&index: &usize| {
        let at = index / (area * channels) * area + index % area;
        places[&(index / area % channels, at)]
    };
    products.pick(&wanted.iter().map(place).collect::<Vec<_>>())
}

/// A part of `[rows, columns]`: a window for each row wanted, a row of the transposed matrix for each column.
fn dense<E: Elements>(
    x: &Part<E>,
    weights: &[i64],
    [inner, columns]: [usize; 2],
    bits: usize,
    wanted: &[usize],
) -> Result<E, Error> {
    let rows: Vec<usize> = wanted.iter().map(|index| index / columns).collect::<BTreeSet<_>>().into_iter().collect();
    let outputs: Vec<usize> = wanted.iter().map(|index| index % columns).collect::<BTreeSet<_>>().into_iter().collect();
    let column = |&output: &usize| (0..inner).map(move |row| weights[row * columns + output]);
    let values = outputs.iter().flat_map(column).collect();
    let matrix = Matrix { rows: outputs.len(), inner, run: inner, bits, values };
    let read: Vec<Option<usize>> = rows.iter().flat_map(|row| row * inner..(row + 1) * inner).map(Some).collect();
    let product = x.elements.dot(&matrix, x.windows(read.chunks(inner))?)?;
    let place = |index: &usize| {
        let output = outputs.partition_point(|&output| output < index % columns);
        output * rows.len() + rows.partition_point(|&row| row < index / columns)
    };
    product.pick(&wanted.iter().map(place).collect::<Vec<_>>())
}

/// Some sums of an average pooling, times their public factors.
fn pool<E: Elements>(program: &Program, operation: &Operation, x: &Part<E>, wanted: &[usize]) -> Result<E, Error> {
    let Operator::AvgPool2d { window, factors } = &operation.operator else { unreachable!("only for poolings") };
    let groups: Vec<Vec<Option<usize>>> = Pooling { node: Node { program, operation }, window }
        .groups()
        .iter()
        .map(|group| group.map(Some).collect())
        .collect();
    let size = groups.iter().map(Vec::len).max().unwrap_or(1);
    let read: Vec<Vec<Option<usize>>> = wanted
        .iter()
        .map(|&index| groups[index].iter().copied().chain(std::iter::repeat(None)).take(size).collect())
        .collect();
    let windows = x.windows(read.iter().map(Vec::as_slice))?;
    let each = if let [factor] = factors[..] { factor } else { 1 };
    let sums = x.elements.dot(&Matrix::public(1, vec![each; size]), windows)?;
    if factors.len() == 1 {
        return Ok(sums);
    }
    let by = wanted.iter().map(|index| factors[index % factors.len()]).collect();
    sums.times(&Matrix::public(1, by))
}

fn moved<E: Elements>(
    program: &Program,
    operation: &Operation,
    inputs: &[&Part<E>],
    wanted: &[usize],
) -> Result<E, Error> {
    let from = movement(program, operation);
    let mut pool: Option<E> = None;
    let mut places = BTreeMap::new();
    let (mut start, mut end) = (0, 0);
    for (part, &id) in inputs.iter().zip(&operation.inputs) {
        places.extend(part.indices.iter().enumerate().map(|(place, index)| (start + index, end + place)));
        start += program.value(id).len();
        end += part.indices.len();
        pool = Some(match pool {
            Some(pool) => pool.join(&part.elements)?,
            None => part.elements.clone(),
        });
    }
    let mut pool = pool.ok_or_else(|| Error::Misuse("an operation without inputs".into()))?;
    if let Operator::Pad { constant, .. } = &operation.operator {
        let zero = pool.pick(&[0])?.times(&Matrix::public(1, vec![0]))?;
        pool = pool.join(&zero.plus_constants(&[*constant])?)?;
        places.insert(start, end);
    }
    let place = |&index: &usize| places.get(&from[index]).copied().ok_or_else(|| missing(from[index]));
    pool.pick(&wanted.iter().map(place).collect::<Result<Vec<_>, _>>()?)
}
