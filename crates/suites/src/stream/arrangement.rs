//! Random arrangements of a tensor: what hides places from the client.

use privet_prg::Prg;
use privet_ring::window::Groups;

use super::network::inverse;

/// Which element goes to which place of a message, and where the client's answer for each element comes. Used once,
/// for one exchange of one request.
pub(super) struct Arrangement {
    /// For each place the element sent there.
    pub sent: Vec<usize>,
    /// For each element of the answer its place.
    pub returned: Vec<usize>,
}

impl Arrangement {
    /// A uniform permutation of `count` elements.
    pub fn elements(count: usize, prg: &mut Prg) -> Self {
        let sent = permutation(count, prg);
        let returned = inverse(&sent);
        Self { sent, returned }
    }

    /// A uniform permutation of the groups, and one of the members of each. Groups that are shorter than the longest
    /// repeat a random member, which no maximum notices.
    pub fn groups(groups: &Groups, prg: &mut Prg) -> Self {
        let members: Vec<Vec<usize>> = groups.iter().map(Iterator::collect).collect();
        let length = groups.sizes().max().unwrap_or(1);
        let order = permutation(members.len(), prg);
        let mut sent = Vec::with_capacity(length * members.len());
        for &group in &order {
            let mut window = members[group].clone();
            let size = window.len();
            window.extend((size..length).map(|_| members[group][prg.below(size as u64) as usize]));
            sent.extend(permutation(length, prg).into_iter().map(|at| window[at]));
        }
        Self { sent, returned: inverse(&order) }
    }
}

/// Fisher and Yates's shuffle.
pub(super) fn permutation(count: usize, prg: &mut Prg) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, prg.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of four elements come equally often: chi-squared with 23 degrees of freedom is below 60 but for 4 in
    /// 100,000 seeds, and the seed is fixed.
    #[test]
    fn permutations_are_uniform() {
        let mut prg = Prg::from_seed(&privet_prg::Seed::from_bytes([7; 16]));
        let draws = 24_000;
        let mut counts = std::collections::HashMap::new();
        for _ in 0..draws {
            *counts.entry(permutation(4, &mut prg)).or_insert(0_i64) += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = draws / 24;
        let squares: i64 = counts.values().map(|count| (count - expected).pow(2)).sum();
        assert!(squares / expected < 60, "chi-squared {}", squares / expected);
    }

    #[test]
    fn answers_find_back() {
        let mut prg = Prg::from_seed(&privet_prg::Seed::from_bytes([8; 16]));
        let arrangement = Arrangement::elements(100, &mut prg);
        let back: Vec<_> = arrangement.returned.iter().map(|&place| arrangement.sent[place]).collect();
        assert_eq!(back, (0..100).collect::<Vec<_>>());
        let groups = Groups::on_planes(vec![vec![0, 1, 2], vec![3], vec![4, 5]], 2, 6);
        let arrangement = Arrangement::groups(&groups, &mut prg);
        for (group, &place) in groups.iter().zip(&arrangement.returned) {
            let mut sent = arrangement.sent[3 * place..][..3].to_vec();
            sent.sort_unstable();
            sent.dedup();
            assert_eq!(sent, group.collect::<Vec<_>>());
        }
    }
}
