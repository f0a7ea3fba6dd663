//! The client's secret key and the public key it gives the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use privet_prg::{Prg, Wiped};
use zeroize::Zeroizing;

use crate::arch::{Values, vectorised};
use crate::encode::{decode, encode, integers};
use crate::error::{Error, Misuse, PeerMisbehaved};
use crate::merge::{self, LevelKey};
use crate::parameters::Parameters;
use crate::polynomial::{Multiplier, Polynomial};
use crate::sample;
use crate::wire::{packed_bytes, unpack};

/// Inferences that one key serves. What replies may lose statistically is stated for as many ([`Parameters::loss`]), and a server
/// refuses to reply beyond, so whoever asks for more makes a new key before.
pub const INFERENCES_PER_KEY: u64 = 1024;

/// The client's secret: a polynomial `s` with coefficients in {-1, 0, 1}. Wiped when dropped.
pub struct SecretKey {
    parameters: Parameters,
    /// The coefficients of `-s`.
    opposite: Wiped<i32>,
    /// `-s`, transformed.
    negated: Zeroizing<Multiplier>,
}

/// What the server re-randomises with: `(b, a)` with `b = -a s + e`, both transformed. And what it merges replies with.
#[derive(Clone, Debug)]
pub struct PublicKey {
    parameters: Parameters,
    pub(crate) b: Multiplier,
    pub(crate) a: Multiplier,
    /// What merges replies, if the parameters do.
    pub(crate) levels: Arc<Vec<LevelKey>>,
    left: Left,
}

/// Results that may still leave under a key, for all its copies together.
#[derive(Clone, Debug)]
pub(crate) struct Left(Arc<AtomicU64>);

impl Left {
    /// Of a fresh key for inferences of so many results.
    pub(crate) fn of(results: usize) -> Self {
        Self(Arc::new(AtomicU64::new(results as u64 * INFERENCES_PER_KEY)))
    }

    /// Takes some away. Fails with [`Misuse::KeyWornOut`] if there are fewer.
    pub(crate) fn take(&self, results: usize) -> Result<(), Error> {
        let less = |left: u64| left.checked_sub(results as u64);
        let result = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        Ok(result.map(drop).map_err(|_| Misuse::KeyWornOut { inferences: INFERENCES_PER_KEY })?)
    }
}

impl SecretKey {
    /// A fresh key.
    pub fn generate(parameters: &Parameters, prg: &mut Prg) -> Self {
        let secret = sample::ternary(parameters.degree(), prg);
        let opposite: Wiped<i32> = secret.iter().map(|s| -s).collect();
        let ntts = parameters.ntts();
        let negated = Polynomial::from_signed(ntts, parameters.degree(), &opposite).forward(ntts).multiplier(ntts);
        Self { parameters: parameters.clone(), opposite, negated: Zeroizing::new(negated) }
    }

    /// What it was made for.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// `-s`, transformed.
    #[cfg(test)]
    pub(crate) fn negated(&self) -> &Multiplier {
        &self.negated
    }

    /// The coefficients of `-s`.
    #[cfg(test)]
    pub(crate) fn opposite(&self) -> &[i32] {
        &self.opposite
    }

    /// A public key for the peer: [`Parameters::public_key_bytes`] bytes. Each call makes another one.
    pub fn public_key(&self, prg: &mut Prg) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.parameters.public_key_bytes());
        Polynomial::zero(self.parameters.degree()).write_masked(self.parameters.ntts(), &self.negated, prg, &mut out);
        merge::write_keys(&self.parameters, &self.opposite, prg, &mut out);
        out
    }

    /// Encrypts a polynomial of at most `N` elements of Z_2^l, each reduced, and appends [`Parameters::ciphertext_bytes`]
    /// bytes to `out`: a seed of the uniform part, and the other part transformed.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if the message is longer than `N`.
    pub fn encrypt(&self, message: &[u64], prg: &mut Prg, out: &mut Vec<u8>) -> Result<(), Error> {
        Misuse::check_most("message", self.parameters.degree(), message.len())?;
        encode(&self.parameters, message).write_masked(self.parameters.ntts(), &self.negated, prg, out);
        Ok(())
    }

    /// Opens a reply of the server at the positions it used, which both parties know: this party's share of the result,
    /// `[positions.len()]` elements of Z_2^l.
    ///
    /// # Errors
    /// [`PeerMisbehaved`] if the reply has the wrong length or dirty padding; [`Misuse::Position`] for a bad position.
    pub fn open(&self, reply: &[u8], positions: &[usize]) -> Result<Vec<u64>, Error> {
        let parameters = &self.parameters;
        check_positions(parameters, positions)?;
        Ok(decode(parameters, &self.phases(reply, positions)?))
    }

    /// `c0 + c1 s` modulo `2^reply_bits` at the used positions.
    pub(crate) fn phases(&self, reply: &[u8], positions: &[usize]) -> Result<Wiped<u64>, Error> {
        let parameters = &self.parameters;
        let (degree, bits) = (parameters.degree(), parameters.reply_bits());
        let expected = parameters.reply_bytes(positions.len());
        if reply.len() != expected {
            return Err(PeerMisbehaved::WrongLength { what: "reply", expected, actual: reply.len() }.into());
        }
        let (c1, c0) = reply.split_at(packed_bytes(degree, bits));
        let c1 = unpack("reply", c1, degree, bits)?;
        let c0 = unpack("reply", c0, positions.len(), bits)?;
        // The product with s over the integers: N 2^k in absolute value at most, which stays far below q.
        let parts = {
            let (mut factor, mut product) = (Values::zero(degree), Zeroizing::new(Values::zero(degree)));
            [0, 1].map(|i| {
                let ntt = &parameters.ntts()[i];
                factor.copy_from_slice(&c1);
                ntt.forward_unreduced(&mut factor, bits);
                product.fill(0);
                ntt.multiply_add(&mut product, &[(&factor, &self.negated.0[i])]);
                ntt.inverse(&mut product);
                positions.iter().map(|&at| product[at]).collect::<Wiped<_>>()
            })
        };
        let (mut phases, mask) = (Wiped::from(integers(parameters, [&parts[0], &parts[1]])), parameters.reply_mask());
        vectorised(|| phases.iter_mut().zip(&c0).for_each(|(x, c0)| *x = c0.wrapping_sub(*x) & mask));
        Ok(phases)
    }
}

impl PublicKey {
    /// Reads the key that the client sent.
    ///
    /// # Errors
    /// [`PeerMisbehaved`] if it has the wrong length or a residue that is not reduced.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, Error> {
        let (expected, actual) = (parameters.public_key_bytes(), bytes.len());
        if actual != expected {
            return Err(PeerMisbehaved::WrongLength { what: "public key", expected, actual }.into());
        }
        let (key_bytes, levels) = bytes.split_at(parameters.ciphertext_bytes());
        let [b, a] = Polynomial::read_masked(parameters.ntts(), parameters.degree(), "public key", key_bytes)?;
        let [b, a] = [b, a].map(|part| part.multiplier(parameters.ntts()));
        let levels = Arc::new(merge::read_keys(parameters, levels)?);
        Ok(Self { parameters: parameters.clone(), b, a, levels, left: Left::of(parameters.results()) })
    }

    /// What it was made for.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Counts results that leave under this key. Fails with [`Misuse::KeyWornOut`] beyond [`INFERENCES_PER_KEY`]
    /// inferences.
    pub(crate) fn spend(&self, results: usize) -> Result<(), Error> {
        self.left.take(results)
    }
}

/// Positions must rise and stay below the degree.
pub(crate) fn check_positions(parameters: &Parameters, positions: &[usize]) -> Result<(), Error> {
    let degree = parameters.degree();
    let pairs = || positions.iter().zip(positions.iter().skip(1));
    // All of them, so that many are compared at once.
    let rises = pairs().fold(true, |rises, (before, after)| rises & (before < after));
    let rising = if rises { None } else { pairs().find(|(before, after)| before >= after).map(|(_, after)| *after) };
    let beyond = positions.last().copied().filter(|&last| last >= degree);
    match rising.or(beyond) {
        Some(position) => Err(Misuse::Position { position, degree }.into()),
        None => Ok(()),
    }
}
