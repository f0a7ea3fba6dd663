//! A program in stages that do not know each other: what a pipeline over several servers is made of.
//!
//! A *round* is an exchange: a linear stage at the model provider and what the data provider does with the answer. All
//! that a linear stage reads are *bases*: inputs of the program and answers of earlier rounds. So whoever runs a stage
//! needs no state of the request but those, and any elements of its result can be computed on their own ([`Slice`]).
//! Nothing here talks to anybody: ciphertexts come and go as bytes, and which element went to which place is the
//! caller's to keep.

use std::collections::{BTreeMap, BTreeSet};

use privet_paillier::{Ciphertexts, KeySize, NoiseTable, Plaintext, PrivateKey, PublicKey};
use privet_prg::Prg;
use privet_program::{Operator, Program, Weights};
use serde::Serialize;

use super::arrangement::Arrangement;
use super::exchange::{Exchange, Order, longest};
use super::infer::checked;
use super::packed::Samples;
use super::partition::{Part, compute, needs};
use super::plan::{Plan, Step};
use crate::Error;

/// A plan, and at the model provider the weights, as stages.
pub struct Stages {
    plan: Plan,
    key_size: KeySize,
    weights: Option<Weights>,
}

/// One round, for whoever moves the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Round {
    /// A name for people: the first operation of the data provider, or the output.
    pub name: String,
    /// The linear operations of the model provider.
    pub linear: Vec<String>,
    /// The operations of the data provider.
    pub operators: String,
    /// The values (by number) that the linear stage reads: inputs of the program and earlier rounds' `target`.
    pub bases: Vec<usize>,
    /// Elements that the model provider sends.
    pub sent: usize,
    /// How many of them, one after the other, belong together for the data provider: the window of a pooling, or all.
    pub unit: usize,
    /// Elements of the answer; none to an output.
    pub returned: usize,
    /// The value that the answer is, or the number of the program's output.
    pub target: usize,
    /// Whether elements go in their own order, and nothing comes back.
    pub output: bool,
    /// The value sent.
    pub source: usize,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// A part of a round's value, and what it takes to compute it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// Elements of the value sent, ascending.
    pub elements: Vec<usize>,
    /// For each base, in the round's order, the elements read, ascending.
    pub needs: Vec<Vec<usize>>,
}

/// Noise for ciphertexts under a data provider's key.
pub struct Randomizer {
    key: PublicKey,
    table: NoiseTable,
}

impl Randomizer {
    /// For a key as its owner sent it.
    ///
    /// # Errors
    /// [`Error::Encryption`] if it cannot be one; [`Error::Randomness`].
    pub fn new(size: KeySize, key: &[u8]) -> Result<Self, Error> {
        let key = PublicKey::from_bytes(size, key)?;
        let table = NoiseTable::new(&key)?;
        Ok(Self { key, table })
    }
}

impl Stages {
    /// Stages of a program for keys of a size; `weights` at the model provider.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(program: Program, key_size: KeySize, weights: Option<Weights>) -> Result<Self, Error> {
        Ok(Self { plan: Plan::new(program, key_size)?, key_size, weights })
    }

    /// Bits of the key, as an enumeration.
    pub fn key_size(&self) -> KeySize {
        self.key_size
    }

    /// All rounds, in the order of the program.
    pub fn rounds(&self) -> Vec<Round> {
        self.plan.exchanges().map(|exchange| self.describe(exchange)).collect()
    }

    fn describe(&self, exchange: &Exchange) -> Round {
        let program = self.plan.program();
        let all: Vec<usize> = (0..program.value(exchange.source).len()).collect();
        let demand = self.demand(exchange.source, &all);
        let name = |(index, _): &(usize, _)| program.operations()[*index].name.clone();
        let (target, output) = match &exchange.order {
            Order::Elements | Order::Windows(_) => (exchange.target, false),
            Order::Output(index) => (*index, true),
        };
        Round {
            name: exchange.name(program).into(),
            linear: demand.operations.iter().map(name).collect(),
            operators: exchange.operators(program),
            bases: demand.bases.keys().copied().collect(),
            sent: exchange.sent(program),
            unit: unit(program, exchange),
            returned: exchange.returned(program),
            target,
            output,
            source: exchange.source,
            shape: program.value(exchange.source).shape.clone(),
        }
    }

    /// Cuts a round's value into at most `count` parts of about the same size, along the axis for which they need the
    /// fewest elements in all: rows of an image for a convolution, columns for a dense layer.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no such round.
    pub fn slices(&self, round: usize, count: usize) -> Result<Vec<Slice>, Error> {
        let exchange = self.exchange(round)?;
        let shape = self.shape(exchange.source);
        let whole = |axis: &usize| shape[*axis] >= count.clamp(1, shape.iter().copied().max().unwrap_or(1));
        let axes = (0..shape.len()).filter(whole);
        let cuts = axes.map(|axis| self.cut(exchange, axis, count.clamp(1, shape[axis])));
        let reads = |slices: &Vec<Slice>| -> usize { slices.iter().flat_map(|slice| &slice.needs).map(Vec::len).sum() };
        // A value without axes is a single element.
        Ok(cuts.min_by_key(reads).unwrap_or_else(|| vec![self.slice(exchange, vec![0])]))
    }

    fn cut(&self, exchange: &Exchange, axis: usize, count: usize) -> Vec<Slice> {
        let shape = self.shape(exchange.source);
        let (size, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
        let all = shape.iter().product();
        let part = |start: usize, end: usize| {
            (0..all).filter(|index| (start..end).contains(&(index / inner % size))).collect::<Vec<usize>>()
        };
        (0..count).map(|at| self.slice(exchange, part(at * size / count, (at + 1) * size / count))).collect()
    }

    /// The shape that a value had before it was flattened: an image still has its rows there.
    fn shape(&self, mut value: usize) -> &[usize] {
        let program = self.plan.program();
        let linear = |step: &Step| match step {
            Step::Linear(index) => Some(*index),
            Step::Exchange(_) => None,
        };
        for index in self.plan.steps().iter().rev().filter_map(linear) {
            let operation = &program.operations()[index];
            if operation.output == value && operation.operator == Operator::Reshape {
                value = operation.inputs[0];
            }
        }
        &program.value(value).shape
    }

    fn slice(&self, exchange: &Exchange, elements: Vec<usize>) -> Slice {
        let needs = self.demand(exchange.source, &elements).bases.into_values().collect();
        Slice { elements, needs }
    }

    /// A fresh arrangement of a round: the element at each place of the message, and the place of each element of the
    /// answer. An output is in its own order.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Misuse`] if there is no such round.
    pub fn arrange(&self, round: usize) -> Result<(Vec<usize>, Vec<usize>), Error> {
        let exchange = self.exchange(round)?;
        let count = self.plan.program().value(exchange.source).len();
        let arrangement = match &exchange.order {
            Order::Elements => Arrangement::elements(count, &mut Prg::from_os()?),
            Order::Windows(groups) => Arrangement::groups(groups, &mut Prg::from_os()?),
            Order::Output(_) => return Ok(((0..count).collect(), Vec::new())),
        };
        Ok((arrangement.sent, arrangement.returned))
    }

    /// Computes elements of a round's value, in any order and also repeatedly, each with noise of its own. `given` has
    /// for each base the elements that are there and their ciphertexts.
    ///
    /// # Errors
    /// [`Error::Misuse`] without weights, or if an element is missing; [`Error::Encryption`] if a ciphertext is none.
    pub fn linear(
        &self,
        round: usize,
        randomizer: &Randomizer,
        elements: &[usize],
        given: &[(Vec<usize>, &[u8])],
    ) -> Result<Vec<u8>, Error> {
        let source = self.exchange(round)?.source;
        let program = self.plan.program();
        let weights = self.weights.as_ref().ok_or_else(|| misuse("linear stages need the weights"))?;
        let wanted: Vec<usize> = elements.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        if wanted.last().is_none_or(|&last| last >= program.value(source).len()) {
            return Err(misuse("a stage is asked for no elements, or for some that there are not"));
        }
        let demand = self.demand(source, &wanted);
        let mut parts = BTreeMap::new();
        for (&value, (indices, bytes)) in demand.bases.keys().zip(given) {
            let ciphertexts = Ciphertexts::from_bytes(&randomizer.key, indices.len(), bytes)?;
            parts.insert(value, Part { indices: indices.clone(), ciphertexts });
        }
        let none = Ciphertexts::from_bytes(&randomizer.key, 0, &[])?;
        let nothing = Part { indices: Vec::new(), ciphertexts: none };
        for (index, wanted) in demand.operations {
            let operation = &program.operations()[index];
            let inputs: Vec<&Part> = operation.inputs.iter().map(|id| parts.get(id).unwrap_or(&nothing)).collect();
            let ciphertexts = compute(program, operation, &inputs, weights, &wanted)?;
            parts.insert(operation.output, Part { indices: wanted, ciphertexts });
        }
        let result = parts.get(&source).ok_or_else(|| misuse("a stage lacks what it reads"))?;
        let mut sent = result.select(elements)?;
        sent.randomize(randomizer.table.draw(sent.len())?)?;
        Ok(sent.to_bytes())
    }

    /// Encrypts values of the data provider.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn encrypt(&self, key: &PrivateKey, values: &[i64]) -> Result<Vec<u8>, Error> {
        let plaintexts: Vec<Plaintext> = values.iter().map(|&value| value.into()).collect();
        Ok(Ciphertexts::encrypt(&plaintexts, key.noise(plaintexts.len())?)?.to_bytes())
    }

    /// The data provider's part of a round for some whole units of what came: the values that it computes.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a value leaves the ring or units are cut; [`Error::Encryption`] if a ciphertext is none.
    pub fn values(&self, round: usize, key: &PrivateKey, bytes: &[u8]) -> Result<Vec<i64>, Error> {
        let exchange = self.exchange(round)?;
        let count = bytes.len() / self.key_size.ciphertext_bytes();
        let program = self.plan.program();
        if count == 0 || !count.is_multiple_of(unit(program, exchange)) {
            return Err(misuse("a stage got no elements, or a window in pieces"));
        }
        let ciphertexts = Ciphertexts::from_bytes(key.public(), count, bytes)?;
        Ok(exchange.compute(program, checked(program, exchange, &key.decrypt(&ciphertexts)?, Samples::ONE)?.concat()))
    }

    /// As [`Stages::values`], encrypted anew.
    ///
    /// # Errors
    /// As there.
    pub fn answer(&self, round: usize, key: &PrivateKey, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.encrypt(key, &self.values(round, key, bytes)?)
    }

    fn exchange(&self, round: usize) -> Result<&Exchange, Error> {
        self.plan.exchanges().nth(round).ok_or_else(|| misuse("the program has no such round"))
    }

    /// What it takes to compute elements of a value.
    fn demand(&self, source: usize, elements: &[usize]) -> Demand {
        let program = self.plan.program();
        let mut wanted: BTreeMap<usize, BTreeSet<usize>> =
            BTreeMap::from([(source, elements.iter().copied().collect())]);
        let mut operations = Vec::new();
        for step in self.plan.steps().iter().rev() {
            let Step::Linear(index) = step else { continue };
            let operation = &program.operations()[*index];
            let Some(elements) = wanted.remove(&operation.output) else { continue };
            let elements: Vec<usize> = elements.into_iter().collect();
            for (&input, read) in operation.inputs.iter().zip(needs(program, operation, &elements)) {
                wanted.entry(input).or_default().extend(read);
            }
            operations.push((*index, elements));
        }
        operations.reverse();
        Demand { operations, bases: sorted(wanted) }
    }
}

/// Linear operations with the elements wanted of each, in the order of the program, and the elements of each base.
struct Demand {
    operations: Vec<(usize, Vec<usize>)>,
    bases: BTreeMap<usize, Vec<usize>>,
}

fn sorted(wanted: BTreeMap<usize, BTreeSet<usize>>) -> BTreeMap<usize, Vec<usize>> {
    wanted.into_iter().map(|(value, elements)| (value, elements.into_iter().collect())).collect()
}

/// Elements of a message that belong together.
fn unit(program: &Program, exchange: &Exchange) -> usize {
    match &exchange.order {
        Order::Elements => 1,
        Order::Windows(groups) => longest(groups),
        Order::Output(_) => program.value(exchange.source).len(),
    }
}

fn misuse(problem: &str) -> Error {
    Error::Misuse(problem.into())
}
