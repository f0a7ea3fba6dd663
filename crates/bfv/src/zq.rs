//! Arithmetic modulo one prime of at most 60 bits, without branches on values. What loops over many values call is always inlined, as they
//! are compiled for each width of vectors ([`vectorised`]).

use crate::arch::vectorised;

/// An odd prime with what it takes to reduce by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prime {
    value: u64,
    bits: u32,
    /// 2^64 / p, rounded down (Barrett).
    reciprocal: u64,
    /// 2^(63 + bits) / p, rounded down: all 64 bits significant.
    fraction: u64,
}

/// A constant to multiply by, with its precomputed quotient (Shoup).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    value: u64,
    quotient: u64,
}

impl Factor {
    pub(crate) fn value(&self) -> u64 {
        self.value
    }
}

impl Prime {
    /// `value` must be an odd prime below 2^60.
    pub(crate) fn new(value: u64) -> Self {
        let bits = 64 - value.leading_zeros();
        debug_assert!(value % 2 == 1 && bits <= 60);
        Self {
            value,
            bits,
            reciprocal: u64::MAX / value,
            fraction: ((1_u128 << (63 + bits)) / u128::from(value)) as u64,
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// The width of a residue on the wire.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// `x mod p` for any word.
    #[inline(always)]
    pub(crate) fn reduce(&self, x: u64) -> u64 {
        let quotient = high(x, self.reciprocal);
        self.once(x.wrapping_sub(quotient.wrapping_mul(self.value)))
    }

    /// `x mod p` for each of some signed integers.
    pub(crate) fn reduce_signed<T: Copy + Into<i64>>(&self, numbers: &[T]) -> Vec<u64> {
        let mut residues = vec![0; numbers.len()];
        self.reduce_signed_to(&mut residues, numbers);
        residues
    }

    /// [`Prime::reduce_signed`] to as many places.
    pub(crate) fn reduce_signed_to<T: Copy + Into<i64>>(&self, residues: &mut [u64], numbers: &[T]) {
        let (prime, places) = (*self, residues.iter_mut().zip(numbers));
        let sign = |x: i64| (x >> 63) as u64;
        // Wide primes are above all integers of 32 bits.
        if self.bits > 32 && size_of::<T>() <= 4 {
            let residue = |x: i64| (x as u64).wrapping_add(prime.value & sign(x));
            return vectorised(|| places.for_each(|(place, &x)| *place = residue(x.into())));
        }
        let residue = |x: i64| {
            let magnitude = prime.reduce(x.unsigned_abs());
            select(sign(x), prime.negate(magnitude), magnitude)
        };
        vectorised(|| places.for_each(|(place, &x)| *place = residue(x.into())));
    }

    /// The integer nearest to zero with this residue.
    #[cfg(test)]
    pub(crate) fn balanced(&self, x: u64) -> i64 {
        let negative = 0_u64.wrapping_sub(u64::from(x > self.value / 2));
        x.wrapping_sub(self.value & negative).cast_signed()
    }

    #[inline(always)]
    pub(crate) fn add(&self, a: u64, b: u64) -> u64 {
        self.once(a + b)
    }

    /// `a + x mod p` for an `x` of absolute value below `p`.
    #[inline(always)]
    pub(crate) fn add_signed(&self, a: u64, x: i64) -> u64 {
        // A negative sum is a large unsigned number.
        let sum = a.wrapping_add(x as u64);
        self.once(sum.min(sum.wrapping_add(self.value)))
    }

    #[inline(always)]
    pub(crate) fn sub(&self, a: u64, b: u64) -> u64 {
        self.once(a + self.value - b)
    }

    #[inline(always)]
    pub(crate) fn negate(&self, a: u64) -> u64 {
        self.once(self.value - a)
    }

    /// `a b mod p` by division: for setting up only.
    pub(crate) fn multiply(&self, a: u64, b: u64) -> u64 {
        (u128::from(a) * u128::from(b) % u128::from(self.value)) as u64
    }

    /// `1 / a mod p`, as `a^(p-2)`.
    pub(crate) fn invert(&self, a: u64) -> u64 {
        let (mut result, mut power, mut exponent) = (1, a % self.value, self.value - 2);
        while exponent != 0 {
            if exponent & 1 == 1 {
                result = self.multiply(result, power);
            }
            power = self.multiply(power, power);
            exponent >>= 1;
        }
        result
    }

    pub(crate) fn factor(&self, value: u64) -> Factor {
        let value = value % self.value;
        Factor { value, quotient: ((u128::from(value) << 64) / u128::from(self.value)) as u64 }
    }

    /// `x * factor mod p` for any word `x`.
    pub(crate) fn scale(&self, x: u64, factor: Factor) -> u64 {
        let quotient = high(x, factor.quotient);
        self.once(x.wrapping_mul(factor.value).wrapping_sub(quotient.wrapping_mul(self.value)))
    }

    /// What [`Prime::fraction`] and [`Prime::quotient`] multiply by, and how far the former shifts.
    pub(crate) fn reciprocals(&self) -> (u64, u32, u64) {
        (self.fraction, self.bits - 1, self.reciprocal)
    }

    /// `x / p` in units of 2^-64 for a residue `x`: at most the true value, and less than 3 units below it.
    pub(crate) fn fraction(&self, x: u64) -> u64 {
        let (high, low) = (high(x, self.fraction), x.wrapping_mul(self.fraction));
        high << (65 - self.bits) | low >> (self.bits - 1)
    }

    /// `x / p` for any word `x`, rounded down or one less.
    pub(crate) fn quotient(&self, x: u64) -> u64 {
        high(x, self.reciprocal)
    }

    /// Brings a value below `2p` below `p`.
    #[inline(always)]
    fn once(&self, x: u64) -> u64 {
        x.min(x.wrapping_sub(self.value))
    }
}

/// The high word of a product: of products of half words, which vector instructions have.
#[inline(always)]
fn high(a: u64, b: u64) -> u64 {
    const HALF: u64 = u32::MAX as u64;
    let ([a0, a1], [b0, b1]) = ([a & HALF, a >> 32], [b & HALF, b >> 32]);
    let middle = a1 * b0 + ((a0 * b0) >> 32);
    a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & HALF)) >> 32)
}

/// `yes` where `mask` is all ones, `no` where it is zero.
pub(crate) fn select(mask: u64, yes: u64, no: u64) -> u64 {
    no ^ (mask & (yes ^ no))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRIMES: [u64; 4] = [1_032_193, 536_813_569, 1_125_899_906_826_241, 1_152_921_504_606_830_593];

    fn signed_residue<T: Copy + Into<i64>>(prime: &Prime, x: T) -> u64 {
        prime.reduce_signed(&[x])[0]
    }

    proptest! {
        #[test]
        fn agrees_with_wide_division(which in 0_usize..4, a: u64, b: u64, signed: i32, long: i64) {
            let p = PRIMES[which];
            let prime = Prime::new(p);
            let wide = |x: u128| (x % u128::from(p)) as u64;
            prop_assert_eq!(prime.reduce(a), a % p);
            prop_assert_eq!(prime.scale(a, prime.factor(b)), wide(u128::from(a) * u128::from(b % p)));
            prop_assert_eq!(signed_residue(&prime, signed), i64::from(signed).rem_euclid(p as i64) as u64);
            prop_assert_eq!(signed_residue(&prime, long), long.rem_euclid(p as i64) as u64);
            let (a, b) = (a % p, b % p);
            prop_assert_eq!(prime.add(a, b), wide(u128::from(a) + u128::from(b)));
            prop_assert_eq!(prime.add(prime.sub(a, b), b), a);
            prop_assert_eq!(prime.add(prime.negate(a), a), 0);
        }

        #[test]
        fn fractions_are_at_most_three_units_low(which in 0_usize..4, x: u64) {
            let prime = Prime::new(PRIMES[which]);
            let x = prime.reduce(x);
            let exact = (u128::from(x) << 64) / u128::from(prime.value());
            let below = exact - u128::from(prime.fraction(x));
            prop_assert!(below < 3, "{below} units below");
        }

        #[test]
        fn quotients_are_at_most_one_low(which in 0_usize..4, x: u64) {
            let prime = Prime::new(PRIMES[which]);
            prop_assert!(x / prime.value() - prime.quotient(x) <= 1);
        }
    }

    #[test]
    fn edges() {
        for p in PRIMES {
            let prime = Prime::new(p);
            assert_eq!((prime.negate(0), prime.sub(0, 0), prime.sub(0, p - 1)), (0, 0, 1));
            assert_eq!((prime.reduce(p), prime.reduce(p - 1), prime.reduce(u64::MAX)), (0, p - 1, u64::MAX % p));
            for x in [i32::MIN, -1, 0, 1, i32::MAX] {
                assert_eq!(signed_residue(&prime, x), i64::from(x).rem_euclid(p as i64) as u64);
            }
        }
    }

    #[test]
    fn inverses() {
        for p in &PRIMES[1..] {
            let prime = Prime::new(*p);
            for a in [1, 2, 12_345, p - 1] {
                assert_eq!(prime.multiply(a, prime.invert(a)), 1);
            }
        }
    }
}
