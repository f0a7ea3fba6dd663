//! Which transformed value belongs to which slot.
//!
//! Transformed values are those at odd powers of a root of order `2N` ([`crate::automorphism`]). Odd powers modulo
//! `2N` are `3^j` and `-3^j`: slot `j` of row 0 and of row 1. `X -> X^g` with `g = 3^s` moves slot `j + s` to slot `j` in both
//! rows, and with `g = -1` swaps the rows.

use crate::automorphism::index;

/// The orders of slots for one degree.
#[derive(Debug)]
pub(super) struct Order {
    degree: usize,
    /// For each slot, the index of its transformed value.
    indices: Vec<u32>,
}

impl Order {
    pub(super) fn new(degree: usize) -> Self {
        let powers = std::iter::successors(Some(1), |power| Some(power * 3 % (2 * degree)));
        let first: Vec<usize> = powers.take(degree / 2).collect();
        let second = first.iter().map(|power| 2 * degree - power);
        let indices = first.iter().copied().chain(second).map(|power| index(degree, power) as u32).collect();
        Self { degree, indices }
    }

    /// Slots, row 0 and then row 1, as transformed values.
    pub(super) fn to_transformed(&self, slots: &[u64]) -> Vec<u64> {
        let mut values = vec![0; self.degree];
        self.indices.iter().zip(slots).for_each(|(&index, &slot)| values[index as usize] = slot);
        values
    }

    /// Transformed values as slots.
    pub(super) fn to_slots(&self, values: &[u64]) -> Vec<u64> {
        self.indices.iter().map(|&index| values[index as usize]).collect()
    }
}

/// The exponent `3^steps` modulo `2N` that rotates rows left.
pub(super) fn rotating(degree: usize, steps: usize) -> usize {
    (0..steps % (degree / 2)).fold(1, |power, _| power * 3 % (2 * degree))
}
