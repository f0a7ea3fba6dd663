//! The steps of a program on authenticated values, and what they take.

use privet_fss::Role;
use privet_program::{Program, Weights};
use privet_ring::Modulus;
use privet_shark::ends;

use super::Config;
use super::ops::{self, Placed, Purpose};
use super::planner::Planner;
use crate::Error;
use crate::limits;
use crate::ops::{check_stateless, last_uses};

/// The steps of a program, and what they take.
pub struct Plan {
    program: Program,
    config: Config,
    pub(super) steps: Vec<Placed>,
    /// Ring width of each value when it is written, in bits.
    widths: Vec<u32>,
    /// Names and lengths of the private tensors in the order in which a setup takes them up.
    pub(super) tensors: Vec<(String, usize)>,
    traffic: Traffic,
}

/// Bytes that client and server send online, and rounds of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The client's.
    pub client_bytes: u64,
    /// The server's.
    pub server_bytes: u64,
    /// Rounds.
    pub rounds: u64,
}

impl Plan {
    /// Plans `program`.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a private tensor is missing from an operation that needs it, or a layer runs only in suite
    /// `ckks`.
    pub fn new(program: Program, config: Config) -> Result<Self, Error> {
        check_stateless(&program)?;
        let operations = ops::all(&program)?;
        let Planner { steps, written, tensors, bytes, turns, .. } = Planner::plan(&program, &operations, config);
        drop(operations);
        let traffic = Traffic { client_bytes: bytes[0], server_bytes: bytes[1], rounds: turns.rounds() };
        let plan = Self { config, steps, widths: written, tensors, traffic, program };
        let [client, server] = plan.stored_bytes();
        limits::check(0, 0, client.max(server))?;
        Ok(plan)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What both parties chose.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Online traffic.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Width of the ring in which value `id` is when its operation has run, in bits.
    pub fn width(&self, id: usize) -> u32 {
        self.widths[id]
    }

    /// The ring in which a value is when its operation has run.
    pub(super) fn ring_of(&self, value: usize) -> Modulus {
        Modulus::new(self.widths[value])
    }

    pub(super) fn ring(&self) -> Modulus {
        Modulus::new(self.program.ring_bits())
    }

    /// Private numbers in all.
    pub(super) fn private_len(&self) -> usize {
        self.tensors.iter().map(|(_, len)| len).sum()
    }

    /// Bytes of the keys at one party that are used up offline: masks, and products with masks.
    pub(super) fn early_bytes(&self, role: Role) -> u64 {
        let early = self.steps.iter().filter(|placed| placed.step.prepared().is_some());
        early.map(|placed| placed.step.key_bytes().of(role) as u64).sum()
    }

    /// Bytes of the keys at one party that are used up online.
    pub(super) fn body_bytes(&self, role: Role) -> u64 {
        let late = self.steps.iter().filter(|placed| placed.step.prepared().is_none());
        let outputs = ends::key_bytes(self.output_len()).of(role) as u64;
        late.map(|placed| placed.step.key_bytes().of(role) as u64).sum::<u64>() + outputs
    }

    /// Authenticated values that either party makes offline and stores: for each step, in order.
    pub(super) fn prepared_len(&self) -> usize {
        self.steps.iter().filter_map(|placed| placed.step.prepared()).sum()
    }

    /// The ring of all outputs.
    pub(super) fn output_ring(&self) -> Modulus {
        let widths = self.program.outputs().iter().map(|output| self.widths[output.value]);
        Modulus::new(widths.max().unwrap_or(self.program.ring_bits()))
    }

    pub(super) fn output_len(&self) -> usize {
        self.program.outputs().iter().map(|output| self.program.value(output.value).len()).sum()
    }

    /// For each step, the values that no later step and no output reads.
    pub(super) fn last_uses(&self) -> Vec<Vec<usize>> {
        last_uses(&self.program, &self.steps.iter().map(|placed| placed.touched.clone()).collect::<Vec<_>>())
    }

    /// What a step is for, in tables: the ONNX node and the operator.
    pub(super) fn describe(&self, placed: &Placed) -> (&str, &'static str) {
        let operations = self.program.operations();
        match placed.purpose {
            Purpose::Operation(index) => (&operations[index].name, operations[index].operator.name()),
            Purpose::Value(value, name) => {
                let writer = operations.iter().find(|operation| operation.output == value);
                (writer.map_or("input", |operation| &operation.name), name)
            }
        }
    }

    /// Whether these are the weights that the plan was made for. Fails with [`Error::Misuse`] if a tensor has another
    /// length.
    pub(super) fn check_weights(&self, weights: &Weights) -> Result<(), Error> {
        match self.tensors.iter().all(|(name, len)| weights.tensor(name).len() == *len) {
            true => Ok(()),
            false => Err(Error::Misuse("the weights are of another program".into())),
        }
    }
}
