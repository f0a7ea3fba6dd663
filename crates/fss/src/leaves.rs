//! Complete decision trees: all nodes are compared at once, and the bits along paths multiplied level by level.
//!
//! An AND of shared bits is a [`Select`] in the ring of one bit. The right child of a node is reached where the node is and the left
//! one is not. What is multiplied does not depend on the tree.

use privet_prg::Prg;
use privet_ring::{Bits, Modulus};

use crate::{Error, Lift, Party, Role, Select, Sign, Source};

/// Shares in `to` of 1 for the leaf that each of `n` complete trees ends in and of 0 for its others, `[2^depth, n]`; `x`: this
/// party's share in `ring` of all nodes, `[2^depth - 1, n]`, where `x >= 0` goes left.
///
/// Nodes come level by level. The number of a node within its level has bit `j` set if the way to it goes right at level `j`.
/// Keys: a [`Sign`] for all nodes, a [`Select`] of one bit for each node below the root, level by level, a [`Lift`] for all leaves.
pub fn leaves(
    party: &mut Party<'_>,
    seeds: &mut Prg,
    body: &mut dyn Source,
    x: &[u64],
    depth: u32,
    [ring, to]: [Modulus; 2],
) -> Result<Vec<u64>, Error> {
    let trees = x.len() / ((1 << depth) - 1);
    let bits = Sign::new(ring.bits()).evaluate(party, &seeds.seed(), body, x)?;
    let mut reached = bits.slice(0, trees);
    let right = if party.role == Role::Server { reached.not() } else { reached.clone() };
    reached.extend(&right);
    for level in 1..depth {
        let start = trees * ((1 << level) - 1);
        let goes_left: Vec<u64> = (start..start + (trees << level)).map(|i| u64::from(bits.get(i))).collect();
        let left = Select::new(1).evaluate(party, &seeds.seed(), body, &reached, &goes_left)?;
        let left = Bits::from_lowest(left.into_iter());
        reached.xor_assign(&left);
        let right = std::mem::replace(&mut reached, left);
        reached.extend(&right);
    }
    Lift::new(to.bits()).evaluate(party, &seeds.seed(), body, &reached)
}
