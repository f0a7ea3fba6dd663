//! What both parties must agree on, derived from public sizes.

use std::sync::Arc;

use crate::error::{Error, Misuse};
use crate::flood::Flood;
use crate::ntt::Ntt;
use crate::wire::packed_bytes;
use crate::zq::Factor;

use super::noise;
use super::order::Order;

/// Primes of the modulus `q`.
pub(super) const LIMBS: usize = 3;

/// `q`'s primes and the special prime that key switching works modulo besides.
pub(super) const WITH_SPECIAL: usize = LIMBS + 1;

/// The ring degree. At 128 bits of security a modulus of 214 bits is the limit (see the crate's other parameters).
const DEGREE: usize = 8192;

/// Four of these are 212 bits. Those beyond 50 bits leave the fastest code of the transform, and are taken for large programs alone.
const WIDEST_PRIME_BITS: u32 = 53;

/// Parameters of the batched scheme. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Parameters(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) order: Order,
    /// The transform modulo the plaintext prime.
    pub(super) plain: Ntt,
    /// `q`'s primes, and the special prime last: the largest.
    pub(super) ntts: [Ntt; WITH_SPECIAL],
    pub(super) prime_bits: u32,
    pub(super) reply_bits: u32,
    /// Bound on the noise of a sum.
    #[cfg_attr(not(test), expect(dead_code, reason = "parameters are chosen by it"))]
    bound: f64,
    /// Root mean square of the noise of a sum.
    deviation: f64,
    /// Replies of an inference.
    replies: usize,
    /// What hides the noise of a reply.
    flood: Flood,
    /// `q mod p`.
    pub(super) modulus: Factor,
    /// `1 / p` modulo each prime of `q`.
    pub(super) inverse_plain: [Factor; LIMBS],
    /// For each prime of `q`, the inverse of the product of the others.
    pub(super) inverse_rest: [Factor; LIMBS],
    /// For each prime of `q`, the special prime times the others.
    pub(super) raised: [Factor; LIMBS],
    /// The inverse of the special prime modulo each prime of `q`.
    pub(super) inverse_special: [u64; LIMBS],
    /// `1 / q1` modulo `q0`.
    pub(super) inverse_second: Factor,
}

impl Parameters {
    /// Parameters for plaintexts modulo `prime`, for results that are sums of at most `terms` products (whatever the weights) after at
    /// most `rotations` rotations, in `replies` replies in an inference.
    ///
    /// # Errors
    /// [`Misuse::PlainPrime`] unless `prime` is a prime of at most 44 bits that is 1 modulo `2N`; [`Misuse::NoiseTooLarge`] if no
    /// modulus of three primes of 53 bits holds the noise.
    pub fn choose(prime: u64, terms: usize, rotations: usize, replies: usize) -> Result<Self, Error> {
        let refusal = Misuse::PlainPrime { prime };
        let plain = Some(prime).filter(|prime| (1 << 16..1 << 45).contains(prime));
        let plain = plain.and_then(|prime| Ntt::of(DEGREE, prime)).ok_or(refusal.clone())?;
        let reply_bits = noise::reply_bits(DEGREE, prime).ok_or(refusal)?;
        let bound = noise::sum_bound(DEGREE, prime, terms, rotations);
        let deviation = noise::sum_deviation(DEGREE, prime, terms, rotations);
        let flood = noise::flood(DEGREE, deviation, replies);
        let needed = noise::modulus_bits(DEGREE, prime, reply_bits, bound, flood);
        let narrowest = (needed / LIMBS as f64) as u32;
        for bits in narrowest.max(plain.prime().bits() + 1)..=WIDEST_PRIME_BITS {
            let Some(ntts) = primes(bits) else { continue };
            let modulus: f64 = ntts[..LIMBS].iter().map(|ntt| (ntt.prime().value() as f64).log2()).sum();
            if modulus >= needed {
                return Ok(Self(Arc::new(Inner {
                    bound,
                    deviation,
                    replies,
                    ..Inner::new(plain, ntts, bits, reply_bits, flood)
                })));
            }
        }
        let modulus_bits = f64::from(LIMBS as u32 * WIDEST_PRIME_BITS);
        Err(Misuse::NoiseTooLarge { noise_bits: bound.log2(), ring_bits: plain.prime().bits(), modulus_bits }.into())
    }

    /// Slots of a plaintext.
    pub fn degree(&self) -> usize {
        DEGREE
    }

    /// Slots of a row.
    pub fn row(&self) -> usize {
        DEGREE / 2
    }

    /// The plaintext prime.
    pub fn prime(&self) -> u64 {
        self.0.plain.prime().value()
    }

    /// The width of each of `q`'s three primes.
    pub fn prime_bits(&self) -> u32 {
        self.0.prime_bits
    }

    /// The width of a returned coefficient.
    pub fn reply_bits(&self) -> u32 {
        self.0.reply_bits
    }

    /// Bytes of a fresh ciphertext, or of a public key, on the wire: a seed and a polynomial.
    pub fn ciphertext_bytes(&self) -> usize {
        16 + LIMBS * packed_bytes(DEGREE, self.prime_bits())
    }

    /// Bytes of a rotation key on the wire.
    pub fn rotation_key_bytes(&self) -> usize {
        LIMBS * (16 + WITH_SPECIAL * packed_bytes(DEGREE, self.prime_bits()))
    }

    /// Bytes of a reply.
    pub fn reply_bytes(&self) -> usize {
        2 * packed_bytes(DEGREE, self.reply_bits())
    }

    /// Whether both describe the same scheme.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same = |a: &Ntt, b: &Ntt| a.prime().value() == b.prime().value();
        Arc::ptr_eq(&self.0, &other.0)
            || (self.prime() == other.prime()
                && self.reply_bits() == other.reply_bits()
                && self.replies() == other.replies()
                && self.0.ntts.iter().zip(&other.0.ntts).all(|(a, b)| same(a, b)))
    }

    /// What hides the noise of a reply.
    pub(super) fn flood(&self) -> Flood {
        self.0.flood
    }

    /// Replies of an inference that the parameters were chosen for.
    pub fn replies(&self) -> usize {
        self.0.replies
    }

    /// Bits of all primes that a key of these parameters is used with, the special one included.
    pub fn modulus_bits(&self) -> f64 {
        self.0.ntts.iter().map(|ntt| (ntt.prime().value() as f64).log2()).sum()
    }

    /// What so many inferences lose statistically, at most: the distance of replies from what does not depend on the weights.
    pub fn loss(&self, inferences: f64) -> f64 {
        inferences.sqrt() * self.0.flood.loss(self.0.deviation, DEGREE * self.replies())
    }

    /// Bound on the noise of a sum.
    #[cfg(test)]
    pub(super) fn bound(&self) -> f64 {
        self.0.bound
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(super) fn reply_mask(&self) -> u64 {
        u64::MAX >> (64 - self.reply_bits())
    }
}

impl Inner {
    fn new(plain: Ntt, ntts: [Ntt; WITH_SPECIAL], prime_bits: u32, reply_bits: u32, flood: Flood) -> Self {
        let value = |i: usize| ntts[i].prime().value();
        // The product of `q`'s primes but one, and of the special prime where asked for, modulo a prime.
        let product = |modulo: &crate::zq::Prime, but: usize, special: bool| {
            let factors = (0..WITH_SPECIAL).filter(|&i| i != but && (i < LIMBS || special));
            factors.fold(1, |product, i| modulo.multiply(product, value(i) % modulo.value()))
        };
        let of_limbs = |f: &dyn Fn(usize, &crate::zq::Prime) -> u64| {
            std::array::from_fn(|i| {
                let prime = ntts[i].prime();
                prime.factor(f(i, prime))
            })
        };
        let first = ntts[0].prime();
        Self {
            order: Order::new(DEGREE),
            modulus: plain.prime().factor(product(plain.prime(), WITH_SPECIAL, false)),
            inverse_plain: of_limbs(&|_, prime| prime.invert(plain.prime().value())),
            inverse_rest: of_limbs(&|i, prime| prime.invert(product(prime, i, false))),
            raised: of_limbs(&|i, prime| product(prime, i, true)),
            inverse_special: std::array::from_fn(|i| ntts[i].prime().invert(value(LIMBS) % value(i))),
            inverse_second: first.factor(first.invert(value(1))),
            plain,
            ntts,
            prime_bits,
            reply_bits,
            bound: 0.0,
            deviation: 0.0,
            replies: 0,
            flood,
        }
    }

    /// `q`'s primes alone.
    pub(super) fn limbs(&self) -> &[Ntt; LIMBS] {
        self.ntts[..LIMBS].as_array().expect("the first of them")
    }
}

/// The largest primes of a width that suit the transform, the largest of all last.
fn primes(bits: u32) -> Option<[Ntt; WITH_SPECIAL]> {
    let special = Ntt::find(DEGREE, bits, u64::MAX)?;
    let first = Ntt::find(DEGREE, bits, special.prime().value())?;
    let second = Ntt::find(DEGREE, bits, first.prime().value())?;
    let third = Ntt::find(DEGREE, bits, second.prime().value())?;
    Some([first, second, third, special])
}
