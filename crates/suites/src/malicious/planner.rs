//! From a program to steps on authenticated values.
//!
//! A linear layer, a truncation and a comparison read a value behind a mask; everything else is local. A truncation that only a
//! ReLU reads is part of its key, and one whose result must be in the wide ring ends there at once. If truncations are exact,
//! neither is done: every step is then a function of the value alone, for every value of its ring.

use std::collections::HashMap;

use privet_channel::HEADER_BYTES;
use privet_gmw::{Sign, Truncation};
use privet_program::{Operation, Operator, Program};
use privet_ring::Modulus;
use privet_shark::{CHECK_BYTES, Extend, Gate};

use super::Config;
use super::gate::Gated;
use super::masking::Mask;
use super::ops::{Placed, Protocol, Purpose, Step};
use crate::ops::{needs_ring, signs};
use crate::turns::Turns;

/// A plan while it is made.
pub(super) struct Planner<'a> {
    program: &'a Program,
    config: Config,
    pub steps: Vec<Placed>,
    /// Current width of each value.
    pub widths: Vec<u32>,
    pub written: Vec<u32>,
    needs_ring: Vec<bool>,
    /// Values that are behind a mask, in the ring that they were in then.
    masked: HashMap<usize, u32>,
    /// Truncations that are left to the one ReLU that reads them: their input and how many bits they drop.
    pub pending: HashMap<usize, (usize, u32)>,
    /// What is known of each value's sign.
    signs: Vec<Sign>,
    /// Private tensors in the order in which a setup takes them up.
    pub tensors: Vec<(String, usize)>,
    pub bytes: [u64; 2],
    pub turns: Turns,
}

impl<'a> Planner<'a> {
    /// Plans the program's inputs, these operations, and its outputs.
    pub(super) fn plan(program: &'a Program, operations: &[Box<dyn Protocol + '_>], config: Config) -> Self {
        let widths = vec![program.ring_bits(); program.values().len()];
        let mut planner = Self {
            program,
            config,
            steps: Vec::new(),
            written: widths.clone(),
            widths,
            needs_ring: needs_ring(program, operations),
            masked: HashMap::new(),
            pending: HashMap::new(),
            signs: signs(program, operations),
            tensors: Vec::new(),
            bytes: [0; 2],
            turns: Turns::default(),
        };
        program.inputs().iter().for_each(|input| planner.input(input.value));
        operations.iter().enumerate().for_each(|(index, protocol)| planner.operation(index, &**protocol));
        planner.outputs();
        planner
    }

    /// Elements of a value.
    pub(super) fn len(&self, value: usize) -> usize {
        self.program.value(value).len()
    }

    /// Width of the program's ring.
    pub(super) fn ring_bits(&self) -> u32 {
        self.program.ring_bits()
    }

    /// Books messages that both send, one exchange each.
    pub(super) fn exchange(&mut self, messages: &[usize]) {
        let bytes: usize = messages.iter().map(|bytes| bytes + HEADER_BYTES).sum();
        self.bytes.iter_mut().for_each(|sum| *sum += bytes as u64);
        self.turns.exchange(messages.len() as u64);
    }

    /// A step without messages, or whose messages are booked; `touched`: the values that it reads and writes.
    pub(super) fn step(&mut self, purpose: Purpose, touched: Vec<usize>, step: impl Step + 'static) {
        self.steps.push(Placed { purpose, touched, step: Box::new(step) });
    }

    fn input(&mut self, value: usize) {
        let (ring, len) = (Modulus::new(self.program.ring_bits()), self.len(value));
        self.step(Purpose::Value(value, "input"), vec![value], Mask { value, len, is_input: true });
        self.bytes[0] += (ring.packed_bytes(len) + HEADER_BYTES) as u64;
        self.turns.client_sends();
        self.masked.insert(value, ring.bits());
    }

    /// Puts a value behind a mask unless it is.
    pub(super) fn mask(&mut self, value: usize) {
        if self.masked.insert(value, self.widths[value]) != Some(self.widths[value]) {
            let len = self.len(value);
            self.step(Purpose::Value(value, "open"), vec![value], Mask { value, len, is_input: false });
            self.exchange(&[16 * len]);
        }
    }

    /// Brings a value to the program's ring, whatever it is: nothing bounds what values do inside a program, and a gate that
    /// is right for some alone would let their masks show in the output.
    fn extend(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if from < to {
            self.mask(value);
            let gate = match self.signs[value] {
                Sign::NonNegative => Extend::non_negative(from, 0),
                Sign::Unknown => Extend::exact(from),
            };
            let len = self.len(value);
            self.exchange(&gate.message_bytes(len));
            let gated = Gated { input: value, output: value, len, gate, to: Some(Modulus::new(to)) };
            self.step(Purpose::Value(value, "extend"), vec![value], gated);
            self.widths[value] = to;
        }
    }

    /// Whether truncations compute the carry.
    pub(super) fn is_exact(&self) -> bool {
        self.config.truncation == Truncation::Exact
    }

    /// Whether a later step needs a value in the program's ring.
    pub(super) fn needs_ring(&self, value: usize) -> bool {
        self.needs_ring[value]
    }

    fn operation(&mut self, index: usize, protocol: &dyn Protocol) {
        let operation = &self.program.operations()[index];
        self.align(&operation.inputs, protocol);
        let output_width = protocol.plan(index, self);
        self.widths[operation.output] = output_width;
        self.written[operation.output] = output_width;
    }

    /// Extends the inputs of an operation where it needs the wide ring, or all of one width.
    fn align(&mut self, inputs: &[usize], protocol: &dyn Protocol) {
        if protocol.reads_wide() || inputs.iter().any(|&id| self.widths[id] != self.widths[inputs[0]]) {
            inputs.iter().for_each(|&id| self.extend(id));
        }
    }

    /// Whether one ReLU reads `value`, and nothing else does.
    pub(super) fn is_for_a_relu(&self, value: usize) -> bool {
        let readers: Vec<_> = self.readers(value).collect();
        let is_output = self.program.outputs().iter().any(|output| output.value == value);
        !is_output && matches!(readers.as_slice(), [reader] if reader.operator == Operator::Relu)
    }

    fn readers(&self, value: usize) -> impl Iterator<Item = &'a Operation> {
        self.program.operations().iter().filter(move |operation| operation.inputs.contains(&value))
    }

    /// All outputs in one ring, the check before them, their opening, and the check after.
    fn outputs(&mut self) {
        let outputs: Vec<usize> = self.program.outputs().iter().map(|output| output.value).collect();
        if outputs.iter().any(|&value| self.widths[value] != self.widths[outputs[0]]) {
            outputs.iter().for_each(|&value| self.extend(value));
        }
        let count: usize = outputs.iter().map(|&value| self.len(value)).sum();
        outputs.iter().for_each(|&value| self.written[value] = self.widths[value]);
        for opening in [None, Some(16 * count)] {
            opening.into_iter().for_each(|bytes| self.exchange(&[bytes]));
            self.exchange(&CHECK_BYTES[..1]);
            self.bytes.iter_mut().for_each(|sum| *sum += (CHECK_BYTES[1] + HEADER_BYTES) as u64);
            self.turns.client_sends();
            self.turns.server_sends();
        }
    }
}
