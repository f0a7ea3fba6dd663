//! ArgMax: a tournament that carries the index of each winner along.

use privet_ring::Modulus;
use privet_ring::tournament::Ties;

use crate::{Error, Party, is_non_negative, mux_all};

/// Shares in `index_ring` of the position of the largest element in each group; `groups`: this party's shares in
/// `ring`, whose differences are below 2^(k-1). All groups have the same size.
///
/// # Errors
/// If the link fails or the stock lacks [`crate::cost::argmax`]'s correlations.
pub fn argmax(
    party: &mut Party<'_>,
    groups: &[Vec<u64>],
    ties: Ties,
    ring: Modulus,
    index_ring: Modulus,
) -> Result<Vec<u64>, Error> {
    // Positions are public at first: the server's share holds them.
    let position = |i: usize| if party.is_server() { i as u64 } else { 0 };
    let mut groups: Vec<Vec<[u64; 2]>> =
        groups.iter().map(|group| group.iter().enumerate().map(|(i, &x)| [x, position(i)]).collect()).collect();
    while groups.iter().any(|group| group.len() > 1) {
        let pairs = groups.iter().flat_map(|group| group.as_chunks::<2>().0);
        // `ahead - behind`: whoever is ahead wins a tie.
        let (values, positions): (Vec<u64>, Vec<u64>) = pairs
            .map(|[a, b]| match ties {
                Ties::First => [a, b],
                Ties::Last => [b, a],
            })
            .map(|[ahead, behind]| {
                let difference = |i: usize| ahead[i].wrapping_sub(behind[i]);
                (ring.reduce(difference(0)), index_ring.reduce(difference(1)))
            })
            .unzip();
        let ahead_wins = is_non_negative(party, &values, ring)?;
        let gains = mux_all(party, &ahead_wins, &[(&values, ring), (&positions, index_ring)])?;
        let mut gains = gains[0].iter().zip(&gains[1]);
        for group in &mut groups {
            let (pairs, alone) = group.as_chunks::<2>();
            let winners = pairs.iter().zip(&mut gains).map(|([a, b], (value, position))| {
                let behind = if ties == Ties::First { b } else { a };
                [ring.reduce(behind[0].wrapping_add(*value)), index_ring.reduce(behind[1].wrapping_add(*position))]
            });
            *group = winners.chain(alone.iter().copied()).collect();
        }
    }
    Ok(groups.into_iter().map(|group| group[0][1]).collect())
}
