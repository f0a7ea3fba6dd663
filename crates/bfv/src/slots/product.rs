//! The server's work: sums of products of ciphertexts with weights in slots, and replies.

use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::error::{Error, Misuse};
use crate::polynomial::{Multiplier, Polynomial};
use crate::wire::pack;

use super::decode::{centred, encode, from_slots, switch, to_slots};
use super::keys::PublicKey;
use super::parameters::{LIMBS, Parameters};

/// A ciphertext of the client, transformed.
#[derive(Clone, Debug)]
pub struct Ciphertext {
    parameters: Parameters,
    c0: Multiplier<LIMBS>,
    c1: Multiplier<LIMBS>,
}

impl Ciphertext {
    /// Reads what [`super::SecretKey::encrypt`] wrote.
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] if it has the wrong length or a residue that is not reduced.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, Error> {
        let limbs = parameters.inner().limbs();
        let parts = Polynomial::read_masked(limbs, parameters.degree(), "ciphertext", bytes)?;
        let [c0, c1] = parts.map(|part| part.multiplier(limbs));
        Ok(Self { parameters: parameters.clone(), c0, c1 })
    }

    /// The part that the client drew.
    #[cfg(test)]
    pub(super) fn uniform(&self) -> Polynomial<LIMBS> {
        self.c1.polynomial(self.parameters.inner().limbs())
    }
}

/// Weights in slots, transformed: `24 N` bytes.
#[derive(Clone, Debug)]
pub struct Weights {
    parameters: Parameters,
    values: Polynomial<LIMBS>,
}

impl Weights {
    /// Transforms at most `N` slots, each reduced modulo `p`.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if there are more than `N`.
    pub fn new(parameters: &Parameters, slots: &[u64]) -> Result<Self, Error> {
        Misuse::check_most("weights", parameters.degree(), slots.len())?;
        let limbs = parameters.inner().limbs();
        let values = centred(parameters, &from_slots(parameters, slots)).forward(limbs);
        Ok(Self { parameters: parameters.clone(), values })
    }
}

/// A running sum of ciphertexts times weights, which [`super::Rotations`] can rotate.
///
/// The products in it, and the rotations it went through, must stay within what the parameters were chosen for; this is the
/// caller's to see to.
#[derive(Clone, Debug)]
pub struct Sum {
    pub(super) parameters: Parameters,
    pub(super) c0: Polynomial<LIMBS>,
    pub(super) c1: Polynomial<LIMBS>,
}

impl Sum {
    /// The empty sum.
    pub fn new(parameters: &Parameters) -> Self {
        let zero = Polynomial::zero(parameters.degree());
        Self { parameters: parameters.clone(), c0: zero.clone(), c1: zero }
    }

    /// Adds `ciphertext * weights`, slot by slot, for each term; a few terms at once are faster than one by one.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] if not all were made for the same parameters.
    pub fn multiply_add(&mut self, terms: &[(&Ciphertext, &Weights)]) -> Result<(), Error> {
        let agrees = |(ciphertext, weights): &(&Ciphertext, &Weights)| {
            self.parameters.agrees_with(&ciphertext.parameters) && self.parameters.agrees_with(&weights.parameters)
        };
        Misuse::check_parameters(terms.iter().all(agrees))?;
        let limbs = self.parameters.inner().limbs();
        let of = |part: fn(&Ciphertext) -> &Multiplier<LIMBS>| -> Vec<_> {
            terms.iter().map(|(ciphertext, weights)| (&weights.values, part(ciphertext))).collect()
        };
        self.c0.multiply_add(limbs, &of(|ciphertext| &ciphertext.c0));
        self.c1.multiply_add(limbs, &of(|ciphertext| &ciphertext.c1));
        Ok(())
    }

    /// Adds another sum.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] if it was made for other parameters.
    pub fn add(&mut self, other: &Self) -> Result<(), Error> {
        Misuse::check_parameters(self.parameters.agrees_with(&other.parameters))?;
        let limbs = self.parameters.inner().limbs();
        self.c0.add(limbs, &other.c0);
        self.c1.add(limbs, &other.c1);
        Ok(())
    }

    /// Ends the sum: appends the reply to `out`, [`Parameters::reply_bytes`] bytes, and returns the server's share of all slots.
    ///
    /// A fresh encryption of zero is added, uniform shares are taken off the plaintext, and a flood hides the noise; then all
    /// is switched to `2^reply_bits`.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] for a key of other parameters, [`Misuse::KeyWornOut`] for one that has served.
    pub fn reply(self, key: &PublicKey, prg: &mut Prg, out: &mut Vec<u8>) -> Result<Vec<u64>, Error> {
        let parameters = self.parameters.clone();
        Misuse::check_parameters(parameters.agrees_with(&key.parameters))?;
        key.left.take(1)?;
        let [mut c0, c1] = self.randomise(key, prg);
        let shares = share(&parameters, &mut c0, prg);
        hide(&parameters, &mut c0, prg);
        write_reply(&parameters, &c0, &c1, out);
        Ok(to_slots(&parameters, &shares))
    }

    /// Adds an encryption of zero; gives coefficients.
    pub(super) fn randomise(self, key: &PublicKey, prg: &mut Prg) -> [Polynomial<LIMBS>; 2] {
        Polynomial::randomise([self.c0, self.c1], [&key.b, &key.a], self.parameters.inner().limbs(), prg)
    }
}

/// Takes uniform shares off the plaintext; returns them, as a polynomial modulo `p`.
pub(super) fn share(parameters: &Parameters, c0: &mut Polynomial<LIMBS>, prg: &mut Prg) -> Zeroizing<Vec<u64>> {
    let plain = parameters.inner().plain.prime();
    let mut shares = Zeroizing::new(vec![0; parameters.degree()]);
    // Exactly uniform, whatever their number: a reduced word is not.
    shares.iter_mut().for_each(|share| *share = prg.below(plain.value()));
    let opposite: Zeroizing<Vec<u64>> = Zeroizing::new(shares.iter().map(|&share| plain.negate(share)).collect());
    c0.add(parameters.inner().limbs(), &Zeroizing::new(encode(parameters, &opposite)));
    shares
}

/// Floods the noise of every coefficient.
pub(super) fn hide(parameters: &Parameters, c0: &mut Polynomial<LIMBS>, prg: &mut Prg) {
    let limbs = parameters.inner().limbs();
    let flood = parameters.flood().residues(limbs, parameters.degree(), prg);
    let flood = Polynomial(flood.each_ref().map(|residues| residues.iter().copied().collect()));
    c0.add(limbs, &Zeroizing::new(flood));
}

/// Switches a sum in coefficients to `2^reply_bits` and writes it.
pub(super) fn write_reply(parameters: &Parameters, c0: &Polynomial<LIMBS>, c1: &Polynomial<LIMBS>, out: &mut Vec<u8>) {
    for part in [c1, c0] {
        let residues = (0..parameters.degree()).map(|at| part.0.each_ref().map(|residues| residues[at]));
        pack(&residues.map(|residues| switch(parameters, residues)).collect::<Vec<_>>(), parameters.reply_bits(), out);
    }
}
