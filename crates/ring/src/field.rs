//! Arithmetic modulo a prime `p` just above a ring, in which the linear layers of suite `gmw` can be shared.

use crate::Modulus;

/// Rings and their primes: the prime between `2^l` and `2^(l+1)` that is 1 modulo `2^14` (so that polynomials of degree 8192
/// have slots) and leaves the smallest remainder of `2^64`. A random word is then uniform modulo `p` up to a distance of
/// `2^-44`, that of the remainder to `2^64`.
const PRIMES: [(u32, u64); 19] = [
    (24, 26_853_377),
    (25, 51_658_753),
    (26, 84_901_889),
    (27, 155_287_553),
    (28, 506_806_273),
    (29, 546_144_257),
    (30, 1_121_222_657),
    (31, 2_537_127_937),
    (32, 4_501_061_633),
    (33, 12_707_430_401),
    (34, 33_563_164_673),
    (35, 67_391_963_137),
    (36, 75_565_121_537),
    (37, 172_631_277_569),
    (38, 296_118_059_009),
    (39, 935_352_303_617),
    (40, 1_325_031_407_617),
    (41, 4_037_070_585_857),
    (42, 7_474_033_410_049),
];

/// The integers modulo a prime. No method branches on values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    prime: u64,
    /// `floor((2^64 - 1) / p)` (Barrett).
    reciprocal: u64,
}

impl Field {
    /// Widths of the rings that have a field.
    pub const RINGS: std::ops::RangeInclusive<u32> = 24..=42;

    /// The field over a ring: `2^l < p < 2^(l+1)`. `None` outside of [`Field::RINGS`].
    pub fn over(ring: Modulus) -> Option<Self> {
        PRIMES.iter().find(|(bits, _)| *bits == ring.bits()).map(|&(_, prime)| Self::new(prime))
    }

    /// The integers modulo `prime`, which is at most `2^62`.
    pub const fn new(prime: u64) -> Self {
        Self { prime, reciprocal: u64::MAX / prime }
    }

    /// The prime `p`.
    pub const fn prime(self) -> u64 {
        self.prime
    }

    /// The ring that residues are packed in.
    pub const fn packing(self) -> Modulus {
        Modulus::new(64 - self.prime.leading_zeros())
    }

    /// `x mod p` for any word.
    pub fn reduce(self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        self.once(x.wrapping_sub(quotient.wrapping_mul(self.prime)))
    }

    /// Reduces every word in place.
    pub fn reduce_all(self, values: &mut [u64]) {
        values.iter_mut().for_each(|value| *value = self.reduce(*value));
    }

    /// `a + b` of residues.
    pub fn add(self, a: u64, b: u64) -> u64 {
        self.once(a + b)
    }

    /// `a - b` of residues.
    pub fn sub(self, a: u64, b: u64) -> u64 {
        self.once(a + self.prime - b)
    }

    /// The residue of a signed integer.
    pub fn from_signed(self, x: i64) -> u64 {
        let (magnitude, sign) = (self.reduce(x.unsigned_abs()), (x >> 63) as u64);
        let negated = self.sub(0, magnitude);
        magnitude ^ (sign & (magnitude ^ negated))
    }

    /// The representative of a residue in `[-(p-1)/2, (p-1)/2]`.
    pub fn signed(self, x: u64) -> i64 {
        x.wrapping_sub(self.prime & self.upper(x).wrapping_neg()) as i64
    }

    /// 1 if a residue is above `p / 2`, else 0.
    pub fn upper(self, x: u64) -> u64 {
        (self.prime / 2).wrapping_sub(x) >> 63
    }

    /// Brings a value below `2p` below `p`.
    fn once(self, x: u64) -> u64 {
        x.min(x.wrapping_sub(self.prime))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Miller and Rabin's test; with these bases it is a proof below 2^64.
    fn is_prime(n: u64) -> bool {
        let power = |base: u64, exponent: u64| {
            (0..64).rev().fold(1_u128, |x, i| {
                let square = x * x % u128::from(n);
                if exponent >> i & 1 == 1 { square * u128::from(base) % u128::from(n) } else { square }
            })
        };
        let (odd, twos) = ((n - 1) >> (n - 1).trailing_zeros(), (n - 1).trailing_zeros());
        let passes = |base: u64| {
            let first = power(base, odd);
            let mut x = first;
            first == 1
                || (0..twos).any(|_| {
                    let hit = x == u128::from(n - 1);
                    x = x * x % u128::from(n);
                    hit
                })
        };
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37].into_iter().all(passes)
    }

    #[test]
    fn every_ring_has_a_prime_with_slots_that_words_reach_evenly() {
        for bits in Field::RINGS {
            let prime = Field::over(Modulus::new(bits)).unwrap().prime();
            assert!(is_prime(prime), "{prime}");
            assert!(prime >> bits == 1, "{prime} of the ring of {bits} bits");
            assert_eq!(prime % (1 << 14), 1, "{prime}");
            let remainder = ((1_u128 << 64) % u128::from(prime)) as f64;
            assert!(remainder.log2() < 20.0, "2^64 mod {prime}");
        }
        assert_eq!(Field::over(Modulus::new(23)), None);
        assert_eq!(Field::over(Modulus::new(43)), None);
        assert!(!is_prime(3_215_031_751) && !is_prime(172_631_277_571));
    }

    #[test]
    fn a_small_field_is_right_everywhere() {
        let field = Field::new(17);
        for a in 0..17 {
            for b in 0..17 {
                assert_eq!((field.add(a, b), field.sub(a, b)), ((a + b) % 17, (a + 17 - b) % 17));
            }
            assert_eq!(field.upper(a), u64::from(a > 8));
            assert_eq!(field.signed(a), if a > 8 { a as i64 - 17 } else { a as i64 });
        }
        assert_eq!((field.packing().bits(), field.reduce(17), field.reduce(16)), (5, 0, 16));
    }

    proptest! {
        #[test]
        fn agrees_with_wide_division(bits in Field::RINGS, x: u64, signed: i64) {
            let field = Field::over(Modulus::new(bits)).unwrap();
            prop_assert_eq!(field.reduce(x), x % field.prime());
            let residue = field.from_signed(signed);
            prop_assert_eq!(i128::from(residue), i128::from(signed).rem_euclid(i128::from(field.prime())));
            prop_assert_eq!(field.from_signed(field.signed(residue)), residue);
            prop_assert!(field.signed(residue).unsigned_abs() <= field.prime() / 2);
        }
    }
}
