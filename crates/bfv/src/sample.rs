//! The distributions of keys and errors, each drawn without branches on what is drawn.

use privet_prg::{Prg, Seed, Wiped};

use crate::arch::{CHUNK, vectorised};
use crate::zq::Prime;
#[cfg(test)]
use crate::{arch::Values, ntt::Ntt};

/// Errors stay within this bound: they are a difference of two sums of 21 bits, a centred binomial distribution with
/// variance 21/2, standard deviation 3.24.
pub(crate) const ERROR_BOUND: u64 = 21;

/// Their variance.
pub(crate) const ERROR_VARIANCE: f64 = ERROR_BOUND as f64 / 2.0;

/// Numbers in {-1, 0, 1}, each equally likely up to 2^-63.
pub(crate) fn ternary(count: usize, prg: &mut Prg) -> Wiped<i32> {
    const THIRD: u64 = u64::MAX / 3;
    let mut numbers = Wiped::from(vec![0; count]);
    let map = |word| i32::from(word > THIRD) + i32::from(word > 2 * THIRD) - 1;
    map_words(count, prg, map, |first, chunk| numbers[first..][..chunk.len()].copy_from_slice(chunk));
    numbers
}

/// Hands errors of the encryption to `take`, some at a time, each time with the number of those before: centred binomial,
/// [`ERROR_BOUND`] at most.
pub(crate) fn errors(count: usize, prg: &mut Prg, take: impl FnMut(usize, &[i32])) {
    const ONES: u64 = (1 << ERROR_BOUND) - 1;
    let sum = |bits: u64| (bits & ONES).count_ones() as i32;
    map_words(count, prg, |word| sum(word) - sum(word >> ERROR_BOUND), take);
}

fn map_words(count: usize, prg: &mut Prg, map: impl Fn(u64) -> i32, mut take: impl FnMut(usize, &[i32])) {
    let (mut words, mut numbers) = (Wiped::from(vec![0; CHUNK]), Wiped::from(vec![0; CHUNK]));
    for first in (0..count).step_by(CHUNK) {
        let words = &mut words[..(count - first).min(CHUNK)];
        let numbers = &mut numbers[..words.len()];
        prg.fill_words(words);
        vectorised(|| numbers.iter_mut().zip(words).for_each(|(number, word)| *number = map(*word)));
        take(first, numbers);
    }
}

/// The public polynomial of a seed: residues uniform modulo each prime in turn, by rejection.
pub(crate) struct Uniform(Prg);

impl Uniform {
    pub(crate) fn new(seed: &Seed) -> Self {
        Self(Prg::from_seed(seed))
    }

    /// The next residues modulo a prime: of the next words, those whose upper bits are below it.
    pub(crate) fn fill(&mut self, prime: &Prime, mut residues: &mut [u64]) {
        let (prime, unused) = (prime.value(), 64 - prime.bits());
        while !residues.is_empty() {
            self.0.fill_words(residues);
            let is_below = |x: &mut u64| {
                *x >>= unused;
                u64::from(*x < prime)
            };
            // Most are accepted at once: the primes lie just below powers of two.
            let accepted: u64 = vectorised(|| residues.iter_mut().map(is_below).sum());
            if accepted == residues.len() as u64 {
                return;
            }
            let mut filled = 0;
            for i in 0..residues.len() {
                residues[filled] = residues[i];
                filled += usize::from(residues[i] < prime);
            }
            residues = &mut residues[filled..];
        }
    }
}

/// All residues of [`Uniform`].
#[cfg(test)]
pub(crate) fn uniform<const L: usize>(seed: &Seed, ntts: &[Ntt; L], degree: usize) -> [Values; L] {
    let mut uniform = Uniform::new(seed);
    ntts.each_ref().map(|ntt| {
        let mut residues = Values::zero(degree);
        residues.chunks_mut(CHUNK).for_each(|chunk| uniform.fill(ntt.prime(), chunk));
        residues
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 1 << 18;

    fn prg(byte: u8) -> Prg {
        Prg::from_seed(&Seed::from_bytes([byte; 16]))
    }

    #[test]
    fn ternary_values_are_equally_likely() {
        let values = ternary(COUNT, &mut prg(1));
        for value in -1..=1 {
            let count = values.iter().filter(|&&x| x == value).count() as f64;
            // Six standard deviations of a binomial count.
            let (mean, deviation) = (COUNT as f64 / 3.0, (COUNT as f64 * 2.0 / 9.0).sqrt());
            assert!((count - mean).abs() < 6.0 * deviation, "{value}: {count}");
        }
        assert!(values.iter().all(|x| x.abs() <= 1));
    }

    #[test]
    fn errors_have_the_stated_mean_spread_and_bound() {
        let mut errors_drawn = Vec::with_capacity(COUNT);
        errors(COUNT, &mut prg(2), |first, errors| {
            assert_eq!(first, errors_drawn.len());
            errors_drawn.extend_from_slice(errors);
        });
        assert_eq!(errors_drawn.len(), COUNT);
        let mean = errors_drawn.iter().sum::<i32>() as f64 / COUNT as f64;
        let variance = errors_drawn.iter().map(|x| x * x).sum::<i32>() as f64 / COUNT as f64;
        assert!(mean.abs() < 6.0 * (10.5 / COUNT as f64).sqrt(), "mean {mean}");
        assert!((variance - 10.5).abs() < 0.2, "variance {variance}");
        assert!(errors_drawn.iter().all(|x| u64::from(x.unsigned_abs()) <= ERROR_BOUND));
    }

    #[test]
    fn uniform_residues_are_reduced_spread_out_and_repeatable() {
        let degree = 4096;
        let ntts = [39, 38].map(|bits| Ntt::find(degree, bits, u64::MAX).unwrap());
        let seed = Seed::from_bytes([3; 16]);
        let parts = uniform(&seed, &ntts, degree);
        for (residues, ntt) in parts.iter().zip(&ntts) {
            let p = ntt.prime().value();
            assert!(residues.iter().all(|&x| x < p));
            // Sixteen equal bins: chi-square with 15 degrees of freedom stays below 56 but once in a million.
            let mut bins = [0_f64; 16];
            residues.iter().for_each(|&x| bins[(u128::from(x) * 16 / u128::from(p)) as usize] += 1.0);
            let expected = degree as f64 / 16.0;
            let chi_square: f64 = bins.iter().map(|count| (count - expected).powi(2) / expected).sum();
            assert!(chi_square < 56.0, "chi-square {chi_square}");
        }
        assert_eq!(parts, uniform(&seed, &ntts, degree));
        assert_ne!(parts, uniform(&Seed::from_bytes([4; 16]), &ntts, degree));
    }

    #[test]
    fn rejection_replaces_what_it_rejects() {
        // Primes just above a power of two reject half of all candidates.
        let degree = 256;
        let ntts = [8, 9].map(|k| {
            let above = (1_u64 << 30) + k * (1 << 20);
            Ntt::find(degree, 31, above).unwrap()
        });
        let seed = Seed::from_bytes([5; 16]);
        let mut prg = Prg::from_seed(&seed);
        for (residues, ntt) in uniform(&seed, &ntts, degree).iter().zip(&ntts) {
            let below = std::iter::repeat_with(|| prg.word() >> 33).filter(|&x| x < ntt.prime().value());
            assert_eq!(residues.to_vec(), below.take(degree).collect::<Vec<_>>());
        }
    }
}
