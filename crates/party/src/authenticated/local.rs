//! Operations on authenticated values without messages.

use privet_program::{Operation, Operator, Program};
use privet_ring::layout;
use privet_shark::{Key, Values};

use crate::layers::window_groups;

/// `constant`: the private tensor, if the operation adds one.
pub(super) fn evaluate(
    key: &Key,
    program: &Program,
    operation: &Operation,
    inputs: &[&Values],
    constant: Option<&Values>,
) -> Values {
    let shape = |value: usize| program.value(value).shape.as_slice();
    let (x, from) = (inputs[0], shape(operation.inputs[0]));
    let to = shape(operation.output);
    let rearranged =
        |rearrange: &dyn Fn(&[usize]) -> Vec<usize>| x.gather(&rearrange(&(0..x.len()).collect::<Vec<_>>()));
    match &operation.operator {
        Operator::AddConstant { bias_shape, .. } => {
            let constant = constant.expect("the tensor that is added");
            let places: Vec<usize> = (0..constant.len()).collect();
            x.add(&constant.gather(&layout::broadcast(&places, bias_shape, from)))
        }
        Operator::Add => x.add(inputs[1]),
        Operator::Sub => x.sub(inputs[1]),
        Operator::Negate => x.negate(),
        Operator::ShiftLeft { bits } => x.scale(1 << bits),
        Operator::AvgPool2d { window, factors } => {
            let groups: Vec<Vec<usize>> =
                window_groups(program, operation, window).iter().map(Iterator::collect).collect();
            let factors: Vec<u64> = (0..groups.len()).map(|i| factors[i % factors.len()] as u64).collect();
            x.sums(&groups).weigh(&factors)
        }
        Operator::Reshape | Operator::Truncate { bits: 0 } => x.clone(),
        Operator::Broadcast => rearranged(&|places| layout::broadcast(places, from, to)),
        Operator::Transpose { perm } => rearranged(&|places| layout::transpose(places, from, perm)),
        Operator::Slice { starts, steps, .. } => rearranged(&|places| layout::slice(places, from, starts, steps, to)),
        Operator::Concat { axis } => {
            let mut all = Values::default();
            let mut parts = Vec::new();
            for (x, &id) in inputs.iter().zip(&operation.inputs) {
                parts.push(((all.len()..all.len() + x.len()).collect::<Vec<_>>(), shape(id)));
                all.extend(x);
            }
            let parts: Vec<_> = parts.iter().map(|(places, shape)| (places.as_slice(), *shape)).collect();
            all.gather(&layout::concat(&parts, *axis))
        }
        Operator::Pad { before, constant, .. } => {
            let mut all = x.clone();
            all.extend(&Values::public(key, &[*constant as u64]));
            let places: Vec<usize> = (0..x.len()).collect();
            all.gather(&layout::pad(&places, from, before, to, x.len()))
        }
        other => unreachable!("{} is not local", other.name()),
    }
}
