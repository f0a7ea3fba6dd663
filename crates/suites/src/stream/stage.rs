//! A program in stages that do not know each other: what a pipeline over several servers is made of.
//!
//! A *round* is an exchange: a linear stage at the model provider and what the data provider does with the answer. All
//! that a linear stage reads are *bases*: inputs of the program and answers of earlier rounds. So whoever runs a stage
//! needs no state of the request but those, and any elements of its result can be computed on their own ([`Slice`]).
//! Over BFV it also reads *shares*: what the preparation put in place of the products with the client's masks.
//! Nothing here talks to anybody: tensors come and go as [rows](super::rows), and which element went to which place is
//! the caller's to keep.

mod compute;
mod demand;

use std::sync::Mutex;

use privet_paillier::{KeySize, NoiseTable, PublicKey};
use privet_prg::Prg;
use privet_program::{Program, Weights};
use serde::Serialize;

pub use self::compute::Hiding;
use self::demand::{Demand, Known};
use super::arrangement::Arrangement;
use super::cipher::Cipher;
use super::exchange::{Exchange, Order};
use super::plan::{Plan, Step};
use super::rows;
use crate::Error;
use crate::ops::Node;

/// A plan, and at the model provider the weights, as stages.
pub struct Stages {
    plan: Plan,
    weights: Option<Weights>,
    /// Demands that were made lately.
    known: Mutex<Known>,
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
    /// The values whose shares it adds, over BFV: those that its layers with weights give.
    pub shares: Vec<usize>,
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
    /// The same for each share.
    pub shares: Vec<Vec<usize>>,
}

/// Noise for ciphertexts under a data provider's key.
pub struct Randomizer {
    key: PublicKey,
    table: NoiseTable,
}

impl Randomizer {
    /// For a key as its owner sent it. Fails with [`Error::Encryption`] if it cannot be one; [`Error::Randomness`].
    fn new(size: KeySize, key: &[u8]) -> Result<Self, Error> {
        let key = PublicKey::from_bytes(size, key)?;
        let table = NoiseTable::new(&key)?;
        Ok(Self { key, table })
    }
}

impl Stages {
    /// Stages of a program under a cipher; `weights` at the model provider.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(program: Program, cipher: impl Into<Cipher>, weights: Option<Weights>) -> Result<Self, Error> {
        Ok(Self { plan: Plan::new(program, cipher)?, weights, known: Mutex::default() })
    }

    /// Bytes of a row: of a ciphertext, or of a masked value.
    pub fn row_bytes(&self) -> usize {
        match self.plan.cipher() {
            Cipher::Paillier(size) => size.ciphertext_bytes(),
            Cipher::Bfv => rows::ring_bytes(self.ring()),
        }
    }

    /// Bytes of a public key; over BFV no key goes through the pipeline.
    pub fn key_bytes(&self) -> usize {
        match self.plan.cipher() {
            Cipher::Paillier(size) => size.public_key_bytes(),
            Cipher::Bfv => 0,
        }
    }

    /// Noise for a data provider's key as its owner sent it.
    ///
    /// # Errors
    /// [`Error::Encryption`] if it cannot be one; [`Error::Randomness`]; [`Error::Misuse`] over BFV.
    pub fn randomizer(&self, key: &[u8]) -> Result<Randomizer, Error> {
        Randomizer::new(self.plan.key_size()?, key)
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
            shares: demand.shares.keys().copied().collect(),
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
        let read = |slice: &Slice| slice.needs.iter().chain(&slice.shares).map(Vec::len).sum::<usize>();
        let reads = |slices: &Vec<Slice>| -> usize { slices.iter().map(read).sum() };
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
            let node = Node::at(program, index);
            if node.operation.output == value && node.keeps_order() {
                value = node.operation.inputs[0];
            }
        }
        &program.value(value).shape
    }

    fn slice(&self, exchange: &Exchange, elements: Vec<usize>) -> Slice {
        let Demand { bases, shares, .. } = self.demand(exchange.source, &elements);
        Slice { elements, needs: bases.into_values().collect(), shares: shares.into_values().collect() }
    }

    /// A fresh arrangement of a round under Paillier: the element at each place of the message, and the place of each
    /// element of the answer. An output is in its own order.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Misuse`] if there is no such round, or over BFV, where orders are an entry's.
    pub fn arrange(&self, round: usize) -> Result<(Vec<usize>, Vec<usize>), Error> {
        self.plan.key_size()?;
        let exchange = self.exchange(round)?;
        let count = self.plan.program().value(exchange.source).len();
        let arrangement = match &exchange.order {
            Order::Elements => Arrangement::elements(count, &mut Prg::from_os()?),
            Order::Windows(pooling) => Arrangement::groups(pooling.groups(self.plan.program()), &mut Prg::from_os()?),
            Order::Output(_) => return Ok(((0..count).collect(), Vec::new())),
        };
        Ok((arrangement.sent, arrangement.returned))
    }

    fn exchange(&self, round: usize) -> Result<&Exchange, Error> {
        self.plan.exchanges().nth(round).ok_or_else(|| misuse("the program has no such round"))
    }
}

/// Elements of a message that belong together.
fn unit(program: &Program, exchange: &Exchange) -> usize {
    match &exchange.order {
        Order::Elements => 1,
        Order::Windows(pooling) => pooling.longest,
        Order::Output(_) => program.value(exchange.source).len(),
    }
}

fn misuse(problem: &str) -> Error {
    Error::Misuse(problem.into())
}
