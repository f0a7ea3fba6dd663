//! The proof that a public key `n` has no factor in common with `phi(n)`: `n`-th roots of numbers that a hash of `n`
//! chooses (Gennaro, Micciancio and Rabin, CCS 1998; made non-interactive as Goldberg, Reyzin, Sagga and Baldimtsi,
//! ASIACRYPT 2019).
//!
//! Threat model: the owner of the key made it as it liked. If a prime `p` divides both `n` and `phi(n)`, then `r^n` does not
//! reach all of what a ciphertext's noise can be: at most one unit modulo `n` in `p` is an `n`-th power, and noise made of
//! such powers leaves the factor of order `p` of a result as it is, from which the owner of the key reads weights. The
//! reader of a key looks for primes below `2^16` itself, so `p` is larger, and each of [`CHALLENGES`] random units has a
//! root with a chance below `2^-16`: a key with such a factor passes with a chance below `2^-128`, and whoever tries many
//! keys needs `2^128` hashes.
//!
//! The challenges depend on `n` alone, not on a session: what is proved is a fact about `n`, and a proof that is sent again
//! proves the same again. The proof tells nothing else, because anybody can draw roots at random and have their powers.
//!
//! Cost: [`CHALLENGES`] numbers of the length of the key; eight powers side by side modulo `n` at either side.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::arch::LANES;
use crate::integer::{Integer, from_limbs, invert, multiply, reduce, to_limbs};
use crate::keys::KeySize;
use crate::lanes::Lanes;
use crate::modulus::Modulus;
use crate::power::power_uniform;

/// Numbers whose roots are shown. With no prime factor below `2^16` each is worth 16 bits of soundness.
pub(crate) const CHALLENGES: usize = LANES;

/// The primes that whoever reads a key must have ruled out as factors.
pub(crate) const SMALL_PRIMES: usize = 1 << 16;

const _: () = assert!(CHALLENGES * SMALL_PRIMES.ilog2() as usize >= 128);

/// Parts the challenges from all else that is hashed.
const LABEL: &[u8] = b"privet paillier: gcd(n, phi(n)) = 1";

/// Bits of a challenge before it is reduced, beyond those of the key.
const EXTRA_BITS: usize = 128;

/// The roots of a key's challenges, little-endian, one after the other.
pub(crate) fn prove(size: KeySize, n: &Integer, p: &Integer, q: &Integer) -> Vec<u8> {
    let modulus = Modulus::uniform(n, size.half_limbs());
    let exponent = root_exponent(n, p, q);
    let roots = power_uniform(&modulus, &enter(&modulus, &challenges(size, n)), size.bits(), exponent.as_words());
    let roots = leave(&modulus, roots, size.words());
    roots.iter().flat_map(|root| root.as_words().iter().flat_map(|word| word.to_le_bytes())).collect()
}

/// Whether `proof` shows that `n`, which has no factor below `2^16`, has none in common with `phi(n)`.
pub(crate) fn holds(size: KeySize, n: &Integer, proof: &[u8]) -> bool {
    let each = size.bits() / 8;
    if proof.len() != CHALLENGES * each {
        return false;
    }
    let roots: Vec<Integer> = proof
        .chunks_exact(each)
        .map(|bytes| {
            let (words, _) = bytes.as_chunks();
            Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word)))
        })
        .collect();
    let challenges = challenges(size, n);
    // A number that is no unit would have a root more often than the argument counts. It would also be a factor of the key.
    let product = challenges.iter().fold(Integer::one(), |product, each| reduce(&multiply(&product, each), n));
    if roots.iter().any(|root| root >= n) || invert(&product, n).is_none() {
        return false;
    }
    let modulus = Modulus::uniform(n, size.half_limbs());
    let powers = power_uniform(&modulus, &enter(&modulus, &roots), size.bits(), n.as_words());
    leave(&modulus, powers, size.words()) == challenges
}

/// Numbers below `n`, as good as uniform, by SHA-256 of the key, the number's index and a counter.
pub(crate) fn challenges(size: KeySize, n: &Integer) -> Vec<Integer> {
    let key: Vec<u8> = n.as_words().iter().flat_map(|word| word.to_le_bytes()).collect();
    let blocks = (size.bits() + EXTRA_BITS).div_ceil(256);
    let challenge = |index: usize| {
        let words = (0..blocks).flat_map(|block| {
            let place = [index as u8, block as u8];
            let digest = Sha256::new().chain_update(LABEL).chain_update(place).chain_update(&key).finalize();
            let (words, _) = digest.as_chunks();
            words.iter().map(|&word| u64::from_le_bytes(word)).collect::<Vec<_>>()
        });
        reduce(&Integer::from_words(words), n)
    };
    (0..CHALLENGES).map(challenge).collect()
}

/// `1 / n` modulo `2 p' q'`, the exponent of the units modulo `n`, where the safe primes are `2 p' + 1` and `2 q' + 1`; in
/// constant time.
fn root_exponent(n: &Integer, p: &Integer, q: &Integer) -> Zeroizing<Integer> {
    let odd_part = Zeroizing::new(multiply(&Zeroizing::new(p.shr(1)), &Zeroizing::new(q.shr(1))));
    let inverse = Zeroizing::new(invert(n, &odd_part).expect("different safe primes of one length"));
    // As `n` is odd, its inverse modulo twice an odd number is the odd one of the two candidates.
    let even = (inverse.as_words()[0] & 1).wrapping_sub(1);
    let missing = Zeroizing::new(Integer::from_words(odd_part.as_words().iter().map(|word| word & even)));
    Zeroizing::new(inverse.wrapping_add(&*missing))
}

fn enter(modulus: &Modulus, numbers: &[Integer]) -> Lanes {
    let mut lanes = Lanes::zero(modulus.limbs());
    numbers.iter().enumerate().for_each(|(lane, x)| lanes.set(lane, &to_limbs(x.as_words(), modulus.limbs())));
    modulus.enter(&mut lanes);
    lanes
}

fn leave(modulus: &Modulus, mut lanes: Lanes, words: usize) -> Vec<Integer> {
    modulus.leave(&mut lanes);
    (0..LANES).map(|lane| from_limbs(&lanes.lane(lane), words)).collect()
}
