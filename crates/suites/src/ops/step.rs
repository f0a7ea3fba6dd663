//! Signs as numbers, and the leaves of complete trees that they lead to.

use std::borrow::Cow;

use privet_gmw::Sign;

use super::{Node, Rules};

/// `x >= 0`.
pub(crate) struct Step<'a> {
    pub node: Node<'a>,
    /// Width of what is compared.
    pub bits: u32,
}

impl Rules for Step<'_> {
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }

    /// What a linear layer may be off by is rounded away before the comparison, which reads no more bits than it would.
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        true
    }

    /// It is 0 or 1.
    fn sign(&self, _inputs: &[Sign]) -> Sign {
        Sign::NonNegative
    }
}

/// Which leaf each complete tree ends in.
pub(crate) struct Leaves<'a> {
    pub step: Step<'a>,
    pub depth: u32,
}

impl Leaves<'_> {
    /// How many trees there are, in all rows.
    pub fn trees(&self) -> usize {
        self.step.node.input().len() / ((1 << self.depth) - 1)
    }

    /// Nodes `[rows, node, tree]` as a protocol takes them, `[node, rows, tree]`.
    pub fn gathered<'x>(&self, x: &'x [u64]) -> Cow<'x, [u64]> {
        self.swapped(x, [self.rows(), (1 << self.depth) - 1])
    }

    /// Leaves `[leaf, rows, tree]` as the program has them, `[rows, leaf, tree]`.
    pub fn scattered<'x>(&self, leaves: &'x [u64]) -> Cow<'x, [u64]> {
        self.swapped(leaves, [1 << self.depth, self.rows()])
    }

    fn rows(&self) -> usize {
        self.step.node.input().shape[0]
    }

    /// `[first, second, tree]` as `[second, first, tree]`.
    fn swapped<'x>(&self, x: &'x [u64], [first, second]: [usize; 2]) -> Cow<'x, [u64]> {
        if self.rows() == 1 {
            return Cow::Borrowed(x);
        }
        let trees = self.trees() / self.rows();
        let place = |at: usize| &x[(at % first * second + at / first) * trees..][..trees];
        Cow::Owned((0..first * second).flat_map(place).copied().collect())
    }
}

impl Rules for Leaves<'_> {
    fn needs_ring(&self, result: bool) -> bool {
        self.step.needs_ring(result)
    }

    fn takes_guard_bits(&self, guarded: usize) -> bool {
        self.step.takes_guard_bits(guarded)
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        self.step.sign(inputs)
    }
}
