//! A program in steps: linear operations at the server, and exchanges with the client for all others.

use std::collections::HashSet;

use privet_paillier::KeySize;
use privet_program::{Operation, Operator, Program};
use privet_ring::window::Groups;
use serde::Serialize;

use super::exchange::{Exchange, Order};
use crate::Error;
use crate::layers::{check_supported, window_groups};

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
    key_size: KeySize,
    steps: Vec<Step>,
}

/// What one inference takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Bits of the key.
    pub key_bits: usize,
    /// Exchanges, the input and outputs not counted.
    pub exchanges: usize,
    /// Values that the client encrypts.
    pub encryptions: usize,
    /// Values that it decrypts; the server makes as much noise.
    pub decryptions: usize,
    /// Bytes of ciphertexts that the client sends.
    pub online_bytes_client: usize,
    /// Bytes of ciphertexts that the server sends.
    pub online_bytes_server: usize,
}

impl Plan {
    /// Plans `program` for keys of a size.
    ///
    /// # Errors
    /// [`Error::Misuse`], which names the layer, if the suite does not compute it: poolings whose windows overlap and
    /// an argmax before the end, because permutations cannot hide places there; factors of more than 31 bits.
    pub fn new(program: Program, key_size: KeySize) -> Result<Self, Error> {
        check_supported(&program)?;
        program.operations().iter().try_for_each(check_factors)?;
        let steps = steps(&program)?;
        Ok(Self { program, key_size, steps })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Bits of the key, as an enumeration.
    pub fn key_size(&self) -> KeySize {
        self.key_size
    }

    /// What one inference takes.
    pub fn forecast(&self) -> Forecast {
        let given: usize = self.program.inputs().iter().map(|input| self.program.value(input.value).len()).sum();
        let encryptions = given + self.exchanges().map(|exchange| exchange.returned(&self.program)).sum::<usize>();
        let decryptions = self.exchanges().map(|exchange| exchange.sent(&self.program)).sum();
        let bytes = self.key_size.ciphertext_bytes();
        Forecast {
            key_bits: self.key_size.bits(),
            exchanges: self.exchanges().filter(|exchange| !matches!(exchange.order, Order::Output(_))).count(),
            encryptions,
            decryptions,
            online_bytes_client: encryptions * bytes,
            online_bytes_server: decryptions * bytes,
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

/// Whether the client computes an operation.
fn is_exchanged(operator: &Operator) -> bool {
    use Operator::{Argmax, MaxPool2d, Relu, Truncate};
    matches!(operator, Relu | Truncate { .. } | MaxPool2d { .. } | Argmax { .. })
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
        if !is_exchanged(&operation.operator) {
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
    let is_pool = |index: usize| matches!(operations[index].operator, Operator::MaxPool2d { .. });
    let mut chain = vec![first];
    loop {
        let value = operations[chain[chain.len() - 1]].output;
        if program.outputs().iter().any(|output| output.value == value) {
            return chain;
        }
        let mut readers = (0..operations.len()).filter(|&index| operations[index].inputs.contains(&value));
        let (Some(next), None) = (readers.next(), readers.next()) else { return chain };
        let operator = &operations[next].operator;
        let pooled = chain.iter().any(|&index| is_pool(index));
        if !(is_exchanged(operator) || *operator == Operator::Reshape) || (pooled && is_pool(next)) {
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
        let operation = &program.operations()[index];
        match &operation.operator {
            Operator::Argmax { .. } => {
                return Err(refused(operation, "the place of a maximum means nothing among permuted values"));
            }
            Operator::MaxPool2d { window } => {
                let groups = window_groups(program, operation, window);
                check_apart(operation, &groups)?;
                return Ok(Order::Windows(groups));
            }
            _ => {}
        }
    }
    Ok(Order::Elements)
}

/// Refuses overlapping windows: an element in two of them would tell which are neighbours.
fn check_apart(operation: &Operation, groups: &Groups) -> Result<(), Error> {
    let mut seen = HashSet::new();
    match groups.indices().all(|index| seen.insert(index)) {
        true => Ok(()),
        false => Err(refused(operation, "its windows overlap, which would tell the client where each lies")),
    }
}

fn check_factors(operation: &Operation) -> Result<(), Error> {
    match &operation.operator {
        Operator::AvgPool2d { factors, .. } if factors.iter().any(|factor| i32::try_from(*factor).is_err()) => {
            Err(refused(operation, "a factor has more than 31 bits"))
        }
        _ => Ok(()),
    }
}

fn refused(operation: &Operation, why: &str) -> Error {
    let (name, operator) = (&operation.name, operation.operator.name());
    Error::Misuse(format!("layer {name} ({operator}) does not run in suite stream: {why}; choose suite gmw or fss"))
}
