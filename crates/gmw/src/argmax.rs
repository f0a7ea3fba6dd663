//! ArgMax: a tournament that carries the index of each winner along.

use privet_ring::Modulus;
use privet_ring::tournament::{Ties, positions};

use crate::{Error, Party, is_non_negative, mux_all};

/// Shares in `index_ring` of the position of the largest element in each group; `groups`: this party's shares in
/// `ring`, whose differences are below 2^(k-1). All groups have the same size.
pub fn argmax(
    party: &mut Party<'_>,
    groups: &[Vec<u64>],
    ties: Ties,
    ring: Modulus,
    index_ring: Modulus,
) -> Result<Vec<u64>, Error> {
    let role = party.role;
    positions(
        groups,
        ties,
        [ring, index_ring],
        |index| role.public(index),
        |[values, positions]| {
            let ahead_wins = is_non_negative(party, values, ring)?;
            mux_all(party, &ahead_wins, [(values, ring), (positions, index_ring)])
        },
    )
}
