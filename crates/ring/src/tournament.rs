//! Knockout tournaments, in which pairs of neighbours meet level by level: how maxima of many values are found.

use std::collections::BTreeMap;

use crate::Modulus;
use crate::window::Groups;

/// Which of several equal largest elements is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one with the lowest index.
    First,
    /// The one with the highest index.
    Last,
}

/// Number of pairs that meet at each level of tournaments between groups, first level first; `sizes` tells how many groups there
/// are of each size.
pub fn matches(sizes: impl IntoIterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut sizes: Vec<(usize, usize)> = sizes.into_iter().collect();
    let mut levels = Vec::new();
    while sizes.iter().any(|&(size, count)| size > 1 && count > 0) {
        levels.push(sizes.iter().map(|(size, count)| size / 2 * count).sum());
        let mut next = BTreeMap::new();
        sizes.iter().for_each(|(size, count)| *next.entry(size.div_ceil(2)).or_insert(0) += count);
        sizes = next.into_iter().collect();
    }
    levels
}

/// Shares of the maximum of each group of elements of `x`, level by level: `gains` gives shares of `max(d, 0)` for the
/// differences `d` of a level's pairs, which are below 2^(k-1); each group has at least one member.
///
/// # Errors
/// What `gains` fails with.
///
/// # Panics
/// If a group is empty, or `gains` gives too few.
pub fn maxima<E>(
    x: &[u64],
    groups: &Groups,
    ring: Modulus,
    mut gains: impl FnMut(&[u64]) -> Result<Vec<u64>, E>,
) -> Result<Vec<u64>, E> {
    let mut sizes = groups.runs();
    let mut left = groups.gather(x);
    while sizes.iter().any(|&(size, count)| size > 1 && count > 0) {
        let differences = differences(&left, &sizes, |a, b| ring.reduce(a.wrapping_sub(b)));
        let gains = gains(&differences)?;
        left = winners(&left, &sizes, &gains, |b, gain| ring.reduce(b.wrapping_add(gain)));
        next_level(&mut sizes);
    }
    assert_eq!(left.len(), groups.count(), "a winner for each group");
    Ok(left)
}

/// Shares of the position of the largest element of each group, whose index each winner takes along; `groups`: this party's shares in
/// `ring`, with differences below 2^(k-1). `place`: its share of an index, which is public. `gains` gives shares of the differences of
/// values and of positions of a level's pairs where that of the values is not negative, and of zero elsewhere.
///
/// # Errors
/// What `gains` fails with.
pub fn positions<E>(
    groups: &[Vec<u64>],
    ties: Ties,
    [ring, index_ring]: [Modulus; 2],
    place: impl Fn(u64) -> u64,
    mut gains: impl FnMut([&[u64]; 2]) -> Result<[Vec<u64>; 2], E>,
) -> Result<Vec<u64>, E> {
    let mut groups: Vec<Vec<[u64; 2]>> =
        groups.iter().map(|group| (0..).zip(group).map(|(i, &x)| [x, place(i)]).collect()).collect();
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
        let [values, positions] = gains([&values, &positions])?;
        let mut gains = values.iter().zip(&positions);
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

/// `subtract` of the two values of each pair of a level, for groups of these sizes, each so many times, that lie one behind the other.
pub fn differences<T: Copy>(left: &[T], sizes: &[(usize, usize)], subtract: impl Fn(T, T) -> T) -> Vec<T> {
    let mut differences = Vec::with_capacity(left.len() / 2);
    for (size, groups) in runs(left, sizes) {
        // Groups of an even size are pairs one after the other.
        let size = if size.is_multiple_of(2) { groups.len() } else { size };
        for group in groups.chunks(size.max(1)) {
            differences.extend(group.as_chunks().0.iter().map(|[a, b]| subtract(*a, *b)));
        }
    }
    differences
}

/// What goes on to the next level: `add` of the second value of each pair and its gain, and values without a partner.
///
/// # Panics
/// Unless there is a gain for each pair.
pub fn winners<T: Copy>(left: &[T], sizes: &[(usize, usize)], gains: &[T], add: impl Fn(T, T) -> T) -> Vec<T> {
    assert_eq!(gains.len(), sizes.iter().map(|(size, count)| size / 2 * count).sum::<usize>(), "a gain for each pair");
    let mut winners = Vec::with_capacity(left.len() - gains.len());
    let mut gains = gains;
    for (size, groups) in runs(left, sizes) {
        let size = if size.is_multiple_of(2) { groups.len() } else { size };
        for group in groups.chunks(size.max(1)) {
            let (pairs, alone) = group.as_chunks::<2>();
            let (pair_gains, after) = gains.split_at(pairs.len());
            winners.extend(pairs.iter().zip(pair_gains).map(|([_, b], gain)| add(*b, *gain)));
            winners.extend(alone);
            gains = after;
        }
    }
    winners
}

/// The sizes of groups after a level.
pub fn next_level(sizes: &mut [(usize, usize)]) {
    sizes.iter_mut().for_each(|(size, _)| *size = size.div_ceil(2));
}

/// The sizes, each with the values of all groups of it, which lie one behind the other.
fn runs<'a, T>(values: &'a [T], sizes: &'a [(usize, usize)]) -> impl Iterator<Item = (usize, &'a [T])> {
    sizes.iter().scan(values, |rest, &(size, count)| {
        let (groups, after) = rest.split_at(size * count);
        *rest = after;
        Some((size, groups))
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn the_largest_of_each_group_wins() {
        let (ring, x) = (Modulus::new(16), [5, 1, 9, 7, 7, 2, 8, 3].map(|x: u64| x.wrapping_sub(4)));
        let x: Vec<u64> = x.iter().map(|&x| ring.reduce(x)).collect();
        let relu = |d: &[u64]| Ok::<_, Infallible>(d.iter().map(|&d| ring.signed(d).max(0) as u64).collect());
        let groups = Groups::on_planes(vec![vec![0, 1, 2], vec![3], vec![1, 3]], 2, 4);
        let Ok(largest) = maxima(&x, &groups, ring, relu);
        assert_eq!(largest.iter().map(|&x| ring.signed(x) + 4).collect::<Vec<_>>(), [9, 7, 7, 8, 3, 3]);
    }

    #[test]
    fn everyone_but_the_winners_loses_once() {
        assert_eq!(matches([]), []);
        assert_eq!(matches([(1, 2)]), []);
        assert_eq!(matches([(9, 1), (4, 1), (1, 1)]), [6, 3, 1, 1]);
        assert_eq!(matches([(9, 5), (4, 0)]), [20, 10, 5, 5]);
        for size in 1..70_usize {
            let levels = matches([(size, 1)]);
            assert_eq!(levels.iter().sum::<usize>(), size - 1);
            assert_eq!(levels.len() as u32, size.next_power_of_two().ilog2());
        }
    }
}
