//! Private keys: encryption and decryption modulo the squares of the two primes.

use privet_prg::{Prg, Seed};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::arch::LANES;
use crate::ciphertext::Ciphertexts;
use crate::error::{Error, Misuse};
use crate::factor::Factor;
use crate::integer::{Integer, invert, multiply, nonzero, reduce, resize, to_limbs};
use crate::keys::{KeySize, PublicKey};
use crate::lanes::{Lanes, Residues, load, store};
use crate::noise::Noise;
use crate::plaintext::Plaintext;
use crate::primes::{is_probable_prime, safe_prime};
use crate::proof;

/// The private key: two safe primes `p` and `q`; wiped on drop, never printed. Everything done with it but its making
/// takes a time that depends on counts and sizes alone.
pub struct PrivateKey {
    public: PublicKey,
    factors: [Factor; 2],
    /// `1 / q` modulo `p`.
    inverse: Zeroizing<Integer>,
    /// For each factor the number modulo `n^2` that is 1 modulo its square and 0 modulo the other's, times `R^2`.
    idempotents: [Lanes; 2],
}

impl PrivateKey {
    /// A new key from the operating system's randomness. Takes a fraction of a second for 2048 bits, a few for 3072.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system gives no entropy.
    pub fn generate(size: KeySize) -> Result<Self, Error> {
        Self::generate_from(size, &mut Prg::from_os()?)
    }

    pub(crate) fn generate_from(size: KeySize, prg: &mut Prg) -> Result<Self, Error> {
        let bits = size.bits() / 2;
        loop {
            let [p, q] = [safe_prime(bits, prg), safe_prime(bits, prg)];
            // Far apart, as FIPS 186-5 (appendix A.1.3) asks for: further than 2^(bits - 100).
            let distance = Zeroizing::new(if *p > *q { p.wrapping_sub(&*q) } else { q.wrapping_sub(&*p) });
            if distance.bits() as usize > bits - 100 {
                return Ok(Self::from_primes(size, p, q, prg));
            }
        }
    }

    fn from_primes(size: KeySize, p: Zeroizing<Integer>, q: Zeroizing<Integer>, prg: &mut Prg) -> Self {
        let n = multiply(&p, &q);
        let proof = proof::prove(size, &n, &p, &q);
        let public = PublicKey::new(size, n, proof);
        let modulus = public.modulus();
        let idempotent = |factor: &Integer, cofactor: &Integer| {
            let [factor, cofactor] = [factor, cofactor].map(|prime| Zeroizing::new(multiply(prime, prime)));
            let inverse = Zeroizing::new(invert(&cofactor, &factor).expect("different primes"));
            let product = Zeroizing::new(multiply(&cofactor, &inverse));
            let mut lanes = Lanes::broadcast(&Zeroizing::new(to_limbs(product.as_words(), modulus.limbs())));
            modulus.enter(&mut lanes);
            modulus.enter(&mut lanes);
            lanes
        };
        let idempotents = [idempotent(&p, &q), idempotent(&q, &p)];
        let inverse = Zeroizing::new(invert(&q, &p).expect("different primes"));
        let factors = [Factor::new(size, &p, &q, prg), Factor::new(size, &q, &p, prg)];
        Self { public, factors, inverse, idempotents }
    }

    /// The public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Both primes, little-endian, for a file that nobody else reads.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let words = self.factors.iter().flat_map(|factor| factor.prime().as_words());
        Zeroizing::new(words.flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Reads what [`PrivateKey::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Misuse::NotAPrivateKey`] unless it is two different safe primes of the right length; [`Error::Io`] if there is
    /// no entropy to test that.
    pub fn from_bytes(size: KeySize, bytes: &[u8]) -> Result<Self, Error> {
        let mut prg = Prg::from_os()?;
        if bytes.len() != size.private_key_bytes() {
            return Err(Misuse::NotAPrivateKey.into());
        }
        let [p, q] = [0, 1].map(|half| {
            let (words, _) = bytes[half * bytes.len() / 2..][..bytes.len() / 2].as_chunks();
            Zeroizing::new(Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word))))
        });
        let bits = size.bits() as u32 / 2;
        let mut valid = |prime: &Integer| {
            let long = prime.bits() == bits && prime.bit_vartime(bits - 2) && prime.as_words()[0] & 3 == 3;
            long && is_probable_prime(prime, &mut prg) && is_probable_prime(&Zeroizing::new(prime.shr(1)), &mut prg)
        };
        if !valid(&p) || !valid(&q) || *p == *q {
            return Err(Misuse::NotAPrivateKey.into());
        }
        Ok(Self::from_primes(size, p, q, &mut prg))
    }

    /// Noise that is uniform among the `n`-th residues: modulo the square of either prime, a generator of the residues
    /// to a uniform exponent.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system gives no entropy.
    pub fn noise(&self, count: usize) -> Result<Noise, Error> {
        let modulus = self.public.modulus();
        let mut prg = Prg::from_os()?;
        let seeds: Vec<Seed> = (0..count.div_ceil(LANES)).map(|_| prg.seed()).collect();
        let mut residues = Residues::zero(modulus.limbs(), count);
        residues.eights_mut().zip(&seeds).par_bridge().for_each(|(numbers, seed)| {
            let mut prg = Prg::from_seed(seed);
            let [mut noise, other] = [0, 1].map(|i| {
                let mut lanes = self.factors[i].noise(&mut prg);
                lanes.0.resize(modulus.limbs(), crate::arch::Row::ZERO);
                modulus.multiply(&mut lanes, &self.idempotents[i]);
                lanes
            });
            modulus.add(&mut noise, &other);
            store(&noise, numbers);
        });
        Ok(Noise::new(&self.public, residues))
    }

    /// Encrypts, at a third of the cost of an encryption without the private key.
    ///
    /// # Errors
    /// [`Misuse::PlaintextTooLarge`]; [`Error::Io`] if the operating system gives no entropy.
    pub fn encrypt(&self, plaintexts: &[Plaintext]) -> Result<Ciphertexts, Error> {
        Ciphertexts::encrypt(plaintexts, self.noise(plaintexts.len())?)
    }

    /// Decrypts, eight at a time on the threads of the pool.
    ///
    /// # Errors
    /// [`Misuse::KeysDiffer`].
    pub fn decrypt(&self, ciphertexts: &Ciphertexts) -> Result<Vec<Plaintext>, Error> {
        if *ciphertexts.key() != self.public {
            return Err(Misuse::KeysDiffer.into());
        }
        let modulus = self.public.modulus();
        let eights: Vec<_> = ciphertexts.residues().eights().collect();
        let decrypted: Vec<Vec<Plaintext>> = eights
            .into_par_iter()
            .map(|numbers| {
                let mut lanes = load(modulus.limbs(), numbers);
                modulus.leave(&mut lanes);
                let [mod_p, mod_q] = [0, 1].map(|i| self.factors[i].decrypt(&lanes));
                let pairs = mod_p.iter().zip(&mod_q).take(numbers.len() / modulus.limbs());
                pairs.map(|(mod_p, mod_q)| self.combine(mod_p, mod_q)).collect()
            })
            .collect();
        Ok(decrypted.into_iter().flatten().collect())
    }

    /// The number below `n` that is `residue_p` modulo `p` and `residue_q` modulo `q` (Garner), as a signed one.
    fn combine(&self, residue_p: &Integer, residue_q: &Integer) -> Plaintext {
        let [p, q] = [self.factors[0].prime(), self.factors[1].prime()];
        let words = self.public.size().words();
        let residue_q_mod_p = Zeroizing::new(reduce(residue_q, p));
        let difference = Zeroizing::new(residue_p.sub_mod(&residue_q_mod_p, &nonzero(p)));
        let quotient = Zeroizing::new(difference.mul_mod(&self.inverse, &nonzero(p)));
        let residue_q = Zeroizing::new(resize(residue_q, words));
        let residue = Zeroizing::new(multiply(q, &quotient).wrapping_add(&*residue_q));
        let n = self.public.n();
        // All bits if the residue is above half of `n`, by the borrow of `(n >> 1) - residue`.
        let (_, borrow) = n.shr(1).borrowing_sub(&*residue, crypto_bigint::Limb::ZERO);
        let negative = borrow.0;
        let mut out = vec![0; words];
        let mut carry = 0;
        for (i, out) in out.iter_mut().enumerate() {
            let subtrahend = n.as_words()[i] & negative;
            let difference = i128::from(residue.as_words()[i]) - i128::from(subtrahend) + carry;
            (*out, carry) = (difference as u64, difference >> 64);
        }
        Plaintext::from_words(out)
    }
}

#[cfg(test)]
impl PrivateKey {
    /// The two primes.
    pub(crate) fn primes(&self) -> [&Integer; 2] {
        [self.factors[0].prime(), self.factors[1].prime()]
    }

    /// Whether a ciphertext's bytes are a square modulo either prime, as two bits.
    pub(crate) fn characters(&self, bytes: &[u8]) -> usize {
        let (words, _) = bytes.as_chunks();
        let value = Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word)));
        let square = |prime: &Integer| {
            let parameters = crypto_bigint::modular::BoxedMontyParams::new(crate::integer::odd(prime));
            let residue = crypto_bigint::modular::BoxedMontyForm::new(reduce(&value, prime), &parameters);
            bool::from(residue.pow(&prime.shr(1)).retrieve().is_one())
        };
        self.primes().into_iter().enumerate().map(|(bit, prime)| usize::from(square(prime)) << bit).sum()
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}
