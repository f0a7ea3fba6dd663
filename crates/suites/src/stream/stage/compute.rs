//! What workers do: linear stages at the model provider, the others at the data provider.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use privet_paillier::{Ciphertexts, Plaintext, PrivateKey};
use privet_ring::Modulus;

use super::super::cipher::Cipher;
use super::super::elements::{Elements, Encrypted, Masked};
use super::super::exchange::Exchange;
use super::super::infer::checked;
use super::super::packed::Samples;
use super::super::parts::{Part, compute};
use super::super::rows;
use super::{Demand, Randomizer, Stages, misuse, unit};
use crate::Error;
use crate::ops::Node;

/// What hides values of the data provider, and opens them.
#[derive(Clone, Copy)]
pub enum Hiding<'a> {
    /// Its Paillier key.
    Key(&'a PrivateKey),
    /// Masks of an entry over BFV, a row for each value; used once.
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
                let read = |count, bytes: &[u8]| {
                    Ok(Encrypted { ciphertexts: Ciphertexts::from_bytes(key, count, bytes)?, samples: Samples::ONE })
                };
                let mut sent = self.evaluate(source, &demand, given, read)?.select(elements)?.ciphertexts;
                sent.randomize(table.draw(sent.len())?)?;
                Ok(sent.to_bytes())
            }
            (Cipher::Bfv, None) => {
                let ring = self.ring();
                let read = |count, bytes: &[u8]| masked(ring, count, bytes);
                let sent = self.evaluate(source, &demand, given, read)?.select(elements)?;
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
        read: impl Fn(usize, &[u8]) -> Result<E, Error>,
    ) -> Result<Part<E>, Error> {
        let program = self.plan.program();
        let weights = self.weights.as_ref().ok_or_else(|| misuse("linear stages need the weights"))?;
        let part = |value: usize, (indices, bytes): &(Vec<usize>, &[u8])| {
            let (len, elements) = (program.value(value).len(), read(indices.len(), bytes)?);
            Ok::<_, Error>(Part { len, indices: indices.clone(), elements })
        };
        let (bases, shares) = given.split_at(demand.bases.len().min(given.len()));
        let mut parts = BTreeMap::new();
        for (&value, given) in demand.bases.keys().zip(bases) {
            parts.insert(value, part(value, given)?);
        }
        let mut shares = demand.shares.keys().copied().zip(shares).collect::<BTreeMap<_, _>>();
        for (index, wanted) in &demand.operations {
            let node = Node::at(program, *index);
            let output = node.operation.output;
            for &input in &node.operation.inputs {
                // Some inputs of a concatenation may not be read.
                if let Entry::Vacant(unread) = parts.entry(input) {
                    unread.insert(part(input, &(Vec::new(), &[]))?);
                }
            }
            let inputs: Vec<&Part<E>> = node.operation.inputs.iter().map(|id| &parts[id]).collect();
            let mut elements = compute(node, &inputs, weights, wanted)?;
            if demand.shares.contains_key(&output) {
                let share = shares.remove(&output).ok_or_else(|| misuse("a stage lacks a share"))?;
                elements = elements.plus(&part(output, share)?.select(wanted)?)?;
            }
            parts.insert(output, Part { len: node.output().len(), indices: wanted.clone(), elements });
        }
        parts.remove(&source).ok_or_else(|| misuse("a stage lacks what it reads"))
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
            return Err(misuse("a stage got no elements, or a window in parts"));
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
