//! Where automorphisms send transformed values.
//!
//! Index `i` of a transformed polynomial is its value at the power `2 rev(i) + 1` of a root of order `2N`, and `X -> X^g` brings the
//! value at the power `g` times as large there.

/// The index of the value at an odd power.
pub(crate) fn index(degree: usize, power: usize) -> usize {
    ((power - 1) / 2).reverse_bits() >> (usize::BITS - degree.trailing_zeros())
}

/// For each index of a transformed polynomial, the index whose value `X -> X^g` brings there.
pub(crate) fn sources(degree: usize, g: usize) -> Vec<u32> {
    let bits = degree.trailing_zeros();
    let power = |i: usize| 2 * (i.reverse_bits() >> (usize::BITS - bits)) + 1;
    (0..degree).map(|i| index(degree, power(i) * g % (2 * degree)) as u32).collect()
}
