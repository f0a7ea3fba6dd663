//! The client's secret key, what it encrypts and opens, and the public key.

use privet_prg::{Prg, Wiped};
use zeroize::Zeroizing;

use crate::automorphism::sources;
use crate::error::{Error, Misuse, PeerMisbehaved};
use crate::keys::Left;
use crate::ntt::Ntt;
use crate::polynomial::{Multiplier, Polynomial};
use crate::sample;
use crate::wire::{packed_bytes, unpack};

use super::decode::{decode, encode, from_slots, integer, to_slots};
use super::key_switch::Rotation;
use super::parameters::{LIMBS, Parameters, WITH_SPECIAL};

/// The client's secret: a polynomial `s` with coefficients in {-1, 0, 1}. Wiped when dropped.
pub struct SecretKey {
    parameters: Parameters,
    /// The coefficients of `-s`.
    opposite: Wiped<i32>,
    /// `-s`, transformed.
    negated: Zeroizing<Multiplier<WITH_SPECIAL>>,
    /// The same modulo `q`'s primes alone.
    short: Zeroizing<Multiplier<LIMBS>>,
}

/// What the server re-randomises with: `(b, a)` with `b = -a s + e`, both transformed.
#[derive(Clone, Debug)]
pub struct PublicKey {
    pub(super) parameters: Parameters,
    pub(super) b: Multiplier<LIMBS>,
    pub(super) a: Multiplier<LIMBS>,
    /// Replies.
    pub(super) left: Left,
}

impl SecretKey {
    /// A fresh key.
    pub fn generate(parameters: &Parameters, prg: &mut Prg) -> Self {
        let (ntts, degree) = (&parameters.inner().ntts, parameters.degree());
        let secret = sample::ternary(degree, prg);
        let opposite: Wiped<i32> = secret.iter().map(|s| -s).collect();
        let negated = Polynomial::from_signed(ntts, degree, &opposite).forward(ntts).multiplier(ntts);
        let short = Zeroizing::new(Multiplier(std::array::from_fn(|i| negated.0[i].clone())));
        Self { parameters: parameters.clone(), opposite, negated: Zeroizing::new(negated), short }
    }

    /// What it was made for.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// `-s`, transformed.
    #[cfg(test)]
    pub(super) fn negated(&self) -> &Multiplier<WITH_SPECIAL> {
        &self.negated
    }

    /// A public key for the peer, [`Parameters::ciphertext_bytes`] bytes.
    pub fn public_key(&self, prg: &mut Prg) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.parameters.ciphertext_bytes());
        let limbs = self.parameters.inner().limbs();
        Polynomial::zero(self.parameters.degree()).write_masked(limbs, &self.short, prg, &mut out);
        out
    }

    /// The key of a rotation, [`Parameters::rotation_key_bytes`] bytes: for each prime `q_i` of `q` a seed of `A` and
    /// `e - A s + P (q / q_i) s(X^g)` modulo `q P`.
    pub fn rotation_key(&self, rotation: Rotation, prg: &mut Prg) -> Vec<u8> {
        let inner = self.parameters.inner();
        let sources = sources(self.parameters.degree(), rotation.exponent(&self.parameters));
        let negated = Polynomial::from_signed(&inner.ntts, self.parameters.degree(), &self.opposite);
        let turned = Zeroizing::new(Zeroizing::new(negated.forward(&inner.ntts)).permuted(&sources));
        let mut out = Vec::with_capacity(self.parameters.rotation_key_bytes());
        for i in 0..LIMBS {
            let prime = inner.ntts[i].prime();
            // The message is zero but modulo `q_i`, where it is brought back to coefficients for the errors to join it.
            let mut message = Polynomial::<WITH_SPECIAL>::zero(self.parameters.degree());
            message.0[i] = turned.0[i].iter().map(|&x| prime.negate(prime.scale(x, inner.raised[i]))).collect();
            inner.ntts[i].inverse(&mut message.0[i]);
            message.write_masked(&inner.ntts, &self.negated, prg, &mut out);
        }
        out
    }

    /// Encrypts at most `N` slots, each reduced modulo `p`, and appends [`Parameters::ciphertext_bytes`] bytes to `out`.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if there are more than `N`.
    pub fn encrypt(&self, slots: &[u64], prg: &mut Prg, out: &mut Vec<u8>) -> Result<(), Error> {
        Misuse::check_most("slots", self.parameters.degree(), slots.len())?;
        let message = encode(&self.parameters, &from_slots(&self.parameters, slots));
        message.write_masked(self.parameters.inner().limbs(), &self.short, prg, out);
        Ok(())
    }

    /// Opens a reply: this party's share of all slots.
    ///
    /// # Errors
    /// [`PeerMisbehaved`] if the reply has the wrong length.
    pub fn open(&self, reply: &[u8]) -> Result<Vec<u64>, Error> {
        let phases = self.phases(reply)?;
        let shares: Zeroizing<Vec<u64>> =
            Zeroizing::new(phases.iter().map(|&phase| decode(&self.parameters, phase)).collect());
        Ok(to_slots(&self.parameters, &shares))
    }

    /// `c0 + c1 s` modulo `2^reply_bits`.
    pub(super) fn phases(&self, reply: &[u8]) -> Result<Zeroizing<Vec<u64>>, Error> {
        let parameters = &self.parameters;
        let (degree, bits) = (parameters.degree(), parameters.reply_bits());
        let (expected, actual) = (parameters.reply_bytes(), reply.len());
        if actual != expected {
            return Err(PeerMisbehaved::WrongLength { what: "reply", expected, actual }.into());
        }
        let (c1, c0) = reply.split_at(packed_bytes(degree, bits));
        let (c1, c0) = (unpack("reply", c1, degree, bits)?, unpack("reply", c0, degree, bits)?);
        // The product with s over the integers: N 2^k at most, far below the product of two primes.
        let product = |i: usize| {
            let ntt: &Ntt = &parameters.inner().ntts[i];
            let mut factor: Vec<u64> = c1.iter().map(|&x| ntt.prime().reduce(x)).collect();
            ntt.forward(&mut factor);
            let mut product = Zeroizing::new(vec![0; degree]);
            ntt.multiply_add(&mut product, &[(&factor, &self.negated.0[i])]);
            ntt.inverse(&mut product);
            product
        };
        let (first, second) = (product(0), product(1));
        let negated = first.iter().zip(second.iter()).map(|(&x0, &x1)| integer(parameters, x0, x1));
        let phase = |(c0, negated): (&u64, u64)| c0.wrapping_sub(negated) & parameters.reply_mask();
        Ok(Zeroizing::new(c0.iter().zip(negated).map(phase).collect()))
    }
}

impl PublicKey {
    /// Reads the key that the client sent.
    ///
    /// # Errors
    /// [`PeerMisbehaved`] if it has the wrong length or a residue that is not reduced.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, Error> {
        let [b, a] = Polynomial::read_masked(parameters.inner().limbs(), parameters.degree(), "public key", bytes)?;
        let [b, a] = [b, a].map(|part| part.multiplier(parameters.inner().limbs()));
        Ok(Self { parameters: parameters.clone(), b, a, left: Left::of(parameters.replies()) })
    }

    /// What it was made for.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
