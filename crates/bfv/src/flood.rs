//! Uniform noise over an exact reply: so wide that what the phase carries besides is lost in it.

use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::ntt::Ntt;
use crate::parameters::Parameters;

/// Bits of the factor in the size of a [`Range`].
const FACTOR_BITS: u32 = 16;

/// Random bits from which a number below the factor is made: it is then uniform up to `2^(16 - 112)`.
const DRAWN_BITS: u32 = 128 - FACTOR_BITS;

/// The integers from `-half()` to `half() - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The range has `factor 2^shift` numbers.
    factor: u64,
    shift: u32,
}

impl Range {
    /// The smallest range with `half()` at or above `least`, which is between `2^16` and `2^110`.
    pub(crate) fn at_least(least: f64) -> Self {
        let shift = (2.0 * least).log2() as u32 + 1 - FACTOR_BITS;
        Self { factor: (2.0 * least / f64::from(shift).exp2()).ceil() as u64, shift }
    }

    /// Half the numbers.
    pub(crate) fn half(&self) -> u128 {
        u128::from(self.factor) << (self.shift - 1)
    }

    /// Uniform numbers of the range, from above by `half()`: `0` to `2 half() - 1`. Takes no branches on what is drawn.
    pub(crate) fn draw(&self, count: usize, prg: &mut Prg) -> Zeroizing<Vec<u128>> {
        let mut words = Zeroizing::new(vec![0; 4 * count]);
        prg.fill_words(&mut words);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let number = |words: &[u64]| {
            let top = ((wide(words[0], words[1]) >> FACTOR_BITS) * u128::from(self.factor)) >> DRAWN_BITS;
            top << self.shift | wide(words[2], words[3]) & ((1 << self.shift) - 1)
        };
        Zeroizing::new(words.chunks_exact(4).map(number).collect())
    }

    /// Residues of `count` uniform numbers of the range modulo some primes, `[L][count]`.
    pub(crate) fn residues<const L: usize>(&self, ntts: &[Ntt; L], count: usize, prg: &mut Prg) -> [Vec<u64>; L] {
        let numbers = self.draw(count, prg);
        ntts.each_ref().map(|ntt| {
            let prime = ntt.prime();
            let word = prime.factor(((1_u128 << 64) % u128::from(prime.value())) as u64);
            let reduce = |x: u128| prime.add(prime.scale((x >> 64) as u64, word), prime.reduce(x as u64));
            let half = reduce(self.half());
            numbers.iter().map(|&number| prime.sub(reduce(number), half)).collect()
        })
    }
}

/// Residues of `count` uniform numbers of the parameters' range, `[2][count]`.
pub(crate) fn flood(parameters: &Parameters, range: Range, count: usize, prg: &mut Prg) -> Zeroizing<[Vec<u64>; 2]> {
    Zeroizing::new(range.residues(parameters.ntts(), count, prg))
}

#[cfg(test)]
mod tests {
    use privet_prg::Seed;

    use super::*;
    use crate::parameters::Resharing;

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
    fn every_part_of_the_range_is_equally_likely() {
        const COUNT: usize = 1 << 16;
        for least in [1e6, 1.7e21, 5e32] {
            let range = Range::at_least(least);
            let drawn = range.draw(COUNT, &mut prg(1));
            assert!(drawn.iter().all(|&x| x < 2 * range.half()));
            let chi_square = |bin: &dyn Fn(u128) -> u128| {
                let mut seen = [0_f64; 16];
                drawn.iter().for_each(|&x| seen[bin(x) as usize] += 1.0);
                let expected = (COUNT / 16) as f64;
                seen.iter().map(|count| (count - expected).powi(2) / expected).sum::<f64>()
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
        let parameters = Parameters::choose(37, 16, 576, Resharing::Exact).unwrap();
        let range = Range::at_least(1.3e21);
        let (numbers, residues) = (range.draw(100, &mut prg(2)), flood(&parameters, range, 100, &mut prg(2)));
        for (residues, prime) in residues.iter().zip(parameters.primes()) {
            for (number, residue) in numbers.iter().zip(residues) {
                let signed = *number as i128 - range.half() as i128;
                assert_eq!(*residue, signed.rem_euclid(i128::from(prime)) as u64);
            }
        }
    }
}
