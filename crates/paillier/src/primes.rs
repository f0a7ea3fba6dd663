//! Safe primes: primes `p` for which `(p - 1) / 2` is prime too.
//!
//! Candidates come from windows of odd numbers above fresh random starts (incremental search; Brandt and Damgard,
//! CRYPTO 1992), sieved by small primes and tested eight at a time. A candidate that passes to the base 2 gets 64
//! rounds of Miller and Rabin's test (FIPS 186-5, appendix B.3.1) with random bases, as does its half: a composite
//! number survives with probability `4^-64` whatever it is, where FIPS 186-5 asks for no more than `2^-128`.
//!
//! The search is not constant in time. What it tells of is a number of candidates that were no primes.

use std::mem;

use privet_prg::Prg;
use zeroize::{Zeroize, Zeroizing};

use crate::arch::LANES;
use crate::integer::{Integer, from_limbs, random_below, remainder, resize, to_limbs};
use crate::lanes::Lanes;
use crate::modulus::{Modulus, limbs_for};
use crate::power::power;

/// Vectors of eight rounds of the probabilistic test.
const ROUNDS: usize = 8;

/// Odd numbers of a window.
const WINDOW: usize = 1 << 16;

/// The primes that windows are sieved by: four times as many spare a fifth of the tests.
const SIEVED: usize = 1 << 18;

/// A safe prime of exactly `bits` bits, the highest two of them set, and at least 64 bits in all.
pub(crate) fn safe_prime(bits: usize, prg: &mut Prg) -> Zeroizing<Integer> {
    let small = small_primes(SIEVED);
    loop {
        let start = random_start(bits - 1, prg);
        let survivors = sieve(&start, &small);
        let mut halves = survivors.iter().map(|&offset| add(&start, 2 * u64::from(offset)));
        // Those whose half has passed take lanes before other halves do.
        let mut due = Vec::new();
        loop {
            let whole = due.len();
            let mut candidates = Zeroizing::new(mem::take(&mut due));
            candidates.extend(halves.by_ref().take(LANES - whole));
            if candidates.is_empty() {
                break;
            }
            let passed = fermat(&candidates);
            for (index, candidate) in candidates.iter().enumerate().filter(|(index, _)| passed[*index]) {
                if index >= whole {
                    due.push(double_and_one(candidate));
                    continue;
                }
                let (prime, half) = (Zeroizing::new(candidate.clone()), Zeroizing::new(candidate.shr(1)));
                let is_prime =
                    prime.bits() as usize == bits && is_probable_prime(&half, prg) && is_probable_prime(&prime, prg);
                if is_prime {
                    return prime;
                }
            }
        }
    }
}

/// 64 rounds of Miller and Rabin's test of an odd number above 8, with random bases.
pub(crate) fn is_probable_prime(candidate: &Integer, prg: &mut Prg) -> bool {
    let one = one_like(candidate);
    let even = candidate.wrapping_sub(&one);
    let twos = even.trailing_zeros() as usize;
    let exponent = even.shr(twos as u32);
    let bits = candidate.bits() as usize;
    let limbs = limbs_for(bits);
    let modulus = Modulus::uniform(candidate, limbs);
    (0..ROUNDS).all(|_| {
        let mut bases = Lanes::zero(limbs);
        for lane in 0..LANES {
            let base = random_below(&even.wrapping_sub(&one), prg).wrapping_add(&one);
            bases.set(lane, &to_limbs(base.as_words(), limbs));
        }
        modulus.enter(&mut bases);
        let mut powers = power(&modulus, &bases, bits, |_| exponent.as_words());
        let mut passed = equal(&modulus, &powers, &one);
        for _ in 0..twos {
            let minus_one = equal(&modulus, &powers, &even);
            passed.iter_mut().zip(minus_one).for_each(|(passed, yes)| *passed |= yes);
            modulus.square(&mut powers);
        }
        passed == [true; LANES]
    })
}

/// For up to eight odd candidates, whether 2 to the power of one less is 1.
fn fermat(candidates: &[Integer]) -> [bool; LANES] {
    let bits = candidates.iter().map(|candidate| candidate.bits() as usize).max().unwrap_or(1);
    let limbs = limbs_for(bits);
    let modulus = Modulus::each(candidates, limbs);
    let mut powers = modulus.one().clone();
    // A candidate is odd: one less has the same bits but for the lowest.
    for bit in (0..bits).rev() {
        modulus.square(&mut powers);
        let is_set = |lane: usize| {
            let words = candidates[lane.min(candidates.len() - 1)].as_words();
            u64::from(bit > 0) & (words[bit / 64] >> (bit % 64))
        };
        modulus.double_where(&mut powers, &std::array::from_fn(is_set));
    }
    equal(&modulus, &powers, &one_like(&candidates[0]))
}

/// Whether each lane, out of Montgomery's form, is `value`, which is not zero.
fn equal(modulus: &Modulus, lanes: &Lanes, value: &Integer) -> [bool; LANES] {
    let mut lanes = lanes.clone();
    modulus.leave(&mut lanes);
    std::array::from_fn(|lane| from_limbs(&lanes.lane(lane), value.as_words().len()) == *value)
}

/// A random odd number of exactly `bits` bits, the highest two set, with room above it for a window.
fn random_start(bits: usize, prg: &mut Prg) -> Zeroizing<Integer> {
    let mut words = Zeroizing::new(vec![0; (bits + 1).div_ceil(64)]);
    prg.fill_words(&mut words);
    for bit in bits..64 * words.len() {
        words[bit / 64] &= !(1 << (bit % 64));
    }
    for bit in [0, bits - 1, bits - 2] {
        words[bit / 64] |= 1 << (bit % 64);
    }
    Zeroizing::new(Integer::from_words(words.iter().copied()))
}

/// The offsets `i` for which neither `start + 2 i` nor twice that and one has a factor among the small primes.
fn sieve(start: &Integer, small: &[u32]) -> Zeroizing<Vec<u32>> {
    let mut composite = Zeroizing::new(vec![false; WINDOW]);
    let small = small.iter().take_while(|&&prime| start.bits() > 32 || u64::from(prime) < start.as_words()[0]);
    for &prime in small {
        let remainder = remainder(start, prime);
        let prime = u64::from(prime);
        // `start + 2 i = target` modulo the prime, where 1/2 is (prime + 1) / 2.
        for target in [0, (prime - 1) / 2] {
            let first = (target + prime - remainder) % prime * prime.div_ceil(2) % prime;
            composite.iter_mut().skip(first as usize).step_by(prime as usize).for_each(|mark| *mark = true);
        }
    }
    // Of its length at once: a vector that grows leaves copies behind.
    let count = composite.iter().filter(|composite| !**composite).count();
    let mut offsets = Zeroizing::new(Vec::with_capacity(count));
    offsets.extend((0..WINDOW as u32).filter(|&i| !composite[i as usize]));
    offsets
}

/// The odd primes below `limit`.
pub(crate) fn small_primes(limit: usize) -> Vec<u32> {
    let mut composite = vec![false; limit];
    let mut primes = Vec::new();
    for n in (3..limit).step_by(2) {
        if !composite[n] {
            primes.push(n as u32);
            composite.iter_mut().skip(n * n).step_by(n).for_each(|mark| *mark = true);
        }
    }
    primes
}

fn add(x: &Integer, small: u64) -> Integer {
    x.wrapping_add(resize(&Integer::from(small), x.as_words().len()))
}

fn double_and_one(x: &Integer) -> Integer {
    let mut double = x.wrapping_add(x);
    let prime = double.wrapping_add(one_like(x));
    double.zeroize();
    prime
}

fn one_like(x: &Integer) -> Integer {
    resize(&Integer::one(), x.as_words().len())
}

#[cfg(test)]
mod tests {
    use privet_prg::Seed;

    use super::*;

    fn prg() -> Prg {
        Prg::from_seed(&Seed::from_bytes([5; 16]))
    }

    #[test]
    fn small_numbers_are_told_apart() {
        // Carmichael numbers and strong pseudoprimes to the base 2 among the composites.
        for composite in [9_u64, 561, 1729, 2047, 3277, 4033, 4681, 8321, 3_215_031_751, 25 * 49] {
            assert!(!is_probable_prime(&Integer::from(composite), &mut prg()), "{composite}");
        }
        for prime in [11_u64, 13, 17, 65_537, 1_000_003, (1 << 61) - 1, u64::MAX - 58] {
            assert!(is_probable_prime(&Integer::from(prime), &mut prg()), "{prime}");
        }
    }

    #[test]
    fn large_primes_are_known() {
        // 2^127 - 1 is prime, 2^125 - 1 is not; 2^521 - 1 is prime, 2^523 - 1 is not.
        for (bits, prime) in [(127, true), (125, false), (521, true), (523, false)] {
            let words = bits / 64 + 1;
            let word = |i: usize| if i == words - 1 { (1 << (bits % 64)) - 1 } else { u64::MAX };
            let number = Integer::from_words((0..words).map(word));
            assert_eq!(is_probable_prime(&number, &mut prg()), prime, "2^{bits} - 1");
        }
    }

    #[test]
    fn the_sieve_keeps_what_has_no_small_factor() {
        let start = Integer::from(1_000_003_u64);
        let small = small_primes(100);
        let candidates = sieve(&start, &small);
        for i in 0..WINDOW as u64 {
            let half = 1_000_003 + 2 * i;
            let clean = |n: u64| small.iter().all(|&prime| !n.is_multiple_of(u64::from(prime)));
            assert_eq!(candidates.contains(&(i as u32)), clean(half) && clean(2 * half + 1), "{half}");
        }
    }

    #[test]
    fn primes_are_safe_and_of_the_right_length() {
        for bits in [64, 128, 256] {
            let prime = safe_prime(bits, &mut prg());
            assert_eq!(prime.bits() as usize, bits);
            assert!(prime.bit_vartime(bits as u32 - 2), "so that a product of two has all its bits");
            assert!(is_probable_prime(&prime, &mut prg()) && is_probable_prime(&prime.shr(1), &mut prg()));
        }
    }
}
