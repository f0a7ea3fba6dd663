//! Sums over windows of images, times public factors.

use super::{Algebra, Local, Pooling, Rules};

/// An average pooling.
pub(super) struct AvgPool2d<'a> {
    pub pooling: Pooling<'a>,
    /// One for all positions, or one for each.
    pub factors: &'a [i64],
}

impl Rules for AvgPool2d<'_> {
    fn computes_in_ring(&self) -> bool {
        true
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        result
    }
}

impl<A: Algebra> Local<A> for AvgPool2d<'_> {
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], _constant: Option<&A::Constant>) -> A::Owned {
        algebra.sum_windows(inputs[0], &self.pooling.groups(), self.factors)
    }

    fn indices(&self) -> usize {
        self.pooling.node.input().len()
    }

    fn factors(&self) -> &[i64] {
        self.factors
    }
}
