//! Operations that move elements: each element of the result is one of an input's, or a public constant.

use privet_gmw::Sign;
use privet_program::Operator;
use privet_ring::layout;

use super::{Algebra, Bounds, Local, Node, Rules, chosen, widest};

/// A reshape, broadcast, transposition, slice, concatenation or padding.
pub(crate) struct Movement<'a>(Node<'a>);

impl<'a> Movement<'a> {
    /// The movement that `node` is, if it is one.
    pub(super) fn of(node: Node<'a>) -> Option<Self> {
        let operator = &node.operation.operator;
        let moves = matches!(operator, Operator::Reshape | Operator::Broadcast | Operator::Concat { .. })
            || matches!(operator, Operator::Transpose { .. } | Operator::Slice { .. } | Operator::Pad { .. });
        moves.then_some(Self(node))
    }

    /// The result's elements, of those of all inputs; `fill`: the constant.
    pub fn rearrange<T: Copy>(&self, inputs: &[&[T]], fill: T) -> Vec<T> {
        let (x, from, to) = (inputs[0], &self.0.input().shape, &self.0.output().shape);
        match &self.0.operation.operator {
            Operator::Broadcast => layout::broadcast(x, from, to),
            Operator::Transpose { perm } => layout::transpose(x, from, perm),
            Operator::Slice { starts, steps, .. } => layout::slice(x, from, starts, steps, to),
            Operator::Concat { axis } => {
                let parts: Vec<_> = inputs.iter().copied().zip(self.0.input_shapes()).collect();
                layout::concat(&parts, *axis)
            }
            Operator::Pad { before, .. } => layout::pad(x, from, before, to, fill),
            _ => x.to_vec(),
        }
    }

    /// The constant, if there is one.
    pub fn fill(&self) -> Option<i64> {
        match self.0.operation.operator {
            Operator::Pad { constant, .. } => Some(constant),
            _ => None,
        }
    }
}

/// Where each element of the result comes from: indices into inputs of such lengths, one behind the other; behind them all the
/// constant.
pub(crate) fn sources(lengths: impl Iterator<Item = usize>, movement: &Movement) -> Vec<usize> {
    let mut end = 0;
    let places_of = |len| {
        end += len;
        (end - len..end).collect::<Vec<_>>()
    };
    let places: Vec<Vec<usize>> = lengths.map(places_of).collect();
    movement.rearrange(&places.iter().map(AsRef::as_ref).collect::<Vec<_>>(), end)
}

impl Rules for Movement<'_> {
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        self.fill().is_none()
    }

    fn reads(&self, result: Option<u32>) -> Option<u32> {
        match self.0.operation.operator {
            Operator::Concat { .. } | Operator::Pad { .. } => None,
            _ => result,
        }
    }

    fn takes_any_ring(&self, result: bool) -> bool {
        result && self.fill().is_none()
    }

    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        match self.fill() {
            None => widest(inputs),
            Some(_) => None,
        }
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        match self.fill() {
            None | Some(0) => chosen(inputs),
            Some(_) => Sign::Unknown,
        }
    }
}

impl<A: Algebra> Local<A> for Movement<'_> {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        match self.0.keeps_order() {
            true => algebra.keep(inputs[0]),
            false => algebra.rearrange(inputs, self),
        }
    }
}
