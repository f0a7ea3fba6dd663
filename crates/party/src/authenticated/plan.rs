//! From a program to steps on authenticated values.
//!
//! A linear layer, a truncation and a comparison read a value behind a mask ([`Step::Mask`]); everything else is local. A
//! truncation that only a ReLU reads is part of its key, and one whose result must be in the wide ring ends there at once. If
//! truncations are exact, neither is done: every step is then a function of the value alone, for every value of its ring.

use std::collections::HashMap;

use privet_fss::{KeyBytes, Role};
use privet_gmw::{Sign, Truncation};
use privet_program::{Operation, Operator, Program, Weights};
use privet_ring::Modulus;
use privet_shark::dealer::MASK_BYTES;
use privet_shark::{CHECK_BYTES, Extend, Layer, Relu, Tournament, Truncate, ends};

use super::{Options, layers};
use crate::Error;
use crate::layers::{check_supported, computes_in_ring, needs_ring, pooling_sizes, signs};
use crate::limits;
use crate::turns::Turns;

/// One step of a run; the dealer takes the same ones.
#[derive(Debug)]
pub(super) enum Step {
    /// The client's input.
    Input { value: usize },
    /// Opens a value behind a mask.
    Mask { value: usize },
    /// A linear layer with its bias.
    Linear { operation: usize, layer: Layer },
    /// A ReLU, and what is dropped before it.
    Relu { operation: usize, input: usize, relu: Relu },
    /// A truncation into the smaller ring.
    Truncate { operation: usize, truncate: Truncate },
    /// A truncation that stays in the wide ring.
    Shorten { operation: usize, extend: Extend },
    /// The same value in the wide ring.
    Extend { value: usize, extend: Extend },
    /// One stage of a max pooling after the other.
    MaxPool { operation: usize, stages: Vec<Tournament> },
    /// Positions of maxima.
    Argmax { operation: usize, tournament: Tournament },
    /// An operation without messages.
    Local { operation: usize },
}

impl Step {
    /// Whether its keys are used up offline.
    pub(super) fn is_early(&self) -> bool {
        matches!(self, Self::Input { .. } | Self::Mask { .. } | Self::Linear { .. })
    }
}

/// The steps of a program, and what they take.
pub struct Plan {
    program: Program,
    options: Options,
    steps: Vec<Step>,
    /// Ring width of each value when it is written, in bits.
    widths: Vec<u32>,
    /// Private tensors in the order in which a setup takes them up.
    tensors: Vec<(String, usize)>,
    traffic: Traffic,
}

/// Bytes that client and server send online, and rounds of the one that counts more.
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
    pub fn new(program: Program, options: Options) -> Result<Self, Error> {
        check_supported(&program)?;
        let mut planner = Planner::new(&program, options);
        for input in program.inputs() {
            planner.input(input.value);
        }
        for index in 0..program.operations().len() {
            planner.operation(index);
        }
        planner.outputs();
        let Planner { steps, written, tensors, bytes, turns, .. } = planner;
        let traffic = Traffic { client_bytes: bytes[0], server_bytes: bytes[1], rounds: turns.rounds() };
        let plan = Self { options, steps, widths: written, tensors, traffic, program };
        let [client, server] = plan.stored_bytes();
        limits::check(0, 0, client.max(server))?;
        Ok(plan)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What both parties chose.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Online traffic.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Width of the ring in which value `id` is when its operation has run, in bits.
    pub fn width(&self, id: usize) -> u32 {
        self.widths[id]
    }

    /// The ring in which a value is when its operation has run.
    pub(super) fn ring_of(&self, value: usize) -> Modulus {
        Modulus::new(self.widths[value])
    }

    /// The program's ring.
    pub(super) fn ring(&self) -> Modulus {
        Modulus::new(self.program.ring_bits())
    }

    /// Names and lengths of the private tensors.
    pub(super) fn tensors(&self) -> &[(String, usize)] {
        &self.tensors
    }

    /// Private numbers in all.
    pub(super) fn private_len(&self) -> usize {
        self.tensors.iter().map(|(_, len)| len).sum()
    }

    /// Bytes of the keys at one party that are used up offline: masks, and products with masks.
    pub(super) fn early_bytes(&self, role: Role) -> u64 {
        let early = self.steps.iter().filter(|step| step.is_early());
        early.map(|step| self.key_bytes(step).of(role) as u64).sum()
    }

    /// Bytes of the keys at one party that are used up online.
    pub(super) fn body_bytes(&self, role: Role) -> u64 {
        let late = self.steps.iter().filter(|step| !step.is_early());
        let outputs = ends::key_bytes(self.output_len()).of(role) as u64;
        late.map(|step| self.key_bytes(step).of(role) as u64).sum::<u64>() + outputs
    }

    /// Authenticated values that either party makes offline and stores: for each step, in order.
    pub(super) fn prepared_len(&self) -> usize {
        self.steps.iter().map(|step| self.prepared_by(step)).sum()
    }

    /// Those of one step.
    pub(super) fn prepared_by(&self, step: &Step) -> usize {
        match step {
            Step::Input { value } | Step::Mask { value } => self.program.value(*value).len(),
            Step::Linear { layer, .. } => layer.outputs(),
            _ => 0,
        }
    }

    /// The ring of all outputs.
    pub(super) fn output_ring(&self) -> Modulus {
        let widths = self.program.outputs().iter().map(|output| self.widths[output.value]);
        Modulus::new(widths.max().unwrap_or(self.program.ring_bits()))
    }

    pub(super) fn output_len(&self) -> usize {
        self.program.outputs().iter().map(|output| self.program.value(output.value).len()).sum()
    }

    /// The key of one step.
    pub(super) fn key_bytes(&self, step: &Step) -> KeyBytes {
        let len = |value: usize| self.program.value(value).len();
        let input = |operation: usize| len(self.program.operations()[operation].inputs[0]);
        match step {
            Step::Input { value } => ends::key_bytes(len(*value)),
            Step::Mask { value } => KeyBytes { words: 0, corrections: len(*value) * MASK_BYTES },
            Step::Linear { layer, .. } => layer.key_bytes(),
            Step::Relu { input, relu, .. } => relu.key_bytes(len(*input)),
            Step::Truncate { operation, truncate } => truncate.key_bytes(input(*operation)),
            Step::Shorten { operation, extend } => extend.key_bytes(input(*operation)),
            Step::Extend { value, extend } => extend.key_bytes(len(*value)),
            Step::MaxPool { stages, .. } => {
                stages.iter().map(Tournament::key_bytes).fold(KeyBytes::default(), |sum, bytes| sum + bytes)
            }
            Step::Argmax { tournament, .. } => tournament.key_bytes(),
            Step::Local { .. } => KeyBytes::default(),
        }
    }

    /// For each step, the values that no later step and no output reads.
    pub(super) fn last_uses(&self) -> Vec<Vec<usize>> {
        let mut last: Vec<Option<usize>> = vec![None; self.program.values().len()];
        for (index, step) in self.steps.iter().enumerate() {
            self.touched(step).into_iter().for_each(|value| last[value] = Some(index));
        }
        self.program.outputs().iter().for_each(|output| last[output.value] = None);
        let mut of_step = vec![Vec::new(); self.steps.len()];
        for (value, index) in last.into_iter().enumerate().filter_map(|(value, index)| Some((value, index?))) {
            of_step[index].push(value);
        }
        of_step
    }

    /// Values that a step reads or writes.
    fn touched(&self, step: &Step) -> Vec<usize> {
        match *step {
            Step::Input { value } | Step::Mask { value } | Step::Extend { value, .. } => vec![value],
            Step::Relu { operation, input, .. } => vec![input, self.program.operations()[operation].output],
            Step::Linear { operation, .. }
            | Step::Truncate { operation, .. }
            | Step::Shorten { operation, .. }
            | Step::MaxPool { operation, .. }
            | Step::Argmax { operation, .. }
            | Step::Local { operation } => {
                let operation = &self.program.operations()[operation];
                operation.inputs.iter().copied().chain([operation.output]).collect()
            }
        }
    }

    /// What a step is for, in tables: the ONNX node and the operator.
    pub(super) fn describe(&self, step: &Step) -> (&str, &'static str) {
        let operations = self.program.operations();
        let writer = |value: usize| {
            operations.iter().find(|operation| operation.output == value).map_or("input", |operation| &operation.name)
        };
        match *step {
            Step::Input { .. } => ("input", "input"),
            Step::Mask { value } => (writer(value), "open"),
            Step::Extend { value, .. } => (writer(value), "extend"),
            Step::Linear { operation, .. }
            | Step::Relu { operation, .. }
            | Step::Truncate { operation, .. }
            | Step::Shorten { operation, .. }
            | Step::MaxPool { operation, .. }
            | Step::Argmax { operation, .. }
            | Step::Local { operation } => (&operations[operation].name, operations[operation].operator.name()),
        }
    }

    /// Whether these are the weights that the plan was made for.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a tensor has another length.
    pub(super) fn check_weights(&self, weights: &Weights) -> Result<(), Error> {
        match self.tensors.iter().all(|(name, len)| weights.tensor(name).len() == *len) {
            true => Ok(()),
            false => Err(Error::Misuse("the weights are of another program".into())),
        }
    }
}

struct Planner<'a> {
    program: &'a Program,
    options: Options,
    steps: Vec<Step>,
    widths: Vec<u32>,
    written: Vec<u32>,
    needs_ring: Vec<bool>,
    /// Values that are behind a mask, in the ring that they were in then.
    masked: HashMap<usize, u32>,
    /// Truncations that are left to the one ReLU that reads them: their input and how many bits they drop.
    pending: HashMap<usize, (usize, u32)>,
    /// What is known of each value's sign.
    signs: Vec<Sign>,
    tensors: Vec<(String, usize)>,
    bytes: [u64; 2],
    turns: Turns,
}

/// What a channel adds to a message.
const FRAME_BYTES: usize = 5;

impl<'a> Planner<'a> {
    fn new(program: &'a Program, options: Options) -> Self {
        let widths = vec![program.ring_bits(); program.values().len()];
        Self {
            program,
            options,
            steps: Vec::new(),
            written: widths.clone(),
            widths,
            needs_ring: needs_ring(program),
            masked: HashMap::new(),
            pending: HashMap::new(),
            signs: signs(program),
            tensors: Vec::new(),
            bytes: [0; 2],
            turns: Turns::new(),
        }
    }

    fn len(&self, value: usize) -> usize {
        self.program.value(value).len()
    }

    /// Books messages that both send, one exchange each.
    fn exchange(&mut self, messages: &[usize]) {
        let bytes: usize = messages.iter().map(|bytes| bytes + FRAME_BYTES).sum();
        self.bytes.iter_mut().for_each(|sum| *sum += bytes as u64);
        self.turns.exchange(messages.len() as u64);
    }

    fn input(&mut self, value: usize) {
        let ring = Modulus::new(self.program.ring_bits());
        self.steps.push(Step::Input { value });
        self.bytes[0] += (ring.packed_bytes(self.len(value)) + FRAME_BYTES) as u64;
        self.turns.client_sends();
        self.masked.insert(value, ring.bits());
    }

    /// Puts a value behind a mask unless it is.
    fn mask(&mut self, value: usize) {
        if self.masked.insert(value, self.widths[value]) != Some(self.widths[value]) {
            self.steps.push(Step::Mask { value });
            self.exchange(&[16 * self.len(value)]);
        }
    }

    /// Brings a value to the program's ring, whatever it is: nothing bounds what values do inside a program, and a gate that
    /// is right for some alone would let their masks show in the output.
    fn extend(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if from < to {
            self.mask(value);
            let extend = match self.signs[value] {
                Sign::NonNegative => Extend::non_negative(from, 0),
                Sign::Unknown => Extend::exact(from),
            };
            self.exchange(&extend.message_bytes(self.len(value)));
            self.steps.push(Step::Extend { value, extend });
            self.widths[value] = to;
        }
    }

    fn is_exact(&self) -> bool {
        self.options.truncation == Truncation::Exact
    }

    fn operation(&mut self, index: usize) {
        let operation = &self.program.operations()[index];
        let (input, output) = (operation.inputs[0], operation.output);
        self.align(operation);
        let width = self.widths[input];
        let written = match &operation.operator {
            Operator::Truncate { bits } if *bits > 0 => self.truncate(index, *bits),
            Operator::Relu => self.relu(index),
            Operator::MaxPool2d { window } => {
                let stages: Vec<Tournament> = pooling_sizes(self.program, operation, window)
                    .into_iter()
                    .map(|sizes| Tournament::maxima(width, sizes))
                    .collect();
                stages.iter().for_each(|stage| self.exchange(&stage.message_bytes()));
                self.steps.push(Step::MaxPool { operation: index, stages });
                width
            }
            Operator::Argmax { axis, .. } => {
                let shape = &self.program.value(input).shape;
                let groups = shape.iter().product::<usize>() / shape[*axis];
                let tournament = Tournament::positions(width, [(shape[*axis], groups)]);
                self.exchange(&tournament.message_bytes());
                self.steps.push(Step::Argmax { operation: index, tournament });
                width
            }
            _ => {
                if let Some((layer, names)) = layers::linear(self.program, operation) {
                    self.mask(input);
                    self.tensors.extend(names);
                    self.steps.push(Step::Linear { operation: index, layer });
                } else {
                    self.tensors.extend(layers::constant(operation));
                    self.steps.push(Step::Local { operation: index });
                }
                width
            }
        };
        self.widths[output] = written;
        self.written[output] = written;
    }

    /// Returns the width of the result.
    fn truncate(&mut self, index: usize, bits: u32) -> u32 {
        let operation = &self.program.operations()[index];
        let (input, width) = (operation.inputs[0], self.widths[operation.inputs[0]]);
        let exact = self.is_exact();
        self.mask(input);
        if !exact && self.is_for_a_relu(operation.output) {
            self.pending.insert(operation.output, (input, bits));
            return width - bits;
        }
        if !exact && self.needs_ring[operation.output] && width >= bits + 2 {
            self.steps.push(Step::Shorten { operation: index, extend: Extend::signed(width, bits) });
            return width;
        }
        let truncate = if exact { Truncate::exact(width, bits) } else { Truncate::near(width, bits) };
        self.exchange(&truncate.message_bytes(self.len(input)));
        self.steps.push(Step::Truncate { operation: index, truncate });
        width - bits
    }

    /// Returns the width of the result.
    fn relu(&mut self, index: usize) -> u32 {
        let operation = &self.program.operations()[index];
        let value = operation.inputs[0];
        let (input, dropped) = self.pending.get(&value).copied().unwrap_or((value, 0));
        if dropped == 0 {
            self.mask(input);
        }
        let (from, left) = (self.widths[input], self.widths[value]);
        let to = if self.needs_ring[operation.output] { self.program.ring_bits() } else { left };
        let relu = Relu::new(from, dropped, to);
        self.exchange(&relu.message_bytes(self.len(input)));
        self.steps.push(Step::Relu { operation: index, input, relu });
        to
    }

    /// Extends the inputs of `operation` where it needs the wide ring, or all of one width.
    fn align(&mut self, operation: &Operation) {
        let widths: Vec<u32> = operation.inputs.iter().map(|&id| self.widths[id]).collect();
        let is_argmax = matches!(operation.operator, Operator::Argmax { .. });
        if is_argmax || computes_in_ring(&operation.operator) || widths.iter().any(|&width| width != widths[0]) {
            operation.inputs.iter().for_each(|&id| self.extend(id));
        }
    }

    /// Whether one ReLU reads `value`, and nothing else does.
    fn is_for_a_relu(&self, value: usize) -> bool {
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
            self.bytes.iter_mut().for_each(|sum| *sum += (CHECK_BYTES[1] + FRAME_BYTES) as u64);
            self.turns.client_sends();
            self.turns.server_sends();
        }
    }
}
