//! `max(x, 0)`.

use privet_gmw::Sign;

use super::{Bounds, Node, Rules};

/// A ReLU.
pub(crate) struct Relu<'a>(pub Node<'a>);

impl Rules for Relu<'_> {
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }

    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        inputs[0].map(|bounds| bounds.map(|bound| bound.max(0)))
    }

    /// Its top bit is clear.
    fn sign(&self, _inputs: &[Sign]) -> Sign {
        Sign::NonNegative
    }
}
