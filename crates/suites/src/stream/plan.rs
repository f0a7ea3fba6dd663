//! A program in steps: linear operations at the server, and exchanges with the client for all others.

use std::collections::HashSet;

use privet_paillier::KeySize;
use privet_program::{Operation, Operator, Program};

use super::bfv::Layout;
use super::cipher::Cipher;
use super::exchange::{Exchange, Order};
use super::forecast::{self, Forecast};
use super::linked::second_pooling;
use super::ops;
use super::packed::Samples;
use crate::Error;
use crate::ops::{InRing, Node, check_stateless};

/// What one party does after the other.
pub(super) enum Step {
    /// The server computes this operation on ciphertexts.
    Linear(usize),
    /// The client computes the operations of an exchange.
    Exchange(Exchange),
}

/// A program planned for the suite.
pub struct Plan {
    program: Program,
    method: Method,
    steps: Vec<Step>,
}

/// How values are hidden from the server, with what that takes.
enum Method {
    Paillier(KeySize, Samples),
    Bfv(Box<Layout>),
}

impl Plan {
    /// Plans `program` for a cipher.
    ///
    /// # Errors
    /// [`Error::Misuse`], which names the layer, if the suite does not compute it: poolings whose windows overlap, also
    /// those of another pooling, and an argmax before the end, because permutations cannot hide places there; factors of
    /// more than 31 bits.
    /// [`Error::Linear`] if the program's ring is too wide for BFV.
    pub fn new(program: Program, cipher: impl Into<Cipher>) -> Result<Self, Error> {
        check_stateless(&program)?;
        Node::all(&program).try_for_each(check)?;
        let steps = steps(&program)?;
        if let Some(index) = second_pooling(&program, &steps) {
            let why = "its windows overlap those of another pooling of the same values, which would tell the client where \
                       each lies";
            return Err(refused(&program.operations()[index], why));
        }
        let method = match cipher.into() {
            Cipher::Paillier(key_size) => Method::Paillier(key_size, Samples::ONE),
            Cipher::Bfv => Method::Bfv(Box::new(Layout::new(&program, &steps)?)),
        };
        Ok(Self { program, method, steps })
    }

    /// The same plan for inferences on `count` samples at once, each with a slot of every plaintext. Orders are then the
    /// same for all samples of an inference, so that the client sees which of their values belong together.
    ///
    /// # Errors
    /// [`Error::Encryption`] if a plaintext has no room for as many values of the program's ring; [`Error::Misuse`] over
    /// BFV, which packs without being asked.
    pub fn packed(self, count: usize) -> Result<Self, Error> {
        let key_size = match self.method {
            Method::Paillier(key_size, _) => key_size,
            Method::Bfv(_) if count == 1 => return Ok(self),
            Method::Bfv(_) => return Err(Error::Misuse("samples are packed with Paillier alone".into())),
        };
        let samples = Samples::new(&self.program, key_size, count)?;
        Ok(Self { method: Method::Paillier(key_size, samples), ..self })
    }

    /// The samples of an inference.
    pub(super) fn samples(&self) -> Samples {
        match self.method {
            Method::Paillier(_, samples) => samples,
            Method::Bfv(_) => Samples::ONE,
        }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What hides values from the server.
    pub fn cipher(&self) -> Cipher {
        match self.method {
            Method::Paillier(key_size, _) => Cipher::Paillier(key_size),
            Method::Bfv(_) => Cipher::Bfv,
        }
    }

    /// Bits of the Paillier key, as an enumeration.
    pub(super) fn key_size(&self) -> Result<KeySize, Error> {
        match self.method {
            Method::Paillier(key_size, _) => Ok(key_size),
            Method::Bfv(_) => Err(Error::Misuse("a plan for BFV has no Paillier key".into())),
        }
    }

    /// What preparations over BFV make.
    pub(super) fn layout(&self) -> Result<&Layout, Error> {
        match &self.method {
            Method::Bfv(layout) => Ok(layout),
            Method::Paillier(..) => Err(Error::Misuse("a plan for Paillier prepares nothing over BFV".into())),
        }
    }

    /// What one inference takes.
    pub fn forecast(&self) -> Forecast {
        forecast::of(self)
    }

    /// The name of a step: its operation's.
    pub(super) fn name(&self, step: &Step) -> &str {
        match step {
            Step::Linear(index) => &self.program.operations()[*index].name,
            Step::Exchange(exchange) => exchange.name(&self.program),
        }
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.steps.iter().filter_map(|step| match step {
            Step::Exchange(exchange) => Some(exchange),
            Step::Linear(_) => None,
        })
    }

    /// For each step the values that no later one reads.
    pub(super) fn last_uses(&self) -> Vec<Vec<usize>> {
        let mut seen = HashSet::new();
        let mut last: Vec<Vec<usize>> = self
            .steps
            .iter()
            .rev()
            .map(|step| match step {
                Step::Linear(index) => self.program.operations()[*index].inputs.clone(),
                Step::Exchange(exchange) => vec![exchange.source],
            })
            .map(|read| read.into_iter().filter(|&value| seen.insert(value)).collect())
            .collect();
        last.reverse();
        last
    }
}

fn steps(program: &Program) -> Result<Vec<Step>, Error> {
    let operations = program.operations();
    let mut steps = Vec::new();
    let mut done = HashSet::new();
    let mut given = HashSet::new();
    for (index, operation) in operations.iter().enumerate() {
        if done.contains(&index) {
            continue;
        }
        if ops::of(Node::at(program, index)).is_none() {
            steps.push(Step::Linear(index));
            continue;
        }
        let chain = chain(program, index);
        done.extend(chain.iter().copied());
        let target = operations[chain[chain.len() - 1]].output;
        let only_output = only_output(program, target);
        given.extend(only_output);
        let order = order(program, &chain, only_output)?;
        steps.push(Step::Exchange(Exchange { source: operation.inputs[0], operations: chain, target, order }));
    }
    for (index, output) in program.outputs().iter().enumerate().filter(|(index, _)| !given.contains(index)) {
        let (source, order) = (output.value, Order::Output(index));
        steps.push(Step::Exchange(Exchange { source, operations: Vec::new(), target: source, order }));
    }
    Ok(steps)
}

/// The operations from `first` on that the client computes without the server: each is all that reads the one before.
/// A second pooling would need windows of windows, so it starts another exchange.
fn chain(program: &Program, first: usize) -> Vec<usize> {
    let operations = program.operations();
    let reads_windows = |index| ops::of(Node::at(program, index)).is_some_and(|operation| operation.reads_windows());
    let mut chain = vec![first];
    loop {
        let value = operations[chain[chain.len() - 1]].output;
        if program.outputs().iter().any(|output| output.value == value) {
            return chain;
        }
        let mut readers = (0..operations.len()).filter(|&index| operations[index].inputs.contains(&value));
        let (Some(next), None) = (readers.next(), readers.next()) else { return chain };
        let node = Node::at(program, next);
        let pooled = chain.iter().any(|&index| reads_windows(index));
        if !(ops::of(node).is_some() || node.keeps_order()) || (pooled && reads_windows(next)) {
            return chain;
        }
        chain.push(next);
    }
}

/// The output that a value is, if it is one and nothing else.
fn only_output(program: &Program, value: usize) -> Option<usize> {
    let mut outputs = program.outputs().iter().enumerate().filter(|(_, output)| output.value == value);
    let (index, _) = outputs.next()?;
    let read = program.operations().iter().any(|operation| operation.inputs.contains(&value));
    (outputs.next().is_none() && !read).then_some(index)
}

fn order(program: &Program, chain: &[usize], output: Option<usize>) -> Result<Order, Error> {
    if let Some(output) = output {
        return Ok(Order::Output(output));
    }
    for &index in chain {
        let node = Node::at(program, index);
        let order = ops::of(node).map_or(Ok(Order::Elements), |operation| operation.order(index));
        match order.map_err(|why| refused(node.operation, why))? {
            Order::Elements => {}
            order => return Ok(order),
        }
    }
    Ok(Order::Elements)
}

fn check(node: Node<'_>) -> Result<(), Error> {
    if ops::of(node).is_some() || node.linear().is_some() {
        return Ok(());
    }
    if let Operator::Step { .. } | Operator::Leaves { .. } = node.operation.operator {
        let why = "among permuted nodes of a tree the client would learn which decisions were taken";
        return Err(refused(node.operation, why));
    }
    let Some(local) = node.local::<InRing>() else { return Err(node.unsupported()) };
    match local.factors().iter().all(|&factor| i32::try_from(factor).is_ok()) {
        true => Ok(()),
        false => Err(refused(node.operation, "a factor has more than 31 bits")),
    }
}

fn refused(operation: &Operation, why: &str) -> Error {
    let (name, operator) = (&operation.name, operation.operator.name());
    Error::Misuse(format!("layer {name} ({operator}) does not run in suite stream: {why}; choose suite gmw or fss"))
}
