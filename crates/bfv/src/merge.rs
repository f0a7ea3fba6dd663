//! Several sums into one: those whose results lie at multiples of `2^k` leave together in a single reply.
//!
//! After Chen, Dai, Kim and Song ("Efficient homomorphic conversion between (ring) LWE ciphertexts", ACNS 2021). Let `a` and `b` have their
//! results at multiples of `2^j`, and let `g = 1 + 2N / 2^j`. `X -> X^g` keeps coefficients at multiples of `2^j` and negates those
//! halfway between, so with `h = 2^(j-1)`
//!
//! ```text
//! (a + X^h b) + (a - X^h b)(X^g)
//! ```
//!
//! has twice the results of `a` where they were and twice those of `b` by `h` further. The powers of two are taken off before, modulo
//! `q`: what is no result vanishes exactly, and a result comes out as it was. After `k` such folds a reply is full.
//!
//! The automorphism leaves a ciphertext under `s(X^g)`. Its second part is cut into its residues modulo the primes of `q`, and each digit
//! meets the part of a key that was made for it, modulo `q P`; dividing by the special prime `P` divides the key's errors as well. The
//! first part stays multiplied by `P` until all is merged. For the second one the key is divided beforehand, and what is left is to round.

use std::ops::Range;

use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::arch::{CHUNK, Values, kernels, vectorised};
use crate::automorphism::sources;
use crate::error::{Error, Misuse};
use crate::keys::PublicKey;
use crate::ntt::Ntt;
use crate::parameters::{Merging, Parameters};
use crate::polynomial::{Multiplier, Polynomial};
use crate::product::Sum;

/// Most levels: up to there a value and its source are in one chunk.
pub(crate) const MOST_LEVELS: u32 = CHUNK.ilog2();

/// What folds at one level: of sums with results at multiples of `2^j`.
#[derive(Debug)]
pub(crate) struct LevelKey {
    /// For each transformed value, where the automorphism takes it from.
    sources: Vec<u32>,
    /// `[B, A]` for each digit: `A` divided by the special prime, modulo the others.
    digits: [[Multiplier<3>; 2]; 2],
    /// `X^h`, transformed.
    shift: Multiplier<3>,
}

impl LevelKey {
    /// Makes `a + X^h b` of `a`, and `a - X^h b` of `b`, which goes to `turned` as the automorphism turns it: of some values of each, a
    /// whole [`CHUNK`], modulo the prime with this number.
    fn halves(&self, ntt: &Ntt, prime: usize, chunk: Range<usize>, [a, b]: [&mut [u64]; 2], turned: &mut [u64]) {
        ntt.butterfly(a, b, &self.shift.0[prime][chunk.clone()]);
        permute(turned, b, &self.sources[chunk]);
    }
}

/// `g` of the automorphism for results at multiples of `2^level`.
fn exponent(degree: usize, level: u32) -> usize {
    1 + ((2 * degree) >> level)
}

/// Writes the keys of all levels: for each prime of `q` a seed of `A` and `e - A s + P s(X^g)` modulo that prime, `e - A s` modulo the others.
///
/// `opposite`: the coefficients of `-s`.
pub(crate) fn write_keys(parameters: &Parameters, opposite: &[i32], prg: &mut Prg, out: &mut Vec<u8>) {
    let (Some(merging), degree) = (parameters.merging_with(), parameters.degree()) else { return };
    let negated = Zeroizing::new(Polynomial::<3>::from_signed(&merging.ntts, degree, opposite).forward(&merging.ntts));
    let multiplier = Zeroizing::new(Polynomial::clone(&negated).multiplier(&merging.ntts));
    for level in 1..=merging.levels {
        let turned = Zeroizing::new(negated.permuted(&sources(degree, exponent(degree, level))));
        for (i, ntt) in parameters.ntts().iter().enumerate() {
            let prime = ntt.prime();
            let special = prime.factor(merging.special().prime().value());
            // The message is brought back to coefficients, for the errors to join it.
            let mut message = Polynomial::<3>::zero(degree);
            message.0[i]
                .iter_mut()
                .zip(turned.0[i].iter())
                .for_each(|(x, &turned)| *x = prime.negate(prime.scale(turned, special)));
            ntt.inverse(&mut message.0[i]);
            message.write_masked(&merging.ntts, &multiplier, prg, out);
        }
    }
}

/// Reads what [`write_keys`] wrote, whose length the caller has checked.
pub(crate) fn read_keys(parameters: &Parameters, bytes: &[u8]) -> Result<Vec<LevelKey>, Error> {
    let (Some(merging), degree) = (parameters.merging_with(), parameters.degree()) else { return Ok(Vec::new()) };
    let key = |(level, bytes): (u32, &[u8])| {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let read = |bytes| {
            let mut parts = Polynomial::read_masked(&merging.ntts, degree, "merging key", bytes)?;
            for ((values, ntt), &inverse) in parts[1].0.iter_mut().zip(&merging.ntts).zip(&merging.inverse_special) {
                ntt.scale(values, inverse);
            }
            Ok::<_, Error>(parts.map(|part| part.multiplier(&merging.ntts)))
        };
        let mut shift = vec![0; degree];
        shift[1 << (level - 1)] = 1;
        Ok(LevelKey {
            sources: sources(degree, exponent(degree, level)),
            digits: [read(first)?, read(second)?],
            shift: Polynomial::from_signed(&merging.ntts, degree, &shift)
                .forward(&merging.ntts)
                .multiplier(&merging.ntts),
        })
    };
    (1..).zip(bytes.chunks_exact(parameters.level_key_bytes())).map(key).collect()
}

/// Brings the values at `sources` into their order: those of a chunk.
///
/// The automorphism of level `j` adds a multiple of `N / 2^j` to the reverse of an index, so a value stays among the `2^j` that it is
/// with. Of larger ones, each vector of eight is another in some order.
fn permute(to: &mut [u64], from: &[u64], sources: &[u32]) {
    let to: &mut [u64; CHUNK] = to.try_into().expect("a chunk");
    let (from, sources) = (from.try_into().expect("a chunk"), sources.try_into().expect("a chunk"));
    if let Some(kernels) = kernels() {
        return (kernels.permute)(to, from, sources);
    }
    let places = to.iter_mut().zip(sources);
    vectorised(|| places.for_each(|(x, &source)| *x = from[source as usize % CHUNK]));
}

/// Sums on their way into one reply.
///
/// The first sum's results stay at their coefficients, multiples of `2^levels`, and those of the sum that is added as number `r` move
/// up by [`Merge::offset`]. Coefficients that are no multiples are lost.
pub struct Merge<'a> {
    key: &'a PublicKey,
    merging: &'a Merging,
    levels: u32,
    /// At index `i`, `2^i` sums that wait for as many more.
    waiting: Vec<Option<Part>>,
    /// Vectors that are used again.
    spare: Vec<Values>,
}

/// Vectors that wait for their next use at most.
const SPARE: usize = 12;

/// Some sums, merged: the first part modulo `q P` and multiplied by `P`, both transformed.
struct Part {
    c0: Polynomial<3>,
    c1: Polynomial,
}

impl<'a> Merge<'a> {
    /// No sums yet, of up to `2^levels`.
    ///
    /// # Errors
    /// [`Misuse::NoMerging`] if the parameters have fewer levels, or none are asked for.
    pub fn new(key: &'a PublicKey, levels: u32) -> Result<Self, Error> {
        match key.parameters().merging_with() {
            Some(merging) if (1..=merging.levels).contains(&levels) => {
                Ok(Self { key, merging, levels, waiting: (0..levels).map(|_| None).collect(), spare: Vec::new() })
            }
            _ => Err(Misuse::NoMerging { levels, most: key.parameters().levels() }.into()),
        }
    }

    /// How far up the results of the sum with this number move: its bits in reverse.
    pub fn offset(levels: u32, number: usize) -> usize {
        if levels == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - levels) }
    }

    /// Adds a sum.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`] for a sum of other parameters, [`Misuse::MergeFull`] for one too many.
    pub fn add(&mut self, sum: Sum) -> Result<(), Error> {
        Misuse::check_parameters(self.key.parameters().agrees_with(&sum.parameters))?;
        if self.waiting.len() > self.levels as usize {
            return Err(Misuse::MergeFull { most: 1 << self.levels }.into());
        }
        let mut part = self.begin(sum);
        let mut at = 0;
        while let Some(first) = self.waiting.get_mut(at).and_then(Option::take) {
            part = self.fold(first, part, at);
            at += 1;
        }
        match self.waiting.get_mut(at) {
            Some(place) => *place = Some(part),
            None => self.waiting.push(Some(part)),
        }
        Ok(())
    }

    /// The merged sum.
    pub fn finish(mut self) -> Sum {
        let mut merged: Option<Part> = None;
        for at in 0..self.levels as usize {
            merged = match (self.waiting[at].take(), merged) {
                (Some(first), Some(second)) => Some(self.fold(first, second, at)),
                (Some(part), None) | (None, Some(part)) => Some(self.double(part)),
                (None, None) => None,
            };
        }
        let parameters = self.key.parameters();
        match merged.or(self.waiting.pop().flatten()) {
            None => Sum::new(parameters),
            Some(Part { c0, c1 }) => Sum {
                parameters: parameters.clone(),
                c0: c0.divide(&self.merging.ntts, parameters.ntts(), &self.merging.inverse_special),
                c1,
            },
        }
    }

    /// A sum, without its share of the powers of two that folds bring.
    fn begin(&mut self, sum: Sum) -> Part {
        let special = self.merging.special().prime();
        let (mut c0, mut c1) = (sum.c0, sum.c1);
        for (i, ntt) in self.key.parameters().ntts().iter().enumerate() {
            let prime = ntt.prime();
            let fraction = prime.invert(1 << self.levels);
            ntt.scale(&mut c1.0[i], fraction);
            ntt.scale(&mut c0.0[i], prime.multiply(fraction, special.value()));
        }
        let [first, second] = c0.0;
        let mut third = self.buffer();
        third.fill(0);
        Part { c0: Polynomial([first, second, third]), c1 }
    }

    /// A part as if folded with zeros, but that what is no result stays: no result of others gets there.
    fn double(&self, mut part: Part) -> Part {
        let (c0, c1) = (part.c0.clone(), part.c1.clone());
        part.c0.add(&self.merging.ntts, &c0);
        part.c1.add(self.key.parameters().ntts(), &c1);
        part
    }

    /// Two parts that waited at `at`.
    fn fold(&mut self, first: Part, second: Part, at: usize) -> Part {
        let (ntts, limbs) = (&self.merging.ntts, self.key.parameters().ntts());
        let key = &self.key.levels[self.levels as usize - at - 1];
        let chunks = (0..self.key.parameters().degree()).step_by(CHUNK).map(|start| start..start + CHUNK);
        let (mut c0, mut c1) = (first.c0, first.c1);
        let mut digits: [[Values; 3]; 2] = Default::default();
        for (i, mut other) in second.c1.0.into_iter().enumerate() {
            let mut turned = self.buffer();
            for chunk in chunks.clone() {
                let [turned, other] = [&mut turned, &mut other].map(|values| &mut values[chunk.clone()]);
                key.halves(&ntts[i], i, chunk.clone(), [&mut c1.0[i][chunk], other], turned);
                other.copy_from_slice(turned);
            }
            digits[i][i] = turned;
            ntts[i].inverse(&mut other);
            let mut copy = self.buffer();
            copy.copy_from_slice(&other);
            for (j, mut digit) in (0..3).filter(|j| *j != i).zip([copy, other]) {
                ntts[j].forward_unreduced(&mut digit, ntts[i].prime().bits());
                digits[i][j] = digit;
            }
        }
        let mut rest = self.buffer();
        let [values, others] = &mut c1.0;
        let mut turned = [0; CHUNK];
        for (j, ((c1, mut other), ntt)) in
            [values, others, &mut rest].into_iter().zip(second.c0.0).zip(ntts).enumerate()
        {
            for chunk in chunks.clone() {
                let [c0, c1, other] = [&mut c0.0[j], &mut *c1, &mut other].map(|values| &mut values[chunk.clone()]);
                key.halves(ntt, j, chunk.clone(), [c0, other], &mut turned);
                let sums = c0.iter_mut().zip(&turned);
                vectorised(|| sums.for_each(|(sum, &turned)| *sum = ntt.prime().add(*sum, turned)));
                if j == limbs.len() {
                    c1.fill(0);
                }
                let terms = [0, 1].map(|i| {
                    let parts = key.digits[i].each_ref().map(|part| &part.0[j][chunk.clone()]);
                    (parts, [&digits[i][j][chunk.clone()]])
                });
                ntt.multiply_add_pair([c0, c1], &terms);
            }
            self.spare.push(other);
        }
        let mut room = self.buffer();
        c1.round_off([&mut rest, &mut room], self.merging.special(), limbs, &self.merging.inverse_special);
        self.spare.extend([rest, room]);
        self.spare.extend(digits.into_iter().flatten());
        self.spare.truncate(SPARE);
        Part { c0, c1 }
    }

    /// Room for residues of a polynomial, with whatever is in it.
    fn buffer(&mut self) -> Values {
        self.spare.pop().unwrap_or_else(|| Values::zero(self.key.parameters().degree()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_among_those_of_their_level_and_vector() {
        for degree in [4096_usize, 8192] {
            for level in 1..degree.ilog2() {
                let sources = sources(degree, exponent(degree, level));
                let vectors = sources.as_chunks::<8>().0;
                assert!(vectors.iter().all(|of| of.iter().all(|source| source / 8 == of[0] / 8)), "level {level}");
                assert!((0..).zip(sources).all(|(i, source)| source >> level == i >> level), "{degree}, level {level}");
            }
        }
    }

    #[test]
    fn permuted_values_come_from_their_sources() {
        for level in 1..=MOST_LEVELS {
            let sources = sources(4096, exponent(4096, level));
            let values: Vec<u64> = (0..4096).map(|x| x * x).collect();
            let mut permuted = vec![0; 4096];
            let chunks = permuted.chunks_mut(CHUNK).zip(values.chunks(CHUNK)).zip(sources.chunks(CHUNK));
            chunks.for_each(|((to, from), sources)| permute(to, from, sources));
            let expected: Vec<u64> = sources.iter().map(|&source| values[source as usize]).collect();
            assert_eq!(permuted, expected, "level {level}");
        }
    }
}
