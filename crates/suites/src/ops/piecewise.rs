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
    /// Whether it goes on above like its argument.
    pub rises: bool,
    /// Whether no argument is below `low`.
    pub nonnegative: bool,
}

impl Piecewise<'_> {
    /// The binary logarithm of a line's arguments.
    pub fn step_bits(&self) -> u32 {
        self.bits - self.index_bits
    }

    /// The table in `ring`, which follows from the program alone. Above it the function goes on if it `rises`.
    pub fn lines(&self, rises: bool, ring: Modulus) -> Lines {
        let [slopes, offsets] = Function::new(self.node, self.steps).lines(self.low, [self.bits, self.index_bits]);
        Lines::new(&slopes, &offsets, self.step_bits(), rises, ring)
    }
}

impl Rules for Piecewise<'_> {
    /// The fewer bits the better: the ring of the result follows from what reads it.
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }
}
