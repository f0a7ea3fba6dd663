//! Which transformed value belongs to which slot, and where automorphisms send it.
//!
//! Index `i` of a transformed polynomial is its value at the power `2 rev(i) + 1` of a root of order `2N`. Odd powers modulo
//! `2N` are `3^j` and `-3^j`: slot `j` of row 0 and of row 1. `X -> X^g` with `g = 3^s` moves slot `j + s` to slot `j` in both
//! rows, and with `g = -1` swaps the rows.

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

    /// For each index of a transformed polynomial, the index whose value `X -> X^g` brings there.
    pub(super) fn sources(&self, g: usize) -> Vec<u32> {
        let bits = self.degree.trailing_zeros();
        let power = |i: usize| 2 * (i.reverse_bits() >> (usize::BITS - bits)) + 1;
        (0..self.degree).map(|i| index(self.degree, power(i) * g % (2 * self.degree)) as u32).collect()
    }
}

/// The index of the value at an odd power.
fn index(degree: usize, power: usize) -> usize {
    ((power - 1) / 2).reverse_bits() >> (usize::BITS - degree.trailing_zeros())
}

/// The exponent `3^steps` modulo `2N` that rotates rows left.
pub(super) fn rotating(degree: usize, steps: usize) -> usize {
    (0..steps % (degree / 2)).fold(1, |power, _| power * 3 % (2 * degree))
}
