//! `floor(x / 2^bits)`.

use super::{Node, Rules};

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

    /// What lies above the result's ring is never looked at.
    fn reads(&self, _result: Option<u32>) -> Option<u32> {
        self.width.map(|width| width + self.bits)
    }

    /// It drops them with the others.
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }
}
