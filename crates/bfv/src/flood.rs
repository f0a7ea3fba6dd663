//! Noise over an exact reply: so wide that what the phase carries besides is lost in it.
//!
//! It is the sum of three uniform numbers. What `n` results tell by such noise grows with the square root of `n`, where it would grow
//! with `n` under a single uniform number: a shift of one uniform number shows by the ends of its range, for certain if at all.
//! [`STEEPNESS`] says how much; `docs/reference/protocols/bfv.md` has the argument.

use privet_prg::{Prg, Wiped};

use crate::ntt::Ntt;

/// Bits of the factor in the size of a [`Range`].
const FACTOR_BITS: u32 = 16;

/// Random bits from which a number below the factor is made: it is then uniform up to `2^(16 - 112)`.
const DRAWN_BITS: u32 = 128 - FACTOR_BITS;

/// The square root of the sum, over all integers `x`, of `(sqrt f(x) - sqrt f(x - 1))^2`, times `m`, where `f` is the distribution of the
/// sum of three uniform numbers of `m` values: 1.0679, rounded up.
pub(crate) const STEEPNESS: f64 = 1.07;

/// Uniform numbers that are added up.
const TERMS: u64 = 3;

/// The sum of three uniform numbers of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flood(Range);

impl Flood {
    /// The narrowest under which `results` results, whose noise has this root mean square, tell at most `2^-bits`: the
    /// statistical distance of all of them together from what does not depend on the noise.
    pub(crate) fn hiding(root_mean_square: f64, results: usize, bits: i32) -> Self {
        Self(Range::at_least(STEEPNESS * root_mean_square * (results as f64).sqrt() * 2_f64.powi(bits) / 2.0))
    }

    /// What so many results tell under it.
    pub(crate) fn loss(&self, root_mean_square: f64, results: usize) -> f64 {
        STEEPNESS * root_mean_square * (results as f64).sqrt() / (2.0 * self.0.half() as f64)
    }

    /// The largest absolute value.
    pub(crate) fn most(&self) -> u128 {
        u128::from(TERMS) * self.0.half()
    }

    /// Residues of `count` such sums modulo some primes, `[L][count]`.
    pub(crate) fn residues<const L: usize>(&self, ntts: &[Ntt; L], count: usize, prg: &mut Prg) -> [Wiped<u64>; L] {
        let mut sums = Wiped::from(vec![0_u128; count]);
        for _ in 0..TERMS {
            sums.iter_mut().zip(self.0.draw(count, prg).iter()).for_each(|(sum, term)| *sum += term);
        }
        ntts.each_ref().map(|ntt| {
            let prime = ntt.prime();
            let word = prime.factor(((1_u128 << 64) % u128::from(prime.value())) as u64);
            let reduce = |x: u128| prime.add(prime.scale((x >> 64) as u64, word), prime.reduce(x as u64));
            let most = reduce(self.most());
            sums.iter().map(|&sum| prime.sub(reduce(sum), most)).collect()
        })
    }
}

/// The integers from `-half()` to `half() - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// The range has `factor 2^shift` numbers.
    factor: u64,
    shift: u32,
}

impl Range {
    /// The smallest range with `half()` at or above `least`, which is between `2^16` and `2^120`.
    fn at_least(least: f64) -> Self {
        let shift = (2.0 * least).log2() as u32 + 1 - FACTOR_BITS;
        Self { factor: (2.0 * least / f64::from(shift).exp2()).ceil() as u64, shift }
    }

    /// Half the numbers.
    fn half(&self) -> u128 {
        u128::from(self.factor) << (self.shift - 1)
    }

    /// Uniform numbers of the range, from above by `half()`: `0` to `2 half() - 1`. Takes no branches on what is drawn.
    fn draw(&self, count: usize, prg: &mut Prg) -> Wiped<u128> {
        let mut words = Wiped::from(vec![0; 4 * count]);
        prg.fill_words(&mut words);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let number = |words: &[u64]| {
            let top = ((wide(words[0], words[1]) >> FACTOR_BITS) * u128::from(self.factor)) >> DRAWN_BITS;
            top << self.shift | wide(words[2], words[3]) & ((1 << self.shift) - 1)
        };
        words.chunks_exact(4).map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use privet_prg::Seed;

    use super::*;
    use crate::parameters::{Parameters, Resharing};

    fn prg(byte: u8) -> Prg {
        Prg::from_seed(&Seed::from_bytes([byte; 16]))
    }

    #[test]
    fn ranges_are_large_enough_and_hardly_larger() {
        for least in [65_536.0, 1e9, 3.0e20, 2_f64.powi(69), 2_f64.powi(69) * 1.000_001, 2_f64.powi(109)] {
            let half = Range::at_least(least).half() as f64;
            assert!((1.0..1.000_04).contains(&(half / least)), "{half} for {least}");
        }
    }

    #[test]
    fn a_sum_of_three_is_as_steep_as_stated() {
        for values in [256_usize, 1000] {
            let mut ways = vec![1.0];
            for _ in 0..TERMS {
                ways = (0..ways.len() + values - 1)
                    .map(|x| ways[x.saturating_sub(values - 1)..ways.len().min(x + 1)].iter().sum::<f64>())
                    .collect();
            }
            let roots: Vec<f64> = ways.iter().map(|ways| (ways / (values as f64).powi(3)).sqrt()).collect();
            let before = std::iter::once(&0.0).chain(&roots);
            let steps = before.zip(roots.iter().chain([&0.0])).map(|(before, after)| (after - before).powi(2));
            let steepness = steps.sum::<f64>().sqrt() * values as f64;
            assert!((1.06..STEEPNESS).contains(&steepness), "{steepness} for {values} values");
        }
    }

    #[test]
    fn every_part_of_the_range_is_equally_likely() {
        const COUNT: usize = 1 << 16;
        for least in [1e6, 1.7e21, 5e32] {
            let range = Range::at_least(least);
            let numbers = range.draw(COUNT, &mut prg(1));
            assert!(numbers.iter().all(|&x| x < 2 * range.half()));
            let chi_square = |bin: &dyn Fn(u128) -> u128| {
                let mut counts = [0_f64; 16];
                numbers.iter().for_each(|&x| counts[bin(x) as usize] += 1.0);
                let expected = (COUNT / 16) as f64;
                counts.iter().map(|count| (count - expected).powi(2) / expected).sum::<f64>()
            };
            // 15 degrees of freedom: above 56 once in a million.
            assert!(chi_square(&|x| x / (2 * range.half()).div_ceil(16)) < 56.0, "sixteenths of the range");
            for shift in [0, range.shift.saturating_sub(4)] {
                assert!(chi_square(&|x| x >> shift & 15) < 56.0, "bits from {shift}");
            }
        }
    }

    #[test]
    fn residues_are_those_of_the_number() {
        let parameters = Parameters::choose(37, 16, 576, 4096, Resharing::Exact).unwrap();
        let range = Range::at_least(1.3e21);
        let mut generator = prg(2);
        let terms = [(); 3].map(|()| range.draw(100, &mut generator));
        let numbers: Vec<u128> = (0..100).map(|i| terms.iter().map(|term| term[i]).sum()).collect();
        let residues = Flood(range).residues(parameters.ntts(), 100, &mut prg(2));
        for (residues, prime) in residues.iter().zip(parameters.primes()) {
            for (number, residue) in numbers.iter().zip(residues.iter()) {
                let signed = *number as i128 - Flood(range).most() as i128;
                assert_eq!(*residue, signed.rem_euclid(i128::from(prime)) as u64);
            }
        }
    }
}
