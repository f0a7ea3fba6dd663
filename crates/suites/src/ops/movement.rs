//! Operations that move elements: each element of the result is one of an input's, or a public constant.

use privet_gmw::Sign;
use privet_ring::layout;

use super::{Algebra, Local, Node, Rules, chosen};

/// Where elements go.
pub(crate) trait Movement {
    /// The result's elements, of those of all inputs; `fill`: the constant.
    fn rearrange<T: Copy>(&self, inputs: &[&[T]], fill: T) -> Vec<T>;

    /// The constant, if there is one.
    fn fill(&self) -> Option<i64> {
        None
    }
}

/// Where each element of the result comes from: indices into inputs of such lengths, one behind the other; behind them all the
/// constant.
pub(crate) fn sources(lengths: impl Iterator<Item = usize>, movement: &impl Movement) -> Vec<usize> {
    let mut end = 0;
    let places_of = |len| {
        end += len;
        (end - len..end).collect::<Vec<_>>()
    };
    let places: Vec<Vec<usize>> = lengths.map(places_of).collect();
    movement.rearrange(&places.iter().map(AsRef::as_ref).collect::<Vec<_>>(), end)
}

impl<A: Algebra, M: Movement + Rules> Local<A> for M {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.rearrange(inputs, self)
    }
}

/// The same elements in another shape.
pub(super) struct Reshape;

impl Rules for Reshape {
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }

    fn reads(&self, result: Option<u32>) -> Option<u32> {
        result
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        chosen(inputs)
    }
}

impl<A: Algebra> Local<A> for Reshape {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.keep(inputs[0])
    }
}

/// Numpy broadcasting.
pub(super) struct Broadcast<'a>(pub Node<'a>);

impl Rules for Broadcast<'_> {
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }

    fn reads(&self, result: Option<u32>) -> Option<u32> {
        result
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        chosen(inputs)
    }
}

impl Movement for Broadcast<'_> {
    fn rearrange<T: Copy>(&self, inputs: &[&[T]], _fill: T) -> Vec<T> {
        layout::broadcast(inputs[0], &self.0.input().shape, &self.0.output().shape)
    }
}

/// Axes in another order.
pub(super) struct Transpose<'a> {
    pub node: Node<'a>,
    pub perm: &'a [usize],
}

impl Rules for Transpose<'_> {
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }

    fn reads(&self, result: Option<u32>) -> Option<u32> {
        result
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        chosen(inputs)
    }
}

impl Movement for Transpose<'_> {
    fn rearrange<T: Copy>(&self, inputs: &[&[T]], _fill: T) -> Vec<T> {
        layout::transpose(inputs[0], &self.node.input().shape, self.perm)
    }
}

/// Some elements of each axis.
pub(super) struct Slice<'a> {
    pub node: Node<'a>,
    pub starts: &'a [i64],
    pub steps: &'a [i64],
}

impl Rules for Slice<'_> {
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }

    fn reads(&self, result: Option<u32>) -> Option<u32> {
        result
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        chosen(inputs)
    }
}

impl Movement for Slice<'_> {
    fn rearrange<T: Copy>(&self, inputs: &[&[T]], _fill: T) -> Vec<T> {
        layout::slice(inputs[0], &self.node.input().shape, self.starts, self.steps, &self.node.output().shape)
    }
}

/// Inputs joined along an axis.
pub(super) struct Concat<'a> {
    pub node: Node<'a>,
    pub axis: usize,
}

impl Rules for Concat<'_> {
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        chosen(inputs)
    }
}

impl Movement for Concat<'_> {
    fn rearrange<T: Copy>(&self, inputs: &[&[T]], _fill: T) -> Vec<T> {
        let parts: Vec<_> = inputs.iter().copied().zip(self.node.input_shapes()).collect();
        layout::concat(&parts, self.axis)
    }
}

/// The input amid a constant.
pub(super) struct Pad<'a> {
    pub node: Node<'a>,
    pub before: &'a [usize],
    pub constant: i64,
}

impl Rules for Pad<'_> {
    fn sign(&self, inputs: &[Sign]) -> Sign {
        if self.constant == 0 { chosen(inputs) } else { Sign::Unknown }
    }
}

impl Movement for Pad<'_> {
    fn rearrange<T: Copy>(&self, inputs: &[&[T]], fill: T) -> Vec<T> {
        layout::pad(inputs[0], &self.node.input().shape, self.before, &self.node.output().shape, fill)
    }

    fn fill(&self) -> Option<i64> {
        Some(self.constant)
    }
}
