//! The server's work: sums of products of ciphertexts with weights, and what it sends back.

use std::ops::{Deref, Range};

use privet_prg::{Prg, Wiped};
use privet_ring::Modulus;
use zeroize::Zeroizing;

use crate::arch::{CHUNK, ROWS, TERMS, Term, Values, vectorised};
use crate::encode::{decode, encode, switch};
use crate::error::{Error, Misuse};
use crate::keys::{PublicKey, check_positions};
use crate::ntt::{ALL_COLUMNS, Ntt};
use crate::parameters::{Parameters, Resharing};
use crate::polynomial::{Multiplier, Polynomial};
use crate::wire::pack;

/// Values of a sum that are worked on at a time: so few that a part of all operands, and the next one, which is fetched meanwhile, fit the cache
/// of a core. Divides every degree.
const PART: usize = 256;

/// A ciphertext of the client, transformed.
#[derive(Clone, Debug)]
pub struct Ciphertext {
    parameters: Parameters,
    pub(crate) c0: Multiplier,
    pub(crate) c1: Multiplier,
}

impl Ciphertext {
    /// Reads what [`crate::SecretKey::encrypt`] wrote.
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] if it has the wrong length or a residue that is not reduced.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, Error> {
        let (ntts, degree) = (parameters.ntts(), parameters.degree());
        let parts = Polynomial::read_masked_as(ntts, degree, "ciphertext", bytes, |prime, _, parts| {
            parts.into_iter().for_each(|part| ntts[prime].prepare(part));
        })?;
        let [c0, c1] = parts.map(|part| Multiplier(part.0));
        Ok(Self { parameters: parameters.clone(), c0, c1 })
    }
}

/// Where a polynomial of weights has coefficients: at places that any party knows. Elsewhere they are zero, and so is what a transform makes
/// of them at first, which it leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(u64);

impl Columns {
    /// Anywhere.
    pub const ALL: Self = Self(ALL_COLUMNS);

    /// At these places and near them.
    pub fn of(places: impl IntoIterator<Item = usize>) -> Self {
        Self(places.into_iter().fold(0, |columns, place| columns | 1 << (place % 512 / 8)))
    }

    /// A place in each.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |column| self.0 >> column & 1 == 1).map(|column| 8 * column)
    }
}

/// A polynomial of weights, transformed: `16 N` bytes.
#[derive(Clone, Debug)]
pub struct Weights {
    parameters: Parameters,
    values: Polynomial,
}

/// A polynomial of weights modulo one of the primes of the modulus, transformed.
#[derive(Clone, Debug)]
pub struct Residues<'a> {
    parameters: &'a Parameters,
    prime: usize,
    values: &'a [u64],
}

impl Weights {
    /// Transforms the polynomial with these (at most `N`) signed coefficients of 32 or 64 bits.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if there are more than `N`.
    pub fn new<T: Copy + Into<i64>>(parameters: &Parameters, coefficients: &[T]) -> Result<Self, Error> {
        Self::at(parameters, coefficients, Columns::ALL)
    }

    /// [`Weights::new`] of coefficients that are zero beyond these columns.
    ///
    /// # Errors
    /// As there.
    pub fn at<T: Copy + Into<i64>>(
        parameters: &Parameters,
        coefficients: &[T],
        columns: Columns,
    ) -> Result<Self, Error> {
        let mut values = Polynomial(Default::default());
        for (prime, values) in values.0.iter_mut().enumerate() {
            Residues::new(parameters, prime, coefficients, columns, values)?;
        }
        Ok(Self { parameters: parameters.clone(), values })
    }

    /// Modulo the prime with this number, 0 or 1.
    pub fn residues(&self, prime: usize) -> Residues<'_> {
        Residues { parameters: &self.parameters, prime, values: &self.values.0[prime] }
    }
}

impl<'a> Residues<'a> {
    /// What [`Weights::at`] makes, modulo the prime with this number, 0 or 1. It lies in `values`, whatever was there.
    ///
    /// # Errors
    /// As there.
    pub fn new<T: Copy + Into<i64>>(
        parameters: &'a Parameters,
        prime: usize,
        coefficients: &[T],
        columns: Columns,
        values: &'a mut Values,
    ) -> Result<Self, Error> {
        let (ntt, degree) = (&parameters.ntts()[prime], parameters.degree());
        Misuse::check_most("weights", degree, coefficients.len())?;
        values.resize(degree);
        let (used, rest) = values.split_at_mut(coefficients.len());
        ntt.prime().reduce_signed_to(used, coefficients);
        rest.fill(0);
        ntt.forward_columns(values, columns.0);
        Ok(Self { parameters, prime, values })
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
        let zero = || Polynomial::zero(parameters.degree());
        Self { parameters: parameters.clone(), c0: zero(), c1: zero() }
    }

    /// The product of a ciphertext, as [`crate::SecretKey::encrypt`] wrote it, with a polynomial of weights modulo each prime: what
    /// [`Ciphertext::from_bytes`] and [`Sum::multiply_add`] come to, a part at a time in the nearest cache.
    ///
    /// # Errors
    /// As there.
    pub fn product(bytes: &[u8], weights: &[Residues<'_>; 2]) -> Result<Self, Error> {
        let parameters = weights[0].parameters;
        let is_prime = |(prime, weights): (usize, &Residues<'_>)| weights.prime == prime;
        let agree = parameters.agrees_with(weights[1].parameters) && weights.iter().enumerate().all(is_prime);
        Misuse::check_parameters(agree)?;
        let (ntts, degree) = (parameters.ntts(), parameters.degree());
        let [c0, c1] = Polynomial::read_masked_as(ntts, degree, "ciphertext", bytes, |prime, first, parts| {
            let weights = &weights[prime].values[first..][..parts[0].len()];
            ntts[prime].multiply_pair(parts, weights);
        })?;
        Ok(Self { parameters: parameters.clone(), c0, c1 })
    }

    /// Adds `ciphertext * weights` for each term.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] if not all were made for the same parameters.
    pub fn multiply_add(&mut self, terms: &[(&Ciphertext, &Weights)]) -> Result<(), Error> {
        let ciphertexts: Vec<&Ciphertext> = terms.iter().map(|(ciphertext, _)| *ciphertext).collect();
        for prime in 0..self.parameters.ntts().len() {
            let weights: Vec<Residues<'_>> = terms.iter().map(|(_, weights)| weights.residues(prime)).collect();
            Self::multiply_add_all(std::slice::from_mut(self), prime, std::slice::from_ref(&ciphertexts), &[weights])?;
        }
        Ok(())
    }

    /// Adds the products of some rows of ciphertexts with some rows of weights, modulo the prime with this number alone: `sums[w R + c]`,
    /// for `R` rows of ciphertexts, gets `ciphertexts[c][t] * weights[w][t]` for all `t`. Many at once are faster than one by one: they are
    /// added up a part of the polynomials at a time, which stays in a near cache for all sums. One prime after the other lets twice as
    /// many polynomials stay in the cache behind that.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] if not all were made for the same parameters and weights for this prime, [`Misuse::WrongLength`] unless
    /// there is a sum for each pair of rows and all rows are of one length.
    pub fn multiply_add_all(
        sums: &mut [Self],
        prime: usize,
        ciphertexts: &[Vec<&Ciphertext>],
        weights: &[Vec<Residues<'_>>],
    ) -> Result<(), Error> {
        Misuse::check_length("sums", ciphertexts.len() * weights.len(), sums.len())?;
        let mut lengths = ciphertexts.iter().map(Vec::len).chain(weights.iter().map(Vec::len));
        let expected = lengths.next().unwrap_or(0);
        lengths.try_for_each(|actual| Misuse::check_length("terms", expected, actual))?;
        let Some(parameters) = sums.first().map(|sum| sum.parameters.clone()) else { return Ok(()) };
        let fit = |weights: &Residues<'_>| weights.prime == prime && parameters.agrees_with(weights.parameters);
        let agree = sums.iter().all(|sum| parameters.agrees_with(&sum.parameters))
            && ciphertexts.iter().flatten().all(|ciphertext| parameters.agrees_with(&ciphertext.parameters))
            && weights.iter().flatten().all(fit);
        Misuse::check_parameters(agree)?;
        let ntt = &parameters.ntts()[prime];
        for start in (0..parameters.degree()).step_by(PART) {
            let part = Part { ntt, prime, range: start..start + PART };
            let (rows, left) = weights.as_chunks::<ROWS>();
            let (sums, sums_left) = sums.split_at_mut(rows.len() * ROWS * ciphertexts.len());
            for (sums, weights) in sums.chunks_mut(ROWS * ciphertexts.len()).zip(rows) {
                part.multiply_add(sums, ciphertexts, weights, Ntt::multiply_add_rows);
            }
            for (sums, weights) in sums_left.chunks_mut(ciphertexts.len()).zip(left.as_chunks::<1>().0) {
                part.multiply_add(sums, ciphertexts, weights, |ntt, [sums], terms| ntt.multiply_add_pair(sums, terms));
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
        Misuse::check_parameters(parameters.agrees_with(key.parameters()))?;
        key.spend(positions.len())?;
        let [mut c0, c1] = self.randomise(key, prg);
        let mut masks = Wiped::from(vec![0; positions.len()]);
        if parameters.resharing() == Resharing::Exact {
            let shares = share(&parameters, &mut c0, positions, prg);
            hide(&parameters, &mut c0, positions, prg);
            write_reply(&parameters, &c0, &c1, positions, &masks, out);
            return Ok(shares);
        }
        prg.fill_words(&mut masks);
        vectorised(|| masks.iter_mut().for_each(|mask| *mask &= parameters.reply_mask()));
        Ok(write_reply(&parameters, &c0, &c1, positions, &masks, out))
    }

    /// Adds an encryption of zero; gives coefficients.
    pub(crate) fn randomise(self, key: &PublicKey, prg: &mut Prg) -> [Polynomial; 2] {
        Polynomial::randomise([self.c0, self.c1], [&key.b, &key.a], self.parameters.ntts(), prg)
    }
}

/// Some values of all polynomials, modulo one prime.
struct Part<'a> {
    ntt: &'a Ntt,
    prime: usize,
    range: Range<usize>,
}

impl Part<'_> {
    /// [`Sum::multiply_add_all`] for as many rows of weights as `kernel` takes at once.
    fn multiply_add<const M: usize>(
        &self,
        sums: &mut [Sum],
        ciphertexts: &[Vec<&Ciphertext>],
        weights: &[Vec<Residues<'_>>; M],
        kernel: impl Fn(&Ntt, [[&mut [u64]; 2]; M], &[Term<'_, 2, M>]),
    ) {
        let each = ciphertexts.len();
        let Self { ntt, prime, range } = self;
        for first in (0..weights[0].len()).step_by(TERMS) {
            for (c, ciphertexts) in ciphertexts.iter().enumerate() {
                let ciphertexts = &ciphertexts[first..ciphertexts.len().min(first + TERMS)];
                let mut terms = [([&[][..]; 2], [&[][..]; M]); TERMS];
                for (i, (term, ciphertext)) in terms.iter_mut().zip(ciphertexts).enumerate() {
                    let factors = [&ciphertext.c0, &ciphertext.c1].map(|c| &c.0[*prime][range.clone()]);
                    *term = (factors, weights.each_ref().map(|row| &row[first + i].values[range.clone()]));
                }
                let mut rows = sums.chunks_exact_mut(each);
                let sums = std::array::from_fn(|_| {
                    let sum = &mut rows.next().expect("a row of sums for each of weights")[c];
                    [&mut sum.c0, &mut sum.c1].map(|c| &mut c.0[*prime][range.clone()])
                });
                kernel(ntt, sums, &terms[..ciphertexts.len()]);
            }
        }
    }
}

/// Takes uniform shares off the message at the positions, encoded exactly; returns them.
pub(crate) fn share(parameters: &Parameters, c0: &mut Polynomial, positions: &[usize], prg: &mut Prg) -> Vec<u64> {
    let mut shares = vec![0; positions.len()];
    prg.fill_words(&mut shares);
    shares.iter_mut().for_each(|share| *share &= parameters.ring_mask());
    let opposite = shares.iter().map(|share| share.wrapping_neg() & parameters.ring_mask());
    let encoded = Zeroizing::new(encode(parameters, &Wiped::from_iter(opposite)));
    add_at(parameters, c0, positions, &encoded.0);
    shares
}

/// Floods the noise at the positions.
pub(crate) fn hide(parameters: &Parameters, c0: &mut Polynomial, positions: &[usize], prg: &mut Prg) {
    let flood = parameters.flood().residues(parameters.ntts(), positions.len(), prg);
    add_at(parameters, c0, positions, &flood);
}

/// Adds the first of these residues to the coefficients at the positions.
fn add_at(
    parameters: &Parameters,
    c0: &mut Polynomial,
    positions: &[usize],
    residues: &[impl Deref<Target = [u64]>; 2],
) {
    for ((sum, residues), ntt) in c0.0.iter_mut().zip(residues).zip(parameters.ntts()) {
        positions.iter().zip(residues.iter()).for_each(|(&at, &x)| sum[at] = ntt.prime().add(sum[at], x));
    }
}

/// Numbers that are copied at once where they are neighbours.
const NEIGHBOURS: usize = 8;

/// The residues at the positions, which rise, to as many places.
fn gather(residues: &[u64], positions: &[usize], places: &mut [u64]) {
    let (positions, rest) = positions.as_chunks::<NEIGHBOURS>();
    let (places, places_left) = places.as_chunks_mut::<NEIGHBOURS>();
    for (positions, places) in positions.iter().zip(places) {
        let (first, last) = (positions[0], positions[NEIGHBOURS - 1]);
        match residues.get(first..=last).and_then(|run| <&[u64; NEIGHBOURS]>::try_from(run).ok()) {
            Some(run) => *places = *run,
            None => positions.iter().zip(places).for_each(|(&at, place)| *place = residues[at]),
        }
    }
    rest.iter().zip(places_left).for_each(|(&at, place)| *place = residues[at]);
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
    let (bits, mut switched) = (parameters.reply_bits(), Wiped::from(vec![0; CHUNK]));
    for (x0, x1) in c1.0[0].chunks(CHUNK).zip(c1.0[1].chunks(CHUNK)) {
        let switched = &mut switched[..x0.len()];
        switch(parameters, [x0, x1], switched);
        pack(switched, bits, out);
    }
    let (ring, mut used) = (Modulus::new(bits), [(); 2].map(|()| Wiped::from(vec![0; CHUNK])));
    for (positions, masks) in positions.chunks(CHUNK).zip(masks.chunks(CHUNK)) {
        let switched = &mut switched[..masks.len()];
        used.iter_mut().zip(&c0.0).for_each(|(used, residues)| gather(residues, positions, &mut used[..masks.len()]));
        switch(parameters, used.each_ref().map(|used| &used[..masks.len()]), switched);
        vectorised(|| switched.iter_mut().zip(masks).for_each(|(x, &mask)| *x = ring.reduce(x.wrapping_add(mask))));
        pack(switched, bits, out);
    }
    let (mut shares, ring) = (decode(parameters, masks), Modulus::new(parameters.ring_bits()));
    vectorised(|| shares.iter_mut().for_each(|share| *share = ring.reduce(share.wrapping_neg())));
    shares
}
