//! The server's work: sums of products of ciphertexts with weights, and what it sends back.

use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::encode::{decode, encode, switch};
use crate::error::{Error, Misuse};
use crate::keys::{PublicKey, check_positions};
use crate::parameters::{Parameters, Resharing};
use crate::polynomial::Polynomial;
use crate::wire::pack;

/// Values of a sum that are worked on at a time; divides every degree.
const PART: usize = 512;

/// A ciphertext of the client, transformed.
#[derive(Clone, Debug)]
pub struct Ciphertext {
    parameters: Parameters,
    pub(crate) c0: Polynomial,
    pub(crate) c1: Polynomial,
}

impl Ciphertext {
    /// Reads what [`crate::SecretKey::encrypt`] wrote.
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] if it has the wrong length or a residue that is not reduced.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, Error> {
        let [c0, c1] = Polynomial::read_masked(parameters.ntts(), parameters.degree(), "ciphertext", bytes)?;
        Ok(Self { parameters: parameters.clone(), c0, c1 })
    }
}

/// A polynomial of weights, transformed: `16 N` bytes.
#[derive(Clone, Debug)]
pub struct Weights {
    parameters: Parameters,
    values: Polynomial,
}

impl Weights {
    /// Transforms the polynomial with these (at most `N`) signed coefficients of 32 or 64 bits.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if there are more than `N`.
    pub fn new<T: Copy + Into<i64>>(parameters: &Parameters, coefficients: &[T]) -> Result<Self, Error> {
        let (expected, actual) = (parameters.degree(), coefficients.len());
        if actual > expected {
            return Err(Misuse::WrongLength { what: "weights", expected, actual }.into());
        }
        let values =
            Polynomial::from_signed(parameters.ntts(), parameters.degree(), coefficients).forward(parameters.ntts());
        Ok(Self { parameters: parameters.clone(), values })
    }
}

/// A running sum of ciphertexts times weights.
///
/// The absolute weights that meet in one coefficient of the sum must add up to [`Parameters::weight_sum`] at most; this
/// is the caller's to see to, and what the bound on the error rests on.
#[derive(Clone, Debug)]
pub struct Sum {
    pub(crate) parameters: Parameters,
    pub(crate) c0: Polynomial,
    pub(crate) c1: Polynomial,
}

impl Sum {
    /// The empty sum.
    pub fn new(parameters: &Parameters) -> Self {
        let zero = Polynomial::zero(parameters.degree());
        Self { parameters: parameters.clone(), c0: zero.clone(), c1: zero }
    }

    /// Adds `ciphertext * weights` for each term. Many terms at once are faster than one by one: they are added up a
    /// part of the polynomial at a time, so that the sum stays in the nearest cache.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] if not all were made for the same parameters.
    pub fn multiply_add<'a>(&mut self, terms: &[(&'a Ciphertext, &'a Weights)]) -> Result<(), Error> {
        let parameters = &self.parameters;
        let agree = |term: &(&Ciphertext, &Weights)| {
            parameters.agrees_with(&term.0.parameters) && parameters.agrees_with(&term.1.parameters)
        };
        if !terms.iter().all(agree) {
            return Err(Misuse::ParametersDiffer.into());
        }
        for (i, ntt) in parameters.ntts().iter().enumerate() {
            for start in (0..parameters.degree()).step_by(PART) {
                let part = start..start + PART;
                let operands = |(ciphertext, weights): &(&'a Ciphertext, &'a Weights)| {
                    let weights = &weights.values.0[i][part.clone()];
                    [&ciphertext.c0, &ciphertext.c1].map(|c| (&c.0[i][part.clone()], weights))
                };
                let (c0, c1): (Vec<_>, Vec<_>) = terms.iter().map(operands).map(|[c0, c1]| (c0, c1)).unzip();
                ntt.multiply_add(&mut self.c0.0[i][part.clone()], &c0);
                ntt.multiply_add(&mut self.c1.0[i][part.clone()], &c1);
            }
        }
        Ok(())
    }

    /// Ends the sum: appends the reply for the client to `out`, [`Parameters::reply_bytes`] bytes, and returns the
    /// server's share of the coefficients at `positions`, in their order.
    ///
    /// The reply is the sum plus a fresh encryption of zero, switched to `2^reply_bits`: all of its part `c1`, and its
    /// part `c0` plus a uniform mask at the used positions. The share is minus the rounded mask. If resharing is exact,
    /// the share is uniform, is taken off `c0` before the switch, and a flood is added.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] for a key of other parameters, [`Misuse::KeyWornOut`] for one that has served, [`Misuse::Position`] unless the positions rise and
    /// stay below `N`.
    pub fn reply(
        self,
        key: &PublicKey,
        positions: &[usize],
        prg: &mut Prg,
        out: &mut Vec<u8>,
    ) -> Result<Vec<u64>, Error> {
        let parameters = self.parameters.clone();
        check_positions(&parameters, positions)?;
        if !parameters.agrees_with(key.parameters()) {
            return Err(Misuse::ParametersDiffer.into());
        }
        key.spend(positions.len())?;
        let [mut c0, c1] = self.randomise(key, prg);
        let mut masks = Zeroizing::new(vec![0; positions.len()]);
        if parameters.resharing() == Resharing::Exact {
            let shares = share(&parameters, &mut c0, positions, prg);
            hide(&parameters, &mut c0, positions, prg);
            write_reply(&parameters, &c0, &c1, positions, &masks, out);
            return Ok(shares);
        }
        prg.fill_words(&mut masks);
        masks.iter_mut().for_each(|mask| *mask &= parameters.reply_mask());
        Ok(write_reply(&parameters, &c0, &c1, positions, &masks, out))
    }

    /// Adds an encryption of zero; gives coefficients.
    pub(crate) fn randomise(self, key: &PublicKey, prg: &mut Prg) -> [Polynomial; 2] {
        Polynomial::randomise([self.c0, self.c1], [&key.b, &key.a], self.parameters.ntts(), prg)
    }
}

/// Takes uniform shares off the message at the positions, encoded exactly; returns them.
pub(crate) fn share(parameters: &Parameters, c0: &mut Polynomial, positions: &[usize], prg: &mut Prg) -> Vec<u64> {
    let mut shares = vec![0; positions.len()];
    prg.fill_words(&mut shares);
    shares.iter_mut().for_each(|share| *share &= parameters.ring_mask());
    let opposite = shares.iter().map(|share| share.wrapping_neg() & parameters.ring_mask());
    let encoded = Zeroizing::new(encode(parameters, &Zeroizing::new(opposite.collect::<Vec<_>>())));
    add_at(parameters, c0, positions, &encoded.0);
    shares
}

/// Floods the noise at the positions.
pub(crate) fn hide(parameters: &Parameters, c0: &mut Polynomial, positions: &[usize], prg: &mut Prg) {
    let flood = Zeroizing::new(parameters.flood().residues(parameters.ntts(), positions.len(), prg));
    add_at(parameters, c0, positions, &flood);
}

/// Adds the first of these residues to the coefficients at the positions.
fn add_at(parameters: &Parameters, c0: &mut Polynomial, positions: &[usize], residues: &[Vec<u64>; 2]) {
    for ((sum, residues), ntt) in c0.0.iter_mut().zip(residues).zip(parameters.ntts()) {
        positions.iter().zip(residues).for_each(|(&at, &x)| sum[at] = ntt.prime().add(sum[at], x));
    }
}

/// Switches a sum in coefficients to `2^reply_bits`, masks and writes it; returns the server's share.
pub(crate) fn write_reply(
    parameters: &Parameters,
    c0: &Polynomial,
    c1: &Polynomial,
    positions: &[usize],
    masks: &[u64],
    out: &mut Vec<u8>,
) -> Vec<u64> {
    let bits = parameters.reply_bits();
    let whole = c1.0[0].iter().zip(&c1.0[1]).map(|(&x0, &x1)| switch(parameters, x0, x1));
    pack(whole, bits, out);
    let masked = positions
        .iter()
        .zip(masks)
        .map(|(&at, mask)| switch(parameters, c0.0[0][at], c0.0[1][at]).wrapping_add(*mask) & parameters.reply_mask());
    pack(masked, bits, out);
    let share = |&mask: &u64| decode(parameters, mask).wrapping_neg() & parameters.ring_mask();
    masks.iter().map(share).collect()
}
