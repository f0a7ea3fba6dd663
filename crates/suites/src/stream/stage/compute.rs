//! What workers do: linear stages at the model provider, the others at the data provider.

use std::collections::BTreeMap;

use privet_paillier::{Ciphertexts, Plaintext, PrivateKey};
use privet_program::Weights;
use privet_ring::Modulus;

use super::super::cipher::Cipher;
use super::super::elements::{Elements, Masked};
use super::super::exchange::Exchange;
use super::super::infer::checked;
use super::super::packed::Samples;
use super::super::partition::{Part, compute};
use super::super::rows;
use super::{Demand, Randomizer, Stages, misuse, unit};
use crate::Error;

/// What hides values of the data provider, and opens them.
#[derive(Clone, Copy)]
pub enum Hiding<'a> {
    /// Its Paillier key.
    Key(&'a PrivateKey),
    /// Masks of a piece over BFV, a row for each value; used once.
    Masks(&'a [u8]),
}

impl Stages {
    /// Computes elements of a round's value, in any order and also repeatedly. Under Paillier each has noise of its own,
    /// by `randomizer`; over BFV there is none, and the same elements are the same bytes. `given` has for each base, and
    /// then for each share, the elements that are there and their rows.
    ///
    /// # Errors
    /// [`Error::Misuse`] without weights, or if an element is missing; [`Error::Encryption`] or
    /// [`Error::PeerMisbehaved`] if a row is none.
    pub fn linear(
        &self,
        round: usize,
        randomizer: Option<&Randomizer>,
        elements: &[usize],
        given: &[(Vec<usize>, &[u8])],
    ) -> Result<Vec<u8>, Error> {
        let source = self.exchange(round)?.source;
        let mut wanted = elements.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.last().is_none_or(|&last| last >= self.plan.program().value(source).len()) {
            return Err(misuse("a stage is asked for no elements, or for some that there are not"));
        }
        let demand = self.demand_again(source, wanted);
        match (self.plan.cipher(), randomizer) {
            (Cipher::Paillier(_), Some(Randomizer { key, table })) => {
                let none = Ciphertexts::from_bytes(key, 0, &[])?;
                let read = |count, bytes: &[u8]| Ok(Ciphertexts::from_bytes(key, count, bytes)?);
                let mut sent = self.evaluate(source, &demand, given, &none, read)?.select(elements)?;
                sent.randomize(table.draw(sent.len())?)?;
                Ok(sent.to_bytes())
            }
            (Cipher::Bfv, None) => {
                let ring = self.ring();
                let none = Masked { ring, values: Vec::new() };
                let read = |count, bytes: &[u8]| masked(ring, count, bytes);
                let sent = self.evaluate(source, &demand, given, &none, read)?.select(elements)?;
                Ok(rows::from_ring(ring, &sent.values))
            }
            _ => Err(misuse("noise is for Paillier, and Paillier needs it")),
        }
    }

    /// The elements of a demand on the value `source`.
    fn evaluate<E: Elements>(
        &self,
        source: usize,
        demand: &Demand,
        given: &[(Vec<usize>, &[u8])],
        none: &E,
        read: impl Fn(usize, &[u8]) -> Result<E, Error>,
    ) -> Result<Part<E>, Error> {
        let program = self.plan.program();
        let weights = self.weights.as_ref().ok_or_else(|| misuse("linear stages need the weights"))?;
        let part = |(indices, bytes): &(Vec<usize>, &[u8])| {
            Ok::<_, Error>(Part { elements: read(indices.len(), bytes)?, indices: indices.clone() })
        };
        let (bases, shares) = given.split_at(demand.bases.len().min(given.len()));
        let mut parts = BTreeMap::new();
        for (&value, given) in demand.bases.keys().zip(bases) {
            parts.insert(value, part(given)?);
        }
        let mut shares = demand.shares.keys().copied().zip(shares).collect::<BTreeMap<_, _>>();
        let nothing = Part { indices: Vec::new(), elements: none.clone() };
        for (index, wanted) in &demand.operations {
            let operation = &program.operations()[*index];
            let inputs: Vec<&Part<E>> = operation.inputs.iter().map(|id| parts.get(id).unwrap_or(&nothing)).collect();
            let mut elements = self.operate(*index, &inputs, weights, wanted)?;
            if demand.shares.contains_key(&operation.output) {
                let share = shares.remove(&operation.output).ok_or_else(|| misuse("a stage lacks a share"))?;
                elements = elements.plus(&part(share)?.select(wanted)?)?;
            }
            parts.insert(operation.output, Part { indices: wanted.clone(), elements });
        }
        parts.remove(&source).ok_or_else(|| misuse("a stage lacks what it reads"))
    }

    /// One operation, as a whole where all of it is wanted and there.
    fn operate<E: Elements>(
        &self,
        index: usize,
        inputs: &[&Part<E>],
        weights: &Weights,
        wanted: &[usize],
    ) -> Result<E, Error> {
        let program = self.plan.program();
        let operation = &program.operations()[index];
        let all = |value: usize, count: usize| program.value(value).len() == count;
        let there = operation.inputs.iter().zip(inputs).all(|(&value, part)| all(value, part.indices.len()));
        if !(there && all(operation.output, wanted.len())) {
            return compute(program, operation, inputs, weights, wanted);
        }
        let whole: Vec<&E> = inputs.iter().map(|part| &part.elements).collect();
        E::whole(program, operation, &whole, weights)
    }

    /// Hides values of the data provider.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Misuse`] if there are not as many masks.
    pub fn encrypt(&self, hiding: Hiding<'_>, values: &[i64]) -> Result<Vec<u8>, Error> {
        match hiding {
            Hiding::Key(key) => {
                let plaintexts: Vec<Plaintext> = values.iter().map(|&value| value.into()).collect();
                Ok(Ciphertexts::encrypt(&plaintexts, key.noise(plaintexts.len())?)?.to_bytes())
            }
            Hiding::Masks(masks) => {
                let ring = self.ring();
                let values: Vec<u64> = values.iter().map(|value| ring.reduce(value.cast_unsigned())).collect();
                let masks = masked(ring, values.len(), masks)?;
                Ok(rows::from_ring(ring, &ring.sub(&values, &masks.values)))
            }
        }
    }

    /// The data provider's part of a round for some whole units of what came: the values that it computes.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a value leaves the ring, units are cut or masks do not fit; [`Error::Encryption`] or
    /// [`Error::PeerMisbehaved`] if a row is none.
    pub fn values(&self, round: usize, opening: Hiding<'_>, bytes: &[u8]) -> Result<Vec<i64>, Error> {
        let exchange = self.exchange(round)?;
        let count = bytes.len() / self.row_bytes();
        let program = self.plan.program();
        if count == 0 || !count.is_multiple_of(unit(program, exchange)) {
            return Err(misuse("a stage got no elements, or a window in pieces"));
        }
        Ok(exchange.compute(program, self.open(exchange, opening, count, bytes)?))
    }

    fn open(&self, exchange: &Exchange, opening: Hiding<'_>, count: usize, bytes: &[u8]) -> Result<Vec<i64>, Error> {
        match opening {
            Hiding::Key(key) => {
                let ciphertexts = Ciphertexts::from_bytes(key.public(), count, bytes)?;
                let values = checked(self.plan.program(), exchange, Samples::ONE, &key.decrypt(&ciphertexts)?)?;
                Ok(values.concat())
            }
            Hiding::Masks(masks) => {
                let ring = self.ring();
                let sums = masked(ring, count, bytes)?.plus(&masked(ring, count, masks)?)?;
                Ok(sums.values.into_iter().map(|sum| ring.signed(sum)).collect())
            }
        }
    }

    /// Sums of masked values, row by row, over BFV.
    ///
    /// # Errors
    /// [`Error::Misuse`] under Paillier, or for different lengths; [`Error::PeerMisbehaved`] if a row is none.
    pub fn add(&self, one: &[u8], other: &[u8]) -> Result<Vec<u8>, Error> {
        rows::add(self.plan.layout()?.ring(), one, other)
    }

    /// The row that no maximum notices, over BFV: the least number of the ring.
    ///
    /// # Errors
    /// [`Error::Misuse`] under Paillier.
    pub fn least(&self) -> Result<Vec<u8>, Error> {
        let ring = self.plan.layout()?.ring();
        Ok(rows::from_ring(ring, &[1 << (ring.bits() - 1)]))
    }

    pub(super) fn ring(&self) -> Modulus {
        Modulus::new(self.plan.program().ring_bits())
    }
}

/// Rows of masked values, `count` of them.
fn masked(ring: Modulus, count: usize, bytes: &[u8]) -> Result<Masked, Error> {
    if bytes.len() != count * rows::ring_bytes(ring) {
        return Err(misuse("there are not as many rows as elements"));
    }
    Ok(Masked { ring, values: rows::to_ring(ring, bytes)? })
}
