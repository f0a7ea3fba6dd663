//! Sums and what comes close to them: element by element, and linear in the shares.

use super::{Algebra, Bounds, Local, Node, Rules};

/// What takes whole values, without a constant.
pub(super) enum Additive {
    /// The sum of two values.
    Add,
    /// The difference of two values.
    Sub,
    /// `-x`.
    Negate,
    /// `x * 2^bits`.
    ShiftLeft { bits: u32 },
}

impl Rules for Additive {
    fn computes_in_ring(&self) -> bool {
        matches!(self, Self::ShiftLeft { .. })
    }

    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let [a, b] = inputs[0]?;
        let [low, high] = match self {
            Self::Add => inputs[1].map(|[c, d]| [a.checked_add(c), b.checked_add(d)])?,
            Self::Sub => inputs[1].map(|[c, d]| [a.checked_sub(d), b.checked_sub(c)])?,
            Self::Negate => [b.checked_neg(), a.checked_neg()],
            Self::ShiftLeft { bits } => [a, b].map(|bound| bound.checked_mul(1_i64.checked_shl(*bits)?)),
        };
        Some([low?, high?])
    }

    /// Two would be off by more than they can round.
    fn takes_guard_bits(&self, guarded: usize) -> bool {
        matches!(self, Self::Add | Self::Sub) && guarded == 1
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for Additive {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        match self {
            Self::Add => algebra.add(inputs[0], inputs[1]),
            Self::Sub => algebra.sub(inputs[0], inputs[1]),
            Self::Negate => algebra.negate(inputs[0]),
            Self::ShiftLeft { bits } => algebra.shift_left(inputs[0], *bits),
        }
    }
}

/// The sum with a private constant that broadcasts to the input's shape.
pub(super) struct AddConstant<'a> {
    pub node: Node<'a>,
    pub bias: &'a str,
    pub bias_shape: &'a [usize],
}

impl Rules for AddConstant<'_> {
    fn reads(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for AddConstant<'_> {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], constant: Option<&A::Constant>) -> A::Owned {
        algebra.add_constant(inputs[0], constant, [self.bias_shape, &self.node.input().shape])
    }

    fn constant(&self) -> Option<(&str, usize)> {
        Some((self.bias, self.bias_shape.iter().product()))
    }
}
