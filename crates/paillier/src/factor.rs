//! Arithmetic modulo the square of one prime of the private key.

use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::arch::{LANES, LIMB_BITS, Row};
use crate::integer::{Integer, from_limbs, invert, multiply, nonzero, random_below, reduce, resize, to_limbs};
use crate::keys::KeySize;
use crate::lanes::Lanes;
use crate::modulus::Modulus;
use crate::power::{FixedBases, WINDOW_BITS, power_uniform};

/// A prime `p` of the key, and what is computed from it.
pub(crate) struct Factor {
    prime: Zeroizing<Integer>,
    /// `p - 1`.
    order: Zeroizing<Integer>,
    /// `p^2`, the same in all lanes.
    modulus: Modulus,
    /// `1 / p` modulo 2^(64 words of p).
    inverse: Zeroizing<Integer>,
    /// `1 / L((1 + n)^(p - 1) mod p^2)` modulo `p`, where `L(u) = (u - 1) / p`: that is `-1 / q`.
    scale: Zeroizing<Integer>,
    /// Powers of a generator of the `n`-th residues modulo `p^2`.
    generator: FixedBases,
}

impl Factor {
    /// For a safe prime, given the other one.
    pub(crate) fn new(size: KeySize, prime: &Integer, other: &Integer, prg: &mut Prg) -> Self {
        let words = prime.as_words().len();
        let one = resize(&Integer::one(), words);
        let squared = Zeroizing::new(multiply(prime, prime));
        let modulus = Modulus::uniform(&squared, size.half_limbs());
        let (inverse, _) = prime.invert_mod2k(64 * words as u32);
        let other = Zeroizing::new(reduce(other, prime));
        let scale =
            Zeroizing::new(invert(&Zeroizing::new(prime.wrapping_sub(&other)), prime).expect("different primes"));
        let generator = generator(&modulus, prime, prg);
        let positions = (size.bits() / 2).div_ceil(WINDOW_BITS);
        Self {
            order: Zeroizing::new(prime.wrapping_sub(&one)),
            prime: Zeroizing::new(prime.clone()),
            generator: FixedBases::new(&modulus, &[generator], 1, positions),
            modulus,
            inverse: Zeroizing::new(inverse),
            scale,
        }
    }

    pub(crate) fn prime(&self) -> &Integer {
        &self.prime
    }

    /// Uniform `n`-th residues modulo `p^2`: a group of order `p - 1`, so a generator's power to a uniform exponent
    /// below that. Out of Montgomery's form.
    pub(crate) fn noise(&self, prg: &mut Prg) -> Lanes {
        let exponents: [_; LANES] = std::array::from_fn(|_| Zeroizing::new(random_below(&self.order, prg)));
        let digit = |exponent: &Integer, window: usize| {
            let at = window * WINDOW_BITS;
            let word = |i: usize| exponent.as_words().get(i).copied().map_or(0, u128::from);
            ((word(at / 64) | word(at / 64 + 1) << 64) >> (at % 64)) as u64 & ((1 << WINDOW_BITS) - 1)
        };
        let digits: Zeroizing<Vec<Row>> = Zeroizing::new(
            (0..self.generator.windows())
                .map(|window| Row(std::array::from_fn(|lane| digit(&exponents[lane], window))))
                .collect(),
        );
        let mut noise = self.generator.product(&self.modulus, &digits);
        self.modulus.leave(&mut noise);
        noise
    }

    /// Plaintexts modulo `p` of ciphertexts below `n^2`, out of Montgomery's form (Paillier, EUROCRYPT 1999, section
    /// 7).
    pub(crate) fn decrypt(&self, ciphertexts: &Lanes) -> [Zeroizing<Integer>; LANES] {
        // `c = high 2^(52 limbs) + low`, and Montgomery's form of a number is the number times 2^(52 limbs).
        let (low, high) = ciphertexts.0.split_at(self.modulus.limbs());
        let (mut base, mut high) = (Lanes(low.to_vec()), Lanes(high.to_vec()));
        self.modulus.enter(&mut base);
        self.modulus.enter(&mut high);
        self.modulus.enter(&mut high);
        self.modulus.add(&mut base, &high);
        let bits = self.order.bits_precision() as usize;
        let mut powers = power_uniform(&self.modulus, &base, bits, self.order.as_words());
        self.modulus.leave(&mut powers);
        std::array::from_fn(|lane| self.logarithm(&Zeroizing::new(powers.lane(lane))))
    }

    /// `L(u)`, scaled. As `u - 1` is a multiple of `p`, the division is a product with the inverse modulo a power of
    /// two.
    fn logarithm(&self, limbs: &[u64]) -> Zeroizing<Integer> {
        let words = self.prime.as_words().len();
        let low = Zeroizing::new(from_limbs(&limbs[..(64 * words).div_ceil(LIMB_BITS)], words));
        let one = resize(&Integer::one(), words);
        let quotient = Zeroizing::new(Zeroizing::new(low.wrapping_sub(&one)).wrapping_mul(&*self.inverse));
        Zeroizing::new(quotient.mul_mod(&self.scale, &nonzero(&self.prime)))
    }
}

/// A generator of the `n`-th residues modulo `p^2`, in Montgomery's form, the same in all lanes: `s^p` for a generator
/// `s` modulo `p`. As `(p - 1) / 2` is prime, `s` is one unless its square or its power to that is 1.
fn generator(modulus: &Modulus, prime: &Integer, prg: &mut Prg) -> Lanes {
    let limbs = modulus.limbs();
    let words = prime.as_words().len();
    let bits = prime.bits_precision() as usize;
    let one = resize(&Integer::one(), words);
    let half = Zeroizing::new(prime.shr(1));
    loop {
        let s = Zeroizing::new(random_below(prime, prg));
        let mut lanes = Lanes::broadcast(&Zeroizing::new(to_limbs(s.as_words(), limbs)));
        modulus.enter(&mut lanes);
        let generator = power_uniform(modulus, &lanes, bits, prime.as_words());
        // The residue `s^p` has the order of `s`; its powers are 1 modulo `p` only if they are 1 modulo `p^2`.
        let is_one = |exponent: &Integer| {
            let mut power = power_uniform(modulus, &generator, bits, exponent.as_words());
            modulus.leave(&mut power);
            let value = Zeroizing::new(from_limbs(&power.lane(0), 2 * words));
            *value == resize(&one, 2 * words)
        };
        let two = resize(&Integer::from(2_u64), words);
        if !bool::from(s.is_zero()) && !is_one(&two) && !is_one(&half) {
            return generator;
        }
    }
}
