//! What a suite's shares can do without a message.

use privet_program::Weights;
use privet_ring::window::Groups;
use privet_ring::{Modulus, layout};

use super::{Local, Movement};

/// Linear arithmetic on a kind of shares.
pub(crate) trait Algebra: Sized {
    /// Shares of a tensor.
    type Shares: ?Sized;

    /// Shares of a tensor that an operation makes.
    type Owned;

    /// A private tensor as operations add it.
    type Constant: ?Sized;

    /// The same elements.
    fn keep(&self, x: &Self::Shares) -> Self::Owned;

    /// Element by element.
    fn add(&self, x: &Self::Shares, y: &Self::Shares) -> Self::Owned;

    /// Element by element.
    fn sub(&self, x: &Self::Shares, y: &Self::Shares) -> Self::Owned;

    fn negate(&self, x: &Self::Shares) -> Self::Owned;

    fn shift_left(&self, x: &Self::Shares, bits: u32) -> Self::Owned;

    /// Adds a private tensor, broadcast from the first shape to the second; a party that has none of it adds nothing.
    fn add_constant(&self, x: &Self::Shares, constant: Option<&Self::Constant>, shapes: [&[usize]; 2]) -> Self::Owned;

    /// The sum of each group, times public factors that take turns.
    fn sum_windows(&self, x: &Self::Shares, groups: &Groups, factors: &[i64]) -> Self::Owned;

    /// Elements in another place.
    fn rearrange(&self, inputs: &[&Self::Shares], movement: &Movement) -> Self::Owned;
}

/// Additive shares modulo a power of two.
pub(crate) struct InRing {
    /// The ring.
    pub ring: Modulus,
    /// At the server alone, which adds private and public constants to its share.
    pub adds_constants: bool,
}

impl InRing {
    /// A local operation on a party's own share in `ring`; `weights`: at the server alone.
    pub fn run(ring: Modulus, operation: &dyn Local<Self>, inputs: &[&[u64]], weights: Option<&Weights>) -> Vec<u64> {
        let constant = weights.zip(operation.constant()).map(|(weights, (name, _))| weights.tensor(name));
        operation.evaluate(&Self { ring, adds_constants: weights.is_some() }, inputs, constant)
    }
}

impl Algebra for InRing {
    type Shares = [u64];
    type Owned = Vec<u64>;
    type Constant = [i64];

    fn keep(&self, x: &[u64]) -> Vec<u64> {
        x.to_vec()
    }

    fn add(&self, x: &[u64], y: &[u64]) -> Vec<u64> {
        self.ring.add(x, y)
    }

    fn sub(&self, x: &[u64], y: &[u64]) -> Vec<u64> {
        self.ring.sub(x, y)
    }

    fn negate(&self, x: &[u64]) -> Vec<u64> {
        x.iter().map(|x| self.ring.reduce(x.wrapping_neg())).collect()
    }

    fn shift_left(&self, x: &[u64], bits: u32) -> Vec<u64> {
        x.iter().map(|x| self.ring.reduce(x << bits)).collect()
    }

    fn add_constant(&self, x: &[u64], constant: Option<&[i64]>, [from, to]: [&[usize]; 2]) -> Vec<u64> {
        let Some(constant) = constant else { return x.to_vec() };
        let constant = layout::broadcast(constant, from, to);
        x.iter().zip(constant).map(|(x, constant)| self.ring.reduce(x.wrapping_add(constant as u64))).collect()
    }

    fn sum_windows(&self, x: &[u64], groups: &Groups, factors: &[i64]) -> Vec<u64> {
        privet_gmw::sum_windows(x, groups, |i| factors[i % factors.len()], self.ring)
    }

    fn rearrange(&self, inputs: &[&[u64]], movement: &Movement) -> Vec<u64> {
        let fill = movement.fill().filter(|_| self.adds_constants);
        movement.rearrange(inputs, fill.map_or(0, |fill| self.ring.reduce(fill as u64)))
    }
}
