//! A public function of each element by lines.

use privet_program::Step;
use privet_ring::{Lines, Modulus};

use super::{Node, Rules};
use crate::stream::ops::function::Function;

/// A function by `2^index_bits` lines over `bits` bits from `low` on.
pub(crate) struct Piecewise<'a> {
    pub node: Node<'a>,
    pub steps: &'a [Step],
    pub low: i64,
    pub bits: u32,
    pub index_bits: u32,
}

impl Piecewise<'_> {
    /// The table, which follows from the program alone.
    pub fn lines(&self) -> Lines {
        let [slopes, offsets] = Function::new(self.node, self.steps).lines(self.low, [self.bits, self.index_bits]);
        Lines::new(&slopes, &offsets, Modulus::new(self.node.program.ring_bits()))
    }
}

impl Rules for Piecewise<'_> {
    /// So that it has the bits that the table is over, whatever the program.
    fn computes_in_ring(&self) -> bool {
        true
    }
}
