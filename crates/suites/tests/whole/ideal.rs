//! The ideal functionality of the exact modes, as `docs/reference/modes.md` states it: what a client learns of an input, whatever values
//! do inside.
//!
//! Values are signed integers, each in a ring of some width, and wrap in that ring where an operation writes them. This
//! follows widths by itself, in signed arithmetic, and knows no shares.

use privet_program::{Operation, Operator, Program, Weights, Window};
use privet_ring::tournament::{self, Ties};
use privet_ring::window::{Groups, Windows};
use privet_ring::{Field, Modulus, layout};
use privet_suites::sharing::{Options, Suite};

/// In what the functionalities of the exact modes differ.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Linear layers are modulo its prime.
    field: Option<Field>,
    /// A ReLU's result is in the program's ring at once if a later step needs it there.
    relus_widen: bool,
    /// An argmax compares in the program's ring.
    argmax_is_wide: bool,
}

impl Rules {
    /// Those of `gmw` and `fss`.
    pub fn of(options: Options, program: &Program) -> Self {
        let ring = Modulus::new(program.ring_bits());
        Self {
            field: options.is_prime().then(|| Field::over(ring).expect("a field over the ring")),
            relus_widen: options.suite == Suite::Fss,
            argmax_is_wide: false,
        }
    }

    /// Those of `fss --security malicious`.
    pub fn of_malicious() -> Self {
        Self { field: None, relus_widen: true, argmax_is_wide: true }
    }
}

/// The outputs for these inputs.
pub fn evaluate(program: &Program, weights: &Weights, inputs: &[Vec<i64>], rules: Rules) -> Vec<Vec<i64>> {
    let wide = program.ring_bits();
    let mut results: Vec<(Vec<i64>, u32)> = vec![(Vec::new(), wide); program.values().len()];
    for (input, x) in program.inputs().iter().zip(inputs) {
        results[input.value].0.clone_from(x);
    }
    for operation in program.operations() {
        let widths: Vec<u32> = operation.inputs.iter().map(|&id| results[id].1).collect();
        if in_wide_ring(operation, rules) || widths.iter().any(|&width| width != widths[0]) {
            operation.inputs.iter().for_each(|&id| results[id].1 = wide);
        }
        let bits = match operation.operator {
            Operator::Truncate { bits, width } => width.unwrap_or(wide).min(results[operation.inputs[0]].1 - bits),
            Operator::Relu if rules.relus_widen && is_read_wide(program, operation.output) => wide,
            Operator::Conv2d { .. } | Operator::Dense { .. } | Operator::Scale { .. } | Operator::Argmax { .. } => wide,
            Operator::Step { .. } | Operator::Leaves { .. } | Operator::Mul | Operator::Matmul => wide,
            _ => results[operation.inputs[0]].1,
        };
        let operands: Vec<&[i64]> = operation.inputs.iter().map(|&id| results[id].0.as_slice()).collect();
        let ring = Modulus::new(results[operation.inputs[0]].1);
        let result = compute(program, operation, weights, &operands, ring, rules.field);
        let written = Modulus::new(bits);
        results[operation.output] = (result.into_iter().map(|x| wrap(written, x)).collect(), bits);
    }
    program.outputs().iter().map(|output| results[output.value].0.clone()).collect()
}

fn wrap(ring: Modulus, x: i128) -> i64 {
    ring.signed(ring.reduce(x as u64))
}

/// Operations that read their inputs in the program's ring.
fn in_wide_ring(operation: &Operation, rules: Rules) -> bool {
    match operation.operator {
        Operator::Conv2d { .. } | Operator::Dense { .. } | Operator::Scale { .. } => rules.field.is_none(),
        Operator::Truncate { bits, .. } => bits > 0,
        Operator::ShiftLeft { .. } | Operator::AvgPool2d { .. } => true,
        Operator::Mul | Operator::Matmul => true,
        Operator::Argmax { .. } => rules.argmax_is_wide,
        _ => false,
    }
}

/// Whether something that reads this value, perhaps rearranged, is in the program's ring.
fn is_read_wide(program: &Program, value: usize) -> bool {
    let mut readers = program.operations().iter().filter(|operation| operation.inputs.contains(&value));
    readers.any(|reader| match reader.operator {
        Operator::Relu | Operator::MaxPool2d { .. } | Operator::Argmax { .. } => false,
        Operator::Step { .. } | Operator::Leaves { .. } => false,
        Operator::Conv2d { .. }
        | Operator::Dense { .. }
        | Operator::Scale { .. }
        | Operator::ShiftLeft { .. }
        | Operator::AvgPool2d { .. }
        | Operator::Mul
        | Operator::Matmul
        | Operator::Truncate { .. } => true,
        _ => is_read_wide(program, reader.output),
    })
}

/// An operation on integers; `ring`: that of its inputs, in which differences of maxima wrap.
fn compute(
    program: &Program,
    operation: &Operation,
    weights: &Weights,
    inputs: &[&[i64]],
    ring: Modulus,
    field: Option<Field>,
) -> Vec<i128> {
    let (x, shape) = (inputs[0], program.value(operation.inputs[0]).shape.as_slice());
    let output = program.value(operation.output).shape.as_slice();
    let each = |f: &dyn Fn(i128) -> i128| -> Vec<i128> { x.iter().map(|&x| f(x.into())).collect() };
    let widen = |values: Vec<i64>| -> Vec<i128> { values.into_iter().map(i128::from).collect() };
    // A product in the field is the residue next to zero; its bias is added in the ring.
    let product = |sum: i128| match field {
        None => sum,
        Some(field) => {
            let prime = i128::from(field.prime());
            let residue = sum.rem_euclid(prime);
            if residue > prime / 2 { residue - prime } else { residue }
        }
    };
    match &operation.operator {
        Operator::Conv2d { weight, weight_shape, bias, stride, padding, dilation, groups } => {
            let [outs, ins, rows, columns] = *weight_shape;
            let (w, bias) = (weights.tensor(weight), bias.as_ref().map(|bias| weights.tensor(bias)));
            let at = |place: [usize; 4], shape: &[usize]| {
                place.iter().zip(shape).fold(0, |index, (place, size)| index * size + place)
            };
            let mut out = Vec::new();
            for place in places(output) {
                let [n, o, top, left] = place;
                let mut sum = 0;
                for [_, i, row, column] in places(&[1, ins, rows, columns]) {
                    let y = (top * stride[0] + row * dilation[0]).checked_sub(padding[0]).filter(|y| *y < shape[2]);
                    let z = (left * stride[1] + column * dilation[1]).checked_sub(padding[1]).filter(|z| *z < shape[3]);
                    if let (Some(y), Some(z)) = (y, z) {
                        let channel = o / (outs / groups) * ins + i;
                        let factor = i128::from(w[at([o, i, row, column], weight_shape)]);
                        sum += factor * i128::from(x[at([n, channel, y, z], shape)]);
                    }
                }
                out.push(product(sum) + bias.map_or(0, |bias| bias[o].into()));
            }
            out
        }
        Operator::Dense { weight, weight_shape: [inner, columns], bias } => {
            let (w, bias) = (weights.tensor(weight), bias.as_ref().map(|bias| weights.tensor(bias)));
            let entry = |row: &[i64], column: usize| -> i128 {
                let terms = row.iter().enumerate().map(|(i, &x)| i128::from(x) * i128::from(w[i * columns + column]));
                product(terms.sum()) + bias.map_or(0, |bias| bias[column].into())
            };
            x.chunks(*inner).flat_map(|row| (0..*columns).map(move |column| entry(row, column))).collect()
        }
        Operator::Scale { weight, .. } => {
            let w = weights.tensor(weight);
            x.iter().zip(w).map(|(&x, &w)| product(i128::from(x) * i128::from(w))).collect()
        }
        Operator::AddConstant { bias, bias_shape } => {
            let bias = layout::broadcast(weights.tensor(bias), bias_shape, shape);
            x.iter().zip(bias).map(|(&x, bias)| i128::from(x) + i128::from(bias)).collect()
        }
        Operator::Add => x.iter().zip(inputs[1]).map(|(&a, &b)| i128::from(a) + i128::from(b)).collect(),
        Operator::Sub => x.iter().zip(inputs[1]).map(|(&a, &b)| i128::from(a) - i128::from(b)).collect(),
        Operator::Mul => x.iter().zip(inputs[1]).map(|(&a, &b)| i128::from(a) * i128::from(b)).collect(),
        Operator::Matmul => {
            let ([rows, inner], columns) = ([shape[1], shape[2]], output[2]);
            let entry = |at: usize| -> i128 {
                let (batch, row, column) = (at / (rows * columns), at / columns, at % columns);
                let term =
                    |i| i128::from(x[row * inner + i]) * i128::from(inputs[1][(batch * inner + i) * columns + column]);
                (0..inner).map(term).sum()
            };
            (0..output.iter().product()).map(entry).collect()
        }
        Operator::Negate => each(&|x| -x),
        Operator::ShiftLeft { bits } => each(&|x| x << bits),
        Operator::Truncate { bits, .. } => each(&|x| x >> bits),
        Operator::Relu => each(&|x| x.max(0)),
        Operator::Step { bits } => {
            let compared = Modulus::new((*bits).min(ring.bits()));
            each(&|x| i128::from(wrap(compared, x) >= 0))
        }
        Operator::Leaves { bits, depth } => {
            let compared = Modulus::new((*bits).min(ring.bits()));
            let nodes = (1 << depth) - 1;
            let trees = shape[1] / nodes;
            let mut out = vec![0; output[0] * output[1]];
            for (x, out) in x.chunks(shape[1]).zip(out.chunks_mut(output[1])) {
                for tree in 0..trees {
                    let step = |way: usize, level: u32| {
                        let node = x[((1 << level) - 1 + way) * trees + tree];
                        way | usize::from(wrap(compared, node.into()) < 0) << level
                    };
                    out[(0..*depth).fold(0, step) * trees + tree] = 1;
                }
            }
            out
        }
        Operator::MaxPool2d { window } => {
            let planes = shape[0] * shape[1];
            let (mut values, mut plane) =
                (x.iter().map(|&x| ring.reduce(x as u64)).collect::<Vec<_>>(), shape[2] * shape[3]);
            for groups in windows(shape, output, window).maxima() {
                let groups = Groups::on_planes(groups.clone(), planes, std::mem::replace(&mut plane, groups.len()));
                let gains = |differences: &[u64]| {
                    Ok::<_, ()>(differences.iter().map(|&d| ring.signed(d).max(0).cast_unsigned()).collect())
                };
                values = tournament::maxima(&values, &groups, ring, gains).expect("nothing fails");
            }
            values.into_iter().map(|x| ring.signed(x).into()).collect()
        }
        Operator::AvgPool2d { window, factors } => {
            let elements = windows(shape, output, window).elements();
            let plane = |x: &[i64]| -> Vec<i128> {
                let sum = |(i, group): (usize, &Vec<usize>)| -> i128 {
                    let sum: i128 = group.iter().map(|&at| i128::from(x[at])).sum();
                    sum * i128::from(factors[i % factors.len()])
                };
                elements.iter().enumerate().map(sum).collect()
            };
            x.chunks(shape[2] * shape[3]).flat_map(plane).collect()
        }
        Operator::Reshape => widen(x.to_vec()),
        Operator::Broadcast => widen(layout::broadcast(x, shape, output)),
        Operator::Transpose { perm } => widen(layout::transpose(x, shape, perm)),
        Operator::Slice { starts, steps, .. } => widen(layout::slice(x, shape, starts, steps, output)),
        Operator::Concat { axis } => {
            let shapes = operation.inputs.iter().map(|&id| program.value(id).shape.as_slice());
            widen(layout::concat(&inputs.iter().copied().zip(shapes).collect::<Vec<_>>(), *axis))
        }
        Operator::Pad { before, constant, .. } => widen(layout::pad(x, shape, before, output, *constant)),
        Operator::Argmax { axis, select_last, .. } => {
            let inner: usize = shape[axis + 1..].iter().product();
            let group = |index: usize| -> Vec<i64> {
                (0..shape[*axis]).map(|i| x[(index / inner * shape[*axis] + i) * inner + index % inner]).collect()
            };
            let ties = if *select_last { Ties::Last } else { Ties::First };
            (0..x.len() / shape[*axis]).map(|index| champion(&group(index), ties, ring)).collect()
        }
        other => unreachable!("{} is not an operation of these suites", other.name()),
    }
}

/// The place of the element that wins a tournament whose differences wrap in `ring`.
fn champion(group: &[i64], ties: Ties, ring: Modulus) -> i128 {
    let mut contenders: Vec<usize> = (0..group.len()).collect();
    while contenders.len() > 1 {
        let winner = |pair: &[usize]| match *pair {
            [a, b] => {
                let [ahead, behind] = if ties == Ties::First { [a, b] } else { [b, a] };
                let difference = i128::from(group[ahead]) - i128::from(group[behind]);
                if wrap(ring, difference) >= 0 { ahead } else { behind }
            }
            _ => pair[0],
        };
        contenders = contenders.chunks(2).map(winner).collect();
    }
    contenders[0] as i128
}

fn windows(input: &[usize], output: &[usize], window: &Window) -> Windows {
    Windows {
        image: [input[2], input[3]],
        positions: [output[2], output[3]],
        kernel: window.kernel,
        stride: window.stride,
        origin: [window.padding[0], window.padding[1]],
        dilation: window.dilation,
    }
}

/// All places of a tensor of four axes, in order.
fn places(shape: &[usize]) -> impl Iterator<Item = [usize; 4]> + '_ {
    let [_, b, c, d] = [0, 1, 2, 3].map(|axis| shape[axis]);
    (0..shape.iter().product()).map(move |i| [i / (b * c * d), i / (c * d) % b, i / d % c, i % d])
}
