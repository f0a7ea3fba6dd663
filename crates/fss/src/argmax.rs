//! The index of a group's largest element: a tournament that carries the index of each winner along.

use privet_prg::Prg;
use privet_ring::Modulus;
use privet_ring::tournament::Ties;

use crate::{Error, Party, Role, Select, Sign, Source};

/// Shares in `index_ring` of the position of the largest element of each group; `groups`: this party's shares in `ring`,
/// with differences below `2^(n-1)`.
///
/// Two rounds for each level. `seeds` and `body` as for [`crate::max_pool`]; each level has three batches of as many
/// elements as there are matches: [`Sign`] in `ring`, [`Select`] in `ring`, [`Select`] in `index_ring`.
///
/// # Errors
/// If the link or a key fails.
pub fn argmax(
    party: &mut Party<'_>,
    seeds: &mut Prg,
    body: &mut dyn Source,
    groups: &[Vec<u64>],
    ties: Ties,
    [ring, index_ring]: [Modulus; 2],
) -> Result<Vec<u64>, Error> {
    // Positions are public at first: the server's share holds them.
    let position = |i: usize| if party.role == Role::Server { i as u64 } else { 0 };
    let mut groups: Vec<Vec<[u64; 2]>> =
        groups.iter().map(|group| group.iter().enumerate().map(|(i, &x)| [x, position(i)]).collect()).collect();
    while groups.iter().any(|group| group.len() > 1) {
        let pairs = groups.iter().flat_map(|group| group.as_chunks::<2>().0);
        // `ahead - behind`: whoever is ahead wins a tie.
        let (values, positions): (Vec<u64>, Vec<u64>) = pairs
            .map(|[a, b]| if ties == Ties::First { [a, b] } else { [b, a] })
            .map(|[ahead, behind]| {
                let difference = |i: usize| ahead[i].wrapping_sub(behind[i]);
                (ring.reduce(difference(0)), index_ring.reduce(difference(1)))
            })
            .unzip();
        let mut gains = winnings(party, seeds, body, [(&values, ring), (&positions, index_ring)])?.into_iter();
        for group in &mut groups {
            let (pairs, alone) = group.as_chunks::<2>();
            let winners = pairs.iter().zip(&mut gains).map(|([a, b], [value, position])| {
                let behind = if ties == Ties::First { b } else { a };
                [ring.reduce(behind[0].wrapping_add(value)), index_ring.reduce(behind[1].wrapping_add(position))]
            });
            *group = winners.chain(alone.iter().copied()).collect();
        }
    }
    Ok(groups.into_iter().map(|group| group[0][1]).collect())
}

/// Both differences where that of the values is not negative, else zeros.
fn winnings(
    party: &mut Party<'_>,
    seeds: &mut Prg,
    body: &mut dyn Source,
    [(values, ring), (positions, index_ring)]: [(&[u64], Modulus); 2],
) -> Result<Vec<[u64; 2]>, Error> {
    let wins = Sign::new(ring.bits()).evaluate(party, &seeds.seed(), body, values)?;
    let select = |seed, ring: Modulus, x| Select::new(ring.bits()).start(party.role, &seed, &wins, x);
    let (of_values, message) = select(seeds.seed(), ring, values);
    let (of_positions, second) = select(seeds.seed(), index_ring, positions);
    party.channel.send(&message)?;
    party.channel.send(&second)?;
    let theirs = [party.channel.recv(message.len())?, party.channel.recv(second.len())?];
    let values = of_values.finish(&theirs[0], body)?;
    let positions = of_positions.finish(&theirs[1], body)?;
    Ok(values.into_iter().zip(positions).map(|(value, position)| [value, position]).collect())
}
