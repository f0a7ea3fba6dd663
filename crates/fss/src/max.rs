//! Maxima of groups, as a knockout tournament of `max(a, b) = b + relu(a - b)`: two rounds for each level.
//!
//! A level of the tournament is a batch of [`Relu`] with a key of its own:
//! [`privet_ring::tournament::matches`] says how many there are in each.

use privet_prg::Prg;
use privet_ring::Modulus;

use crate::{Error, Party, Relu, Source};

/// Shares in Z_2^n of the maximum of each group; `x`: this party's shares, `groups`: indices into `x`, each group with at
/// least one and differences below `2^(n-1)`.
///
/// `seeds` gives this party's seed for each level in order, and `body` has the levels' bodies one behind the other, each
/// dealt for `Relu::new(bits, bits)` and the number of matches of its level. `2 ceil(log2 w)` rounds for groups of `w`.
///
/// # Errors
/// If the link or a key fails.
pub fn max_pool(
    party: &mut Party<'_>,
    bits: u32,
    seeds: &mut Prg,
    body: &mut dyn Source,
    x: &[u64],
    groups: &[Vec<usize>],
) -> Result<Vec<u64>, Error> {
    let (ring, relu) = (Modulus::new(bits), Relu::new(bits, bits));
    let mut groups: Vec<Vec<u64>> = groups.iter().map(|group| group.iter().map(|&index| x[index]).collect()).collect();
    while groups.iter().any(|group| group.len() > 1) {
        let pairs = || groups.iter().flat_map(|group| group.as_chunks::<2>().0);
        let differences: Vec<u64> = pairs().map(|[a, b]| ring.reduce(a.wrapping_sub(*b))).collect();
        let mut gains = relu.evaluate(party, &seeds.seed(), body, &differences)?.into_iter();
        for group in &mut groups {
            let (pairs, alone) = group.as_chunks::<2>();
            // zip asks the pairs first, so that a group without any takes no gain.
            let winners = pairs.iter().zip(&mut gains).map(|([_, b], gain)| ring.reduce(b.wrapping_add(gain)));
            *group = winners.chain(alone.iter().copied()).collect();
        }
    }
    Ok(groups.into_iter().map(|group| group[0]).collect())
}
