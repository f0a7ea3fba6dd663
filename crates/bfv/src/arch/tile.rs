//! A small product of matrices modulo a prime: the sums of a tile stay in registers while all terms are added up.

use super::Montgomery;
use crate::zq::Prime;

/// Rows of sums in a tile.
pub(crate) const ROWS: usize = 6;

/// Columns of sums in a tile.
pub(crate) const WIDTH: usize = 16;

/// Most terms of a sum at once: low halves of products, below 2^52 each, then stay below 2^62.
pub(crate) const TERMS: usize = 1 << 10;

/// Primes of more bits than these have no product here.
pub(crate) const WIDEST_PRIME_BITS: u32 = 52;

/// The sums of a tile.
pub(crate) type Sums<'a> = [&'a mut [u64; WIDTH]; ROWS];

/// `sums[row][column] = (sums[row][column] + sum over terms of left[term][row] right[term][column] / 2^52) mod p`, everything reduced before
/// and after. The terms of the right side come in groups.
pub(crate) type Accelerated = fn(&Montgomery, &[[u64; ROWS]], &[&[[u64; WIDTH]]], Sums<'_>);

/// The accelerated product, if the machine has it.
pub(crate) fn accelerated() -> Option<Accelerated> {
    #[cfg(target_arch = "x86_64")]
    return super::x86_tile::kernel();
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The same sums without the factor `1 / 2^52`, for any prime of at most [`WIDEST_PRIME_BITS`], and without branches on values.
pub(crate) fn portable(prime: &Prime, left: &[[u64; ROWS]], right: &[&[[u64; WIDTH]]], sums: Sums<'_>) {
    let terms: usize = right.iter().map(|group| group.len()).sum();
    assert!(left.len() == terms && left.len() <= TERMS && prime.bits() <= WIDEST_PRIME_BITS, "few terms of few bits");
    // 2^64 modulo p: the high word of a sum of products is below 2^52.
    let word = prime.factor((u64::MAX % prime.value() + 1) % prime.value());
    for (row, sums) in sums.into_iter().enumerate() {
        let mut wide = [0_u128; WIDTH];
        for (left, right) in left.iter().zip(right.iter().copied().flatten()) {
            let factor = u128::from(left[row]);
            wide.iter_mut().zip(right).for_each(|(sum, &x)| *sum += factor * u128::from(x));
        }
        for (sum, wide) in sums.iter_mut().zip(wide) {
            let high = prime.scale((wide >> 64) as u64, word);
            *sum = prime.add(*sum, prime.add(high, prime.reduce(wide as u64)));
        }
    }
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};

    use super::*;

    #[test]
    fn both_products_are_the_sum_of_single_ones() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([1; 16]));
        for value in [(1 << 20) - 3, (1 << 39) - 7, (1 << 50) - 27, (1 << 51) - 129, (1 << 52) - 47] {
            let (prime, montgomery) = (Prime::new(value), Montgomery::wide(value).unwrap());
            for (terms, extreme) in [(0, false), (1, true), (5, false), (257, false), (TERMS, true)] {
                let mut draw = || if extreme { value - 1 } else { prg.below(value) };
                let left: Vec<[u64; ROWS]> = (0..terms).map(|_| std::array::from_fn(|_| draw())).collect();
                let right: Vec<[u64; WIDTH]> = (0..terms).map(|_| std::array::from_fn(|_| draw())).collect();
                let start: [[u64; WIDTH]; ROWS] = std::array::from_fn(|_| std::array::from_fn(|_| draw()));
                let expected: [[u64; WIDTH]; ROWS] = std::array::from_fn(|row| {
                    std::array::from_fn(|column| {
                        let terms = left.iter().zip(&right);
                        terms.fold(start[row][column], |sum, (left, right)| {
                            prime.add(sum, prime.multiply(left[row], right[column]))
                        })
                    })
                });
                let mut sums = start;
                portable(&prime, &left, &[&right[..terms / 3], &right[terms / 3..]], sums.each_mut());
                assert_eq!(sums, expected, "portable, {terms} terms modulo {value}");
                let Some(accelerated) = accelerated() else { continue };
                let raised: Vec<[u64; ROWS]> =
                    left.iter().map(|left| left.map(|x| prime.multiply(x, montgomery.radix))).collect();
                let mut sums = start;
                accelerated(&montgomery, &raised, &[&right[..terms / 3], &right[terms / 3..]], sums.each_mut());
                assert_eq!(sums, expected, "accelerated, {terms} terms modulo {value}");
            }
        }
    }
}
