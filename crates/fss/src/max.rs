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
    let mut sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    let mut left: Vec<u64> = groups.iter().flatten().map(|&index| x[index]).collect();
    while sizes.iter().any(|&size| size > 1) {
        let mut differences = Vec::with_capacity(left.len() / 2);
        for group in split(&left, &sizes) {
            let pairs = group.as_chunks::<2>().0.iter();
            differences.extend(pairs.map(|[a, b]| ring.reduce(a.wrapping_sub(*b))));
        }
        let mut gains = relu.evaluate(party, &seeds.seed(), body, &differences)?.into_iter();
        let mut winners = Vec::with_capacity(left.len().div_ceil(2));
        for group in split(&left, &sizes) {
            let (pairs, alone) = group.as_chunks::<2>();
            // zip asks the pairs first, so that a group without any takes no gain.
            winners.extend(pairs.iter().zip(&mut gains).map(|([_, b], gain)| ring.reduce(b.wrapping_add(gain))));
            winners.extend(alone);
        }
        left = winners;
        sizes.iter_mut().for_each(|size| *size = size.div_ceil(2));
    }
    Ok(left)
}

/// Groups of these sizes that lie one behind the other.
fn split<'a>(values: &'a [u64], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u64]> {
    sizes.iter().scan(values, |rest, &size| {
        let (group, after) = rest.split_at(size);
        *rest = after;
        Some(group)
    })
}
