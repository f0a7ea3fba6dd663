//! Ring degree, modulus and plaintext ring, with their security and their noise checked.

use std::sync::Arc;

use crate::arch::tile;
use crate::error::{Error, Misuse};
use crate::flood::Flood;
use crate::merge::MOST_LEVELS;
use crate::noise;
use crate::ntt::Ntt;
use crate::wire::packed_bytes;
use crate::zq::Factor;

/// The largest modulus, in bits, that keeps 128 bits of security against classical attacks with a uniform ternary secret
/// and errors of standard deviation 3.2: Bossuat and others, "Security Guidelines for Implementing Homomorphic Encryption"
/// (2024), table 5.2, the one that suite `ckks` keeps to. (The Homomorphic Encryption Security Standard of 2018 has 109 and 218 bits
/// at 4096 and 8192, by an older estimate.) Keys, ciphertexts and replies are all modulo `q` at most.
const SECURITY_TABLE: [(usize, u32); 4] = [(1024, 26), (2048, 53), (4096, 106), (8192, 214)];

/// Primes of up to 50 bits take the fastest code of the transform; wider ones work up to this.
const WIDEST_PRIME_BITS: u32 = 60;
const NARROWEST_PRIME_BITS: u32 = 20;

/// How a result leaves the server as two shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resharing {
    /// Under a uniform mask over message and noise alike. Shares are off by one unit in the last place now and then.
    #[default]
    Approximate,
    /// The server's share encoded exactly, and the noise under a flood that is wide enough for all results of an inference. Shares are
    /// exact, always; the modulus is about 40 bits larger.
    Exact,
}

/// What a program asks of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bound on the sum of absolute weights that meet in one result.
    pub weight_sum: u64,
    /// Bound on the absolute weights.
    pub heaviest: u64,
    /// Results of an inference: all of its layers' together.
    pub results: usize,
    /// Whether weights are masks: uniform, each used once, and independent of all errors.
    pub masks: bool,
}

/// Everything both parties must agree on: derived from public widths alone. Cheap to clone.
///
/// The modulus is `q = p0 p1` with two primes, the plaintext ring is Z_2^l. A result leaves the server modulo
/// `2^reply_bits`, where `reply_bits - l` guard bits hold the noise.
#[derive(Clone, Debug)]
pub struct Parameters(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    degree: usize,
    ring_bits: u32,
    resharing: Resharing,
    reply_bits: u32,
    load: Load,
    ntts: [Ntt; 2],
    /// `q mod 2^l`: what remains of `q m` modulo `2^l` decides how `q m / 2^l` rounds.
    modulus_low: u64,
    /// `2^-l` modulo each prime.
    inverse_scale: [Factor; 2],
    /// `1 / p1` modulo `p0`.
    inverse_second: Factor,
    merging: Option<Merging>,
}

/// What the merging of replies works with.
#[derive(Debug)]
pub(crate) struct Merging {
    /// Up to `2^levels` replies become one.
    pub(crate) levels: u32,
    /// Modulo the primes of `q` and the special prime `P`.
    pub(crate) ntts: [Ntt; 3],
    /// `1 / P` modulo each prime of `q`.
    pub(crate) inverse_special: [u64; 2],
}

impl Parameters {
    /// The smallest secure parameters for products of Z_2^`ring_bits` with integer weights below `2^weight_bits` in
    /// absolute value, at most `inner` of which meet in one result, for `results` results in an inference.
    ///
    /// # Errors
    /// [`Misuse::RingWidth`] unless `8 <= ring_bits <= 50`; [`Misuse::NoiseTooLarge`] if no secure modulus holds the noise.
    pub fn choose(
        ring_bits: u32,
        weight_bits: u32,
        inner: usize,
        results: usize,
        resharing: Resharing,
    ) -> Result<Self, Error> {
        let load = load_of(ring_bits, weight_bits, inner, results)?;
        Self::smallest(ring_bits, load, resharing)
    }

    /// As [`Parameters::choose`], for products of ciphertexts with uniform masks of `mask_bits` bits, as signed numbers: the bound on their noise fails
    /// with probability `2^-80` a result. Replies are reshared approximately.
    ///
    /// # Errors
    /// As [`Parameters::choose`].
    pub fn choose_for_masks(ring_bits: u32, mask_bits: u32, inner: usize, results: usize) -> Result<Self, Error> {
        let load = load_of(ring_bits, mask_bits.saturating_sub(1), inner, results)?;
        Self::smallest(ring_bits, Load { masks: true, ..load }, Resharing::Approximate)
    }

    fn smallest(ring_bits: u32, load: Load, resharing: Resharing) -> Result<Self, Error> {
        for (degree, limit) in SECURITY_TABLE.into_iter().filter(|(degree, _)| [4096, 8192].contains(degree)) {
            if let Some(parameters) = Self::smallest_of(degree, limit, ring_bits, load, resharing)? {
                return Ok(parameters);
            }
        }
        Err(too_noisy(ring_bits, noise::product_bound(8192, &load).log2()).into())
    }

    /// The smallest of a degree, whose modulus has up to `limit` bits; `None` if it does not hold the noise.
    fn smallest_of(
        degree: usize,
        limit: u32,
        ring_bits: u32,
        load: Load,
        resharing: Resharing,
    ) -> Result<Option<Self>, Error> {
        let widest = if load.masks { tile::WIDEST_PRIME_BITS } else { WIDEST_PRIME_BITS };
        let needed = noise::modulus_bits(degree, ring_bits, &load, resharing)?;
        let most = limit.min(2 * widest);
        // The primes lie below the powers of two, so a modulus of just the needed bits can fall short.
        for bits in needed.max(2 * NARROWEST_PRIME_BITS)..=most {
            match Self::new(degree, [bits.div_ceil(2), bits / 2], ring_bits, load, resharing) {
                Err(Error::Misuse(Misuse::NoiseTooLarge { .. } | Misuse::NoPrime { .. })) => {}
                decided => return decided.map(Some),
            }
        }
        Ok(None)
    }

    /// The parameters with the largest suitable primes of these widths (the wider first).
    ///
    /// # Errors
    /// [`Misuse::UnknownDegree`], [`Misuse::Insecure`], [`Misuse::NoPrime`], [`Misuse::RingWidth`] or
    /// [`Misuse::NoiseTooLarge`], whichever applies first.
    pub fn new(
        degree: usize,
        prime_bits: [u32; 2],
        ring_bits: u32,
        load: Load,
        resharing: Resharing,
    ) -> Result<Self, Error> {
        Self::with_levels(degree, prime_bits, ring_bits, load, resharing, 0)
    }

    /// The smallest parameters for the same load at twice the degree, without merging; `None` if there are none.
    pub fn doubled(&self) -> Option<Self> {
        let degree = 2 * self.degree();
        Self::smallest_of(degree, limit(degree).ok()?, self.ring_bits(), self.0.load, self.resharing()).ok().flatten()
    }

    /// The parameters under which up to `2^levels` replies can also be merged into one ([`crate::Merge`]): of the same degree, with a
    /// special prime beside the modulus. `None` if resharing is exact, for more than nine levels, or if no secure modulus holds both.
    pub fn merging(&self, levels: u32) -> Option<Self> {
        if levels == 0 || levels > MOST_LEVELS || self.resharing() == Resharing::Exact {
            return None;
        }
        let least: u32 = self.prime_bits().iter().sum();
        let wider = |bits: u32| {
            let prime_bits = [bits.div_ceil(2), bits / 2];
            Self::with_levels(self.degree(), prime_bits, self.ring_bits(), self.0.load, self.resharing(), levels).ok()
        };
        let most = limit(self.degree()).ok()?.checked_sub(NARROWEST_PRIME_BITS)?;
        (least..=most.min(2 * WIDEST_PRIME_BITS)).find_map(wider)
    }

    /// Bytes of the keys of one level of merging beside this modulus, of which [`Parameters::merging`] may take a few bits more; `None` if
    /// there is no merging.
    pub fn merging_key_bytes(&self) -> Option<usize> {
        let [wide, narrow] = self.prime_bits();
        let special = limit(self.degree()).ok()?.checked_sub(wide + narrow)?.min(narrow);
        let merges = self.resharing() == Resharing::Approximate && special >= NARROWEST_PRIME_BITS;
        merges.then(|| 2 * (self.ciphertext_bytes() + packed_bytes(self.degree(), special)))
    }

    fn with_levels(
        degree: usize,
        prime_bits: [u32; 2],
        ring_bits: u32,
        load: Load,
        resharing: Resharing,
        levels: u32,
    ) -> Result<Self, Error> {
        let limit = limit(degree)?;
        let [wide, narrow] = prime_bits;
        let widths = NARROWEST_PRIME_BITS..=WIDEST_PRIME_BITS;
        let no_prime = Misuse::NoPrime { degree, bits: prime_bits };
        let modulus_bits = wide.saturating_add(narrow);
        if modulus_bits > limit {
            return Err(Misuse::Insecure { degree, modulus_bits, limit }.into());
        }
        if wide < narrow || !widths.contains(&wide) || !widths.contains(&narrow) {
            return Err(no_prime.into());
        }
        let reply_bits = noise::reply_bits(degree, ring_bits, &load, resharing)?;
        let first = Ntt::find(degree, wide, u64::MAX).ok_or_else(|| no_prime.clone())?;
        let second = Ntt::find(degree, narrow, first.prime().value()).ok_or_else(|| no_prime.clone())?;
        let (p0, p1) = (*first.prime(), *second.prime());
        let modulus = u128::from(p0.value()) * u128::from(p1.value());
        let merging = match levels {
            0 => None,
            // As wide as the second prime, or what is left.
            _ => Some(
                Merging::new(degree, [&first, &second], (limit - modulus_bits).min(narrow), levels).ok_or(no_prime)?,
            ),
        };
        let merged = merging.as_ref().map_or(0.0, |merging| {
            noise::merge_bound(degree, [p0.value(), p1.value()], merging.special().prime().value(), levels)
        });
        noise::check(degree, ring_bits, reply_bits, &load, modulus, resharing, merged)?;
        let inverse_scale = [p0, p1].map(|p| p.factor(p.invert(p.reduce(1 << ring_bits))));
        Ok(Self(Arc::new(Inner {
            degree,
            ring_bits,
            resharing,
            reply_bits,
            load,
            modulus_low: modulus as u64,
            inverse_scale,
            inverse_second: p0.factor(p0.invert(p1.value())),
            ntts: [first, second],
            merging,
        })))
    }

    /// The ring degree `N`: coefficients per polynomial.
    pub fn degree(&self) -> usize {
        self.0.degree
    }

    /// The width `l` of the plaintext ring.
    pub fn ring_bits(&self) -> u32 {
        self.0.ring_bits
    }

    /// The width of a returned coefficient.
    pub fn reply_bits(&self) -> u32 {
        self.0.reply_bits
    }

    /// The widths of the two primes.
    pub fn prime_bits(&self) -> [u32; 2] {
        self.ntts().each_ref().map(|ntt| ntt.prime().bits())
    }

    /// The two primes.
    pub fn primes(&self) -> [u64; 2] {
        self.ntts().each_ref().map(|ntt| ntt.prime().value())
    }

    /// Bound on the sum of absolute weights that meet in one result.
    pub fn weight_sum(&self) -> u64 {
        self.0.load.weight_sum
    }

    /// Replies that can be merged into one: `2^levels` at most.
    pub fn levels(&self) -> u32 {
        self.merging_with().map_or(0, |merging| merging.levels)
    }

    /// Bytes of a public key on the wire: a seed and one transformed polynomial, and for each level of merging two seeds and
    /// polynomials modulo one prime more.
    pub fn public_key_bytes(&self) -> usize {
        self.ciphertext_bytes() + self.levels() as usize * self.level_key_bytes()
    }

    /// Bytes of the key of one level of merging on the wire.
    pub(crate) fn level_key_bytes(&self) -> usize {
        let special = |merging: &Merging| packed_bytes(self.degree(), merging.special().prime().bits());
        2 * (self.ciphertext_bytes() + self.merging_with().map_or(0, special))
    }

    /// Bytes of a fresh ciphertext on the wire: a seed and one transformed polynomial.
    pub fn ciphertext_bytes(&self) -> usize {
        16 + self.polynomial_bytes()
    }

    /// Bytes of a reply of which `results` coefficients are used.
    pub fn reply_bytes(&self, results: usize) -> usize {
        packed_bytes(self.degree(), self.reply_bits()) + packed_bytes(results, self.reply_bits())
    }

    /// How far the two shares of a result may be from the exact product, in units of the last place: 1, but for a
    /// failure of probability [`Parameters::failure_bits`]; 0 if resharing is exact.
    pub fn error_bound(&self) -> u64 {
        match self.resharing() {
            Resharing::Approximate => 1,
            Resharing::Exact => 0,
        }
    }

    /// A share is further off than [`Parameters::error_bound`] with probability below `2^-failure_bits` each; infinity if
    /// resharing is exact.
    pub fn failure_bits(&self) -> f64 {
        match self.resharing() {
            Resharing::Approximate => {
                let lost = noise::lost(&self.0.load, self.levels() > 0);
                noise::failure_bits(self.degree(), self.ring_bits(), self.reply_bits(), lost)
            }
            Resharing::Exact => f64::INFINITY,
        }
    }

    /// Results of an inference that the parameters were chosen for.
    pub fn results(&self) -> usize {
        self.0.load.results
    }

    /// Bits of all primes that a key of these parameters is used with.
    pub fn modulus_bits(&self) -> f64 {
        let special = self.merging_with().map(|merging| merging.special().prime().value());
        self.primes().into_iter().chain(special).map(|prime| (prime as f64).log2()).sum()
    }

    /// What so many inferences lose statistically, at most: the probability that a result is further off than
    /// [`Parameters::error_bound`], or the distance of replies from what does not depend on the weights.
    pub fn loss(&self, inferences: f64) -> f64 {
        let results = self.results() as f64;
        match self.resharing() {
            Resharing::Approximate => inferences * results * (-self.failure_bits()).exp2(),
            Resharing::Exact => inferences.sqrt() * noise::flood_loss(self.degree(), &self.0.load),
        }
    }

    /// How results leave the server.
    pub fn resharing(&self) -> Resharing {
        self.0.resharing
    }

    /// What hides the noise of an exact reply.
    pub(crate) fn flood(&self) -> Flood {
        noise::flood(self.degree(), &self.0.load)
    }

    /// Whether both describe the same scheme: objects of one work with the other.
    pub fn agrees_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.degree() == other.degree()
                && self.ring_bits() == other.ring_bits()
                && self.resharing() == other.resharing()
                && self.results() == other.results()
                && self.levels() == other.levels()
                && self.primes() == other.primes())
    }

    pub(crate) fn ntts(&self) -> &[Ntt; 2] {
        &self.0.ntts
    }

    pub(crate) fn merging_with(&self) -> Option<&Merging> {
        self.0.merging.as_ref()
    }

    pub(crate) fn modulus_low(&self) -> u64 {
        self.0.modulus_low
    }

    pub(crate) fn inverse_scale(&self) -> &[Factor; 2] {
        &self.0.inverse_scale
    }

    pub(crate) fn inverse_second(&self) -> Factor {
        self.0.inverse_second
    }

    pub(crate) fn reply_mask(&self) -> u64 {
        u64::MAX >> (64 - self.reply_bits())
    }

    pub(crate) fn ring_mask(&self) -> u64 {
        u64::MAX >> (64 - self.ring_bits())
    }

    fn polynomial_bytes(&self) -> usize {
        self.prime_bits().into_iter().map(|bits| packed_bytes(self.degree(), bits)).sum()
    }
}

/// The load of `inner` products with weights below `2^weight_bits`.
fn load_of(ring_bits: u32, weight_bits: u32, inner: usize, results: usize) -> Result<Load, Error> {
    let sum = 1_u64.checked_shl(weight_bits).and_then(|weight| weight.checked_mul(inner.max(1) as u64));
    let weight_sum = sum.ok_or(too_noisy(ring_bits, f64::from(weight_bits) + (inner as f64).log2()))?;
    Ok(Load { weight_sum, heaviest: 1 << weight_bits, results, masks: false })
}

fn too_noisy(ring_bits: u32, noise_bits: f64) -> Misuse {
    Misuse::NoiseTooLarge { noise_bits, ring_bits, modulus_bits: 2.0 * f64::from(WIDEST_PRIME_BITS) }
}

impl Merging {
    /// With the largest special prime of a width, if there is one.
    fn new(degree: usize, ntts: [&Ntt; 2], bits: u32, levels: u32) -> Option<Self> {
        let [first, second] = ntts;
        let special =
            Ntt::find(degree, Some(bits).filter(|&bits| bits >= NARROWEST_PRIME_BITS)?, second.prime().value())?;
        let inverse = |ntt: &Ntt| ntt.prime().invert(special.prime().value());
        let inverse_special = [inverse(first), inverse(second)];
        Some(Self { levels, ntts: [first.clone(), second.clone(), special], inverse_special })
    }

    /// The special prime's transform.
    pub(crate) fn special(&self) -> &Ntt {
        &self.ntts[2]
    }
}

/// The most bits of a modulus that is secure at this degree.
fn limit(degree: usize) -> Result<u32, Error> {
    let row = SECURITY_TABLE.into_iter().find(|row| row.0 == degree);
    Ok(row.ok_or(Misuse::UnknownDegree { degree })?.1)
}
