//! MaxPool as a knockout tournament: all windows play each round at once.

use privet_ring::Modulus;

use crate::{Error, Party, is_non_negative, mux};

/// Shares of the maximum of each group; `x`: this party's share in Z_2^k, `groups`: indices into `x`, each group with
/// at least one and differences below 2^(k-1).
///
/// Groups of `w` take `w - 1` comparisons in `log2 w` levels, rounded up, where a running maximum takes `w - 1` levels.
///
/// # Errors
/// If the link fails or the stock lacks [`crate::cost::max_pool`]'s correlations.
pub fn max_pool(party: &mut Party<'_>, x: &[u64], groups: &[Vec<usize>], ring: Modulus) -> Result<Vec<u64>, Error> {
    let mut groups: Vec<Vec<u64>> = groups.iter().map(|group| group.iter().map(|&index| x[index]).collect()).collect();
    while groups.iter().any(|group| group.len() > 1) {
        let pairs = || groups.iter().flat_map(|group| group.as_chunks::<2>().0);
        let differences: Vec<u64> = pairs().map(|[a, b]| ring.reduce(a.wrapping_sub(*b))).collect();
        let first_wins = is_non_negative(party, &differences, ring)?;
        let gains = mux(party, &first_wins, &differences, ring)?;
        let mut gains = gains.into_iter();
        for group in &mut groups {
            let (pairs, alone) = group.as_chunks::<2>();
            // zip asks the pairs first, so that a group without any takes no gain.
            let winners = pairs.iter().zip(&mut gains).map(|([_, b], gain)| ring.reduce(b.wrapping_add(gain)));
            *group = winners.chain(alone.iter().copied()).collect();
        }
    }
    Ok(groups.into_iter().map(|group| group[0]).collect())
}
