//! Maxima of groups, as a knockout tournament of `max(a, b) = b + relu(a - b)`: two rounds for each level.
//!
//! A level of the tournament is a batch of [`Relu`] with a key of its own:
//! [`privet_ring::tournament::matches`] says how many there are in each.

use privet_prg::Prg;
use privet_ring::window::Groups;
use privet_ring::{Modulus, tournament};

use crate::{Error, Party, Relu, Source};

/// Shares in Z_2^n of the maximum of each group; `x`: this party's shares, `groups`: indices into `x`, each group with at
/// least one and differences below `2^(n-1)`.
///
/// `seeds` gives this party's seed for each level in order, and `body` has the levels' bodies one behind the other, each
/// dealt for `Relu::new(bits, bits)` and the number of matches of its level. `2 ceil(log2 w)` rounds for groups of `w`.
pub fn max_pool(
    party: &mut Party<'_>,
    bits: u32,
    seeds: &mut Prg,
    body: &mut dyn Source,
    x: &[u64],
    groups: &Groups,
) -> Result<Vec<u64>, Error> {
    let relu = Relu::new(bits, bits);
    let gains = |differences: &[u64]| relu.evaluate(party, &seeds.seed(), body, differences);
    tournament::maxima(x, groups, Modulus::new(bits), gains)
}
