//! `floor(x / 2^bits)`.

use super::{Bounds, Node, Rules};

/// A truncation.
pub(crate) struct Truncate<'a> {
    pub node: Node<'a>,
    pub bits: u32,
    /// The ring that the result fits, if that is known.
    pub width: Option<u32>,
}

impl Rules for Truncate<'_> {
    /// A second drop of bits would leave too little room for comparisons.
    fn computes_in_ring(&self) -> bool {
        self.bits > 0
    }

    /// Some bits must be left.
    fn takes(&self, width: u32) -> bool {
        width > self.bits + 1
    }

    fn takes_any_ring(&self, result: bool) -> bool {
        self.bits > 0 && result
    }

    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        inputs[0].map(|bounds| bounds.map(|bound| bound >> self.bits))
    }

    /// What lies above the result's ring is never looked at.
    fn reads(&self, _result: Option<u32>) -> Option<u32> {
        self.width.map(|width| width + self.bits)
    }

    /// It drops them with the others.
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }
}
