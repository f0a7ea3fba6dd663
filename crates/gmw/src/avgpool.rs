//! AveragePool: sums are local, and so is the public factor that stands for the division.

use privet_ring::Modulus;
use privet_ring::window::Groups;

/// Shares of each group's sum times its factor; `x`: this party's share, `groups`: indices into it, `factor(i)`: the
/// public factor of group `i`. Local; the caller truncates.
pub fn sum_windows(x: &[u64], groups: &Groups, factor: impl Fn(usize) -> i64, ring: Modulus) -> Vec<u64> {
    let sums = groups.iter().map(|group| group.fold(0u64, |sum, index| sum.wrapping_add(x[index])));
    sums.enumerate().map(|(i, sum)| ring.reduce(sum.wrapping_mul(factor(i) as u64))).collect()
}
