//! Public keys.

use std::borrow::Borrow;
use std::sync::Arc;

use privet_prg::Prg;

use crate::arch::LIMB_BITS;
use crate::error::{Error, PeerMisbehaved};
use crate::integer::{Integer, from_limbs, invert, multiply, remainder, resize, to_limbs};
use crate::lanes::Lanes;
use crate::modulus::{Modulus, limbs_for};
use crate::primes::{is_probable_prime, small_primes};
use crate::proof::{self, CHALLENGES, SMALL_PRIMES};

/// Bits of a public key `n`, a product of two safe primes of half as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeySize {
    /// 2048 bits: 112 bits of security (NIST SP 800-57, part 1, table 2).
    #[default]
    Bits2048,
    /// 3072 bits: 128 bits of security.
    Bits3072,
    /// For tests of this crate only.
    #[cfg(test)]
    Insecure512,
}

impl KeySize {
    /// Bits of work that factoring takes (NIST SP 800-57, part 1, table 2).
    pub fn strength(self) -> f64 {
        match self {
            Self::Bits2048 => 112.0,
            Self::Bits3072 => 128.0,
            #[cfg(test)]
            Self::Insecure512 => 0.0,
        }
    }

    /// Bits of the public key.
    pub fn bits(self) -> usize {
        match self {
            Self::Bits2048 => 2048,
            Self::Bits3072 => 3072,
            #[cfg(test)]
            Self::Insecure512 => 512,
        }
    }

    /// Bytes of a public key on the wire, with its proof.
    pub fn public_key_bytes(self) -> usize {
        (1 + CHALLENGES) * self.bits() / 8
    }

    pub(crate) fn private_key_bytes(self) -> usize {
        self.bits() / 8
    }

    /// Bytes of a ciphertext on the wire.
    pub fn ciphertext_bytes(self) -> usize {
        self.bits() / 4
    }

    /// 64-bit words of a public key.
    pub(crate) fn words(self) -> usize {
        self.bits() / 64
    }

    /// Limbs of numbers modulo the square of a prime. Numbers modulo `n^2` have twice as many.
    pub(crate) fn half_limbs(self) -> usize {
        limbs_for(self.bits())
    }
}

/// A public key `n` with `gcd(n, phi(n)) = 1`, and what its holder computes with; a clone shares it.
#[derive(Clone)]
pub struct PublicKey {
    inner: Arc<Inner>,
}

struct Inner {
    size: KeySize,
    n: Integer,
    n_squared: Integer,
    /// Of `n^2`, the same in all lanes.
    modulus: Modulus,
    /// `n R^2`: what turns a plaintext `m` into `m n` in Montgomery's form.
    step: Lanes,
    /// For whoever gets the key.
    proof: Vec<u8>,
}

impl PublicKey {
    /// Reads a peer's key and its proof (`crate::proof`) that noise made under it hides: little-endian, as long as its size
    /// asks for. That the key is a product of two safe primes is not proved, and nothing here depends on it.
    ///
    /// # Errors
    /// [`PeerMisbehaved::WrongLength`], and [`PeerMisbehaved::Key`] for an even or short number, one with a factor
    /// below 2^16, a prime, a square or higher power, and for a proof that does not hold. [`Error::Io`] if there is no
    /// entropy for the test of primality.
    pub fn from_bytes(size: KeySize, bytes: &[u8]) -> Result<Self, Error> {
        let expected = size.public_key_bytes();
        if bytes.len() != expected {
            return Err(PeerMisbehaved::WrongLength { what: "a public key", expected, actual: bytes.len() }.into());
        }
        let (n, proof) = bytes.split_at(size.bits() / 8);
        let (words, _) = n.as_chunks();
        let n = Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word)));
        let refuse = |reason| Err(PeerMisbehaved::Key { reason }.into());
        if n.bits() as usize != size.bits() {
            return refuse("its top bit is not set");
        }
        if n.as_words()[0] & 1 == 0 {
            return refuse("it is even");
        }
        if has_small_factor(&n) {
            return refuse("it has a small factor");
        }
        if is_probable_prime(&n, &mut Prg::from_os()?) {
            return refuse("it is a prime");
        }
        if is_perfect_power(&n) {
            return refuse("it is a perfect power");
        }
        if !proof::holds(size, &n, proof) {
            return refuse("the proof that n and phi(n) have no common factor does not hold");
        }
        Ok(Self::new(size, n, proof.to_vec()))
    }

    /// A key of exactly `size` bits, with its proof, which is not looked at.
    pub(crate) fn new(size: KeySize, n: Integer, proof: Vec<u8>) -> Self {
        let limbs = 2 * size.half_limbs();
        let n_squared = multiply(&n, &n);
        let modulus = Modulus::uniform(&n_squared, limbs);
        let mut step = Lanes::broadcast(&to_limbs(n.as_words(), limbs));
        modulus.enter(&mut step);
        modulus.enter(&mut step);
        Self { inner: Arc::new(Inner { size, n, n_squared, modulus, step, proof }) }
    }

    /// The key and its proof as they go to a peer: `size().public_key_bytes()` bytes, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let n = self.inner.n.as_words().iter().flat_map(|word| word.to_le_bytes());
        n.chain(self.inner.proof.iter().copied()).collect()
    }

    /// Bits of the key.
    pub fn size(&self) -> KeySize {
        self.inner.size
    }

    /// The key itself.
    pub(crate) fn n(&self) -> &Integer {
        &self.inner.n
    }

    pub(crate) fn n_squared(&self) -> &Integer {
        &self.inner.n_squared
    }

    /// Arithmetic modulo its square.
    pub(crate) fn modulus(&self) -> &Modulus {
        &self.inner.modulus
    }

    /// Whether all numbers modulo `n^2`, in Montgomery's form, are invertible; by one inversion of their product.
    pub(crate) fn all_invertible(&self, numbers: impl IntoIterator<Item = impl Borrow<Lanes>>) -> bool {
        let modulus = self.modulus();
        let mut product = modulus.one().clone();
        numbers.into_iter().for_each(|lanes| modulus.multiply(&mut product, lanes.borrow()));
        modulus.fold(&mut product);
        let product = from_limbs(&product.lane(0), 2 * self.size().words() + 1);
        // Montgomery's form differs by a power of two, which is invertible.
        invert(&product, self.n()).is_some()
    }

    /// `n R^2`.
    pub(crate) fn step(&self) -> &Lanes {
        &self.inner.step
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.n == other.inner.n
    }
}

impl Eq for PublicKey {}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({} bits, limbs of {LIMB_BITS})", self.inner.size.bits())
    }
}

/// Whether a prime below 2^16 divides the number.
fn has_small_factor(n: &Integer) -> bool {
    small_primes(SMALL_PRIMES).iter().any(|&prime| remainder(n, prime) == 0)
}

/// Whether the number is `a^k` for some `k` above 1. As it has no factor below 2^16, `k` is at most a 16th of its bits.
fn is_perfect_power(n: &Integer) -> bool {
    let bits = n.bits() as usize;
    std::iter::once(2)
        .chain(small_primes(bits / 16 + 1).into_iter().map(|prime| prime as usize))
        .any(|exponent| *n == power(&root(n, exponent), exponent, n.as_words().len()))
}

/// The largest number whose power is at most `n`, bit by bit from the top.
fn root(n: &Integer, exponent: usize) -> Integer {
    let words = n.as_words().len();
    let mut root = vec![0_u64; words];
    for bit in (0..n.bits() as usize / exponent + 1).rev() {
        root[bit / 64] |= 1 << (bit % 64);
        if power(&Integer::from_words(root.iter().copied()), exponent, words) > *n {
            root[bit / 64] &= !(1 << (bit % 64));
        }
    }
    Integer::from_words(root)
}

/// `base^exponent`, or the largest number of as many words if that is larger.
fn power(base: &Integer, exponent: usize, words: usize) -> Integer {
    let mut result = resize(&Integer::one(), words);
    for bit in (0..usize::BITS - exponent.leading_zeros()).rev() {
        result = result.saturating_mul(&result);
        if exponent >> bit & 1 == 1 {
            result = result.saturating_mul(base);
        }
    }
    result
}
