//! The index of a group's largest element: a tournament that carries the index of each winner along.

use privet_prg::Prg;
use privet_ring::Modulus;
use privet_ring::tournament::{Ties, positions};

use crate::{Error, Party, Select, Sign, Source};

/// Shares in `index_ring` of the position of the largest element of each group; `groups`: this party's shares in `ring`,
/// with differences below `2^(n-1)`.
///
/// Two rounds for each level. `seeds` and `body` as for [`crate::max_pool`]; each level has three batches of as many
/// elements as there are matches: [`Sign`] in `ring`, [`Select`] in `ring`, [`Select`] in `index_ring`.
pub fn argmax(
    party: &mut Party<'_>,
    seeds: &mut Prg,
    body: &mut dyn Source,
    groups: &[Vec<u64>],
    ties: Ties,
    [ring, index_ring]: [Modulus; 2],
) -> Result<Vec<u64>, Error> {
    let role = party.role;
    positions(
        groups,
        ties,
        [ring, index_ring],
        |index| role.public(index),
        |[values, positions]| winnings(party, seeds, body, [(values, ring), (positions, index_ring)]),
    )
}

/// Both differences where that of the values is not negative, else zeros.
fn winnings(
    party: &mut Party<'_>,
    seeds: &mut Prg,
    body: &mut dyn Source,
    [(values, ring), (positions, index_ring)]: [(&[u64], Modulus); 2],
) -> Result<[Vec<u64>; 2], Error> {
    let wins = Sign::new(ring.bits()).evaluate(party, &seeds.seed(), body, values)?;
    let select = |seed, ring: Modulus, x| Select::new(ring.bits()).start(party.role, &seed, &wins, x);
    let (of_values, message) = select(seeds.seed(), ring, values);
    let (of_positions, second) = select(seeds.seed(), index_ring, positions);
    party.channel.send(&message)?;
    party.channel.send(&second)?;
    let replies = [party.channel.recv(message.len())?, party.channel.recv(second.len())?];
    Ok([of_values.finish(&replies[0], body)?, of_positions.finish(&replies[1], body)?])
}
