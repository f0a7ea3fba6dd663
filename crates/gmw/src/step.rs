//! Steps and complete decision trees: comparisons whose bits become numbers.
//!
//! A bit shared by exclusive or is `b_C + b_S - 2 b_C b_S` as a number, one product of two privately held bits. A tree compares
//! all its nodes at once, multiplies the bits along its paths level by level while they are bits, and makes numbers of the
//! leaves alone: `2^d - 2` ANDs for `2^d` leaves, because the right child of a node is reached where the node is and the left one
//! is not. What is multiplied does not depend on the tree.

use privet_ring::{Bits, Modulus};

use crate::{Error, Party, and, bit_product, is_non_negative};

/// Shares in `to` of 1 where `x >= 0` and of 0 elsewhere; `x`: this party's share in `ring`, `[n]`.
pub fn step(party: &mut Party<'_>, x: &[u64], ring: Modulus, to: Modulus) -> Result<Vec<u64>, Error> {
    let bits = is_non_negative(party, x, ring)?;
    lift(party, &bits, to)
}

/// Shares in `to` of 1 for the leaf that each of `n` complete trees ends in and of 0 for its others, `[2^depth, n]`; `x`: this
/// party's share in `ring` of all nodes, `[2^depth - 1, n]`, where `x >= 0` goes left.
///
/// Nodes come level by level. The number of a node within its level has bit `j` set if the way to it goes right at level `j`.
pub fn leaves(party: &mut Party<'_>, x: &[u64], depth: u32, ring: Modulus, to: Modulus) -> Result<Vec<u64>, Error> {
    let trees = x.len() / ((1 << depth) - 1);
    let bits = is_non_negative(party, x, ring)?;
    let mut reached = bits.slice(0, trees);
    let right = if party.is_server() { reached.not() } else { reached.clone() };
    reached.extend(&right);
    for level in 1..depth {
        let left = and(party, &reached, &bits.slice(trees * ((1 << level) - 1), trees << level))?;
        reached.xor_assign(&left);
        let right = std::mem::replace(&mut reached, left);
        reached.extend(&right);
    }
    lift(party, &reached, to)
}

/// Shares in `to` of shared bits as numbers.
fn lift(party: &mut Party<'_>, bits: &Bits, to: Modulus) -> Result<Vec<u64>, Error> {
    // Twice a product is right in `to` if the product is right in a ring that is a bit smaller.
    let mut values = bit_product(party, bits, Modulus::new(to.bits() - 1))?;
    for (value, bit) in values.iter_mut().zip(bits.iter()) {
        *value = to.reduce(u64::from(bit).wrapping_sub(*value << 1));
    }
    Ok(values)
}
