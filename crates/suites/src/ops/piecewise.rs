//! A public function of each element by lines.

use std::sync::OnceLock;

use privet_program::Step;
use privet_ring::{Lines, Modulus};

use super::{Bounds, Node, Rules};
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
    /// Slopes and offsets, once somebody asks.
    pub table: OnceLock<[Vec<i64>; 2]>,
}

impl Piecewise<'_> {
    /// The binary logarithm of a line's arguments.
    pub fn step_bits(&self) -> u32 {
        self.bits - self.index_bits
    }

    /// Slopes and offsets of all lines.
    fn table(&self) -> &[Vec<i64>; 2] {
        let lines = || Function::new(self.node, self.steps).lines(self.low, [self.bits, self.index_bits]);
        self.table.get_or_init(lines)
    }

    /// The table in `ring`, which follows from the program alone. Above it the function goes on if it `rises`.
    pub fn lines(&self, rises: bool, ring: Modulus) -> Lines {
        let [slopes, offsets] = self.table();
        Lines::new(slopes, offsets, self.step_bits(), rises, ring)
    }
}

impl Rules for Piecewise<'_> {
    /// Values at both ends of all lines, and of a function that rises what it reaches at the ring's largest number. Where that is taken to be
    /// above the table without a look at its sign, it might be anything.
    fn bounds(&self, _inputs: &[Bounds], width: u32) -> Bounds {
        let [slopes, offsets] = self.table();
        let last = (1 << self.step_bits()) - 1;
        let end = |(&slope, &offset): (&i64, &i64)| offset.checked_add(slope.checked_mul(last)?);
        let ends = slopes.iter().zip(offsets).map(end).collect::<Option<Vec<_>>>()?;
        let [low, mut high] = [offsets.iter().chain(&ends).min()?, offsets.iter().chain(&ends).max()?].map(|end| *end);
        if self.rises {
            let over = (1_i64 << (width.max(self.bits + 2) - 1)) - (1 << self.bits);
            let risen = over.checked_mul(1 << self.step_bits()).and_then(|over| ends.last()?.checked_add(over));
            high = high.max(risen.filter(|_| !self.nonnegative)?);
        }
        Some([low, high])
    }

    /// The fewer bits the better: the ring of the result follows from what reads it.
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use privet_program::{Operator, Program};

    use super::*;

    #[test]
    fn bounds_are_the_least_and_the_largest_value_of_the_whole_ring() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smooth/program.json");
        let program = Program::parse(&std::fs::read(path).expect("a fixture")).expect("a program");
        let functions =
            Node::all(&program).filter(|node| matches!(node.operation.operator, Operator::Piecewise { .. }));
        for node in functions {
            let function = node.piecewise().expect("a function by lines");
            let [slopes, offsets] = function.table();
            for width in [function.bits, function.bits + 2, function.bits + 5] {
                let half = 1 << (width.max(function.bits + 2) - 1);
                let value = |x: i64| {
                    let position = x.clamp(0, (1 << function.bits) - 1);
                    let (line, distance) =
                        ((position >> function.step_bits()) as usize, position & ((1 << function.step_bits()) - 1));
                    let over = if function.rises { (x - position).max(0) << function.step_bits() } else { 0 };
                    slopes[line] * distance + offsets[line] + over
                };
                let [low, high] = function.bounds(&[], width).expect("bounds");
                assert_eq!(
                    [low, high],
                    [
                        (-half..half).map(value).min().expect("a value"),
                        (-half..half).map(value).max().expect("a value")
                    ]
                );
            }
            // Where its argument is taken not to be negative, nothing is known of what rises.
            let trusting = Piecewise { nonnegative: true, ..function };
            assert_eq!(trusting.bounds(&[], 20).is_none(), trusting.rises);
        }
    }
}
