//! `max(x, 0)`.

use privet_gmw::Sign;

use super::{Node, Rules};

/// A ReLU.
pub(crate) struct Relu<'a>(pub Node<'a>);

impl Rules for Relu<'_> {
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }

    /// Its top bit is clear.
    fn sign(&self, _inputs: &[Sign]) -> Sign {
        Sign::NonNegative
    }
}
