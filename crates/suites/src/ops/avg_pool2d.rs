//! Sums over windows of images, times public factors.

use super::{Algebra, Bounds, Local, Pooling, Rules, widest};

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

    /// Those of a whole window. One at the edge has fewer elements.
    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let ([low, high], [rows, columns]) = (inputs[0]?, self.pooling.window.kernel);
        let count = i64::try_from(rows * columns).ok()?;
        let ends = |&factor: &i64| {
            let factor = factor.checked_mul(count)?;
            let [a, b] = [low.min(0).checked_mul(factor)?, high.max(0).checked_mul(factor)?];
            Some([a.min(b), a.max(b)])
        };
        widest(&self.factors.iter().map(ends).collect::<Vec<_>>())
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
