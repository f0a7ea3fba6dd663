//! Sums and what comes close to them: element by element, and linear in the shares.

use super::{Algebra, Bounds, Local, Node, Rules};

/// The sum of two values.
pub(super) struct Add;

impl Rules for Add {
    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let ([a, b], [c, d]) = (inputs[0]?, inputs[1]?);
        Some([a.checked_add(c)?, b.checked_add(d)?])
    }

    /// Two would be off by more than they can round.
    fn takes_guard_bits(&self, guarded: usize) -> bool {
        guarded == 1
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for Add {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.add(inputs[0], inputs[1])
    }
}

/// The difference of two values.
pub(super) struct Sub;

impl Rules for Sub {
    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let ([a, b], [c, d]) = (inputs[0]?, inputs[1]?);
        Some([a.checked_sub(d)?, b.checked_sub(c)?])
    }

    /// Two would be off by more than they can round.
    fn takes_guard_bits(&self, guarded: usize) -> bool {
        guarded == 1
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for Sub {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.sub(inputs[0], inputs[1])
    }
}

/// `-x`.
pub(super) struct Negate;

impl Rules for Negate {
    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let [low, high] = inputs[0]?;
        Some([high.checked_neg()?, low.checked_neg()?])
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for Negate {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.negate(inputs[0])
    }
}

/// `x * 2^bits`.
pub(super) struct ShiftLeft {
    pub bits: u32,
}

impl Rules for ShiftLeft {
    fn computes_in_ring(&self) -> bool {
        true
    }

    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let [low, high] = inputs[0]?.map(|bound| bound.checked_mul(1_i64.checked_shl(self.bits)?));
        Some([low?, high?])
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for ShiftLeft {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.shift_left(inputs[0], self.bits)
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
