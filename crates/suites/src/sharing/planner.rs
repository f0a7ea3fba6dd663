//! From a program to the steps of a suite.
//!
//! A truncation drops the low bits of each share, which also shrinks the ring that the value is shared in. Comparisons
//! then run on the small ring, and a value is extended back to Z_2^l only where a step needs the wide ring. So the
//! planner follows each value's width and puts an [`Step::Extend`] where one is needed: that is all there is to
//! "truncate, then compare, then extend". What each operation needs and takes, its [`Protocol`] knows.

use std::collections::HashMap;

use privet_gmw::{Sign, Truncation, cost};
use privet_linear::Layer;
use privet_ot::Demand;
use privet_program::{Operator, Program};
use privet_ring::{Field, Lines};

use super::conversion::{EnterField, Extend, LeaveField, RoundOff};
use super::keys::{self, Batch};
use super::ops::{Context, Protocol};
use super::triples::{Masked, Operand, Triple};
use super::{Options, Step, Suite};
use crate::ops::{
    Bounds, Origin, all_of, bits_counted, bits_read, bounds_of, fits_any_ring, needs_ring, rooms, signed_bits, signs,
};
use crate::turns::Turns;

/// The narrowest ring that encryption multiplies in.
const NARROWEST_ENCRYPTED: u32 = 8;

/// A plan while it is made.
pub(super) struct Planner<'a> {
    program: &'a Program,
    options: Options,
    field: Option<Field>,
    pub steps: Vec<Step>,
    pub keys: Vec<Vec<Batch>>,
    pub demands: Vec<Demand>,
    /// Current width of each value.
    widths: Vec<u32>,
    pub written: Vec<u32>,
    pub signs: Vec<Sign>,
    pub bounds: Vec<Bounds>,
    pub lines: Vec<Option<Lines>>,
    needs_ring: Vec<bool>,
    /// Whether each value may be in any ring that holds it.
    fits_any_ring: Vec<bool>,
    /// The ring that a truncation leaves a value in to have it extended without a comparison.
    rooms: Vec<Option<u32>>,
    /// How many low bits of each value count, if not all.
    read: Vec<Option<u32>>,
    /// The same of results of encrypted products, which stay in the program's ring.
    counted: Vec<Option<u32>>,
    pub masks: Vec<usize>,
    opened: HashMap<usize, usize>,
    /// Operation, mask and weights of each linear layer.
    pub linear: Vec<(usize, Option<usize>, String)>,
    pub layers: Vec<Layer>,
    /// The operation that writes each value.
    writers: Vec<Option<usize>>,
    pub triples: Vec<Triple>,
    /// Values that products read behind masks of both parties.
    pub masked: Vec<Masked>,
    mask_of: HashMap<usize, usize>,
    pub cost: cost::Cost,
    pub turns: Turns,
}

impl<'a> Planner<'a> {
    /// Plans these operations of a program, the opening of its outputs, and its state in the ring that the next inference reads.
    pub(super) fn plan(
        program: &'a Program,
        operations: &[Box<dyn Protocol + '_>],
        options: Options,
        field: Option<Field>,
    ) -> Self {
        let widths = vec![program.ring_bits(); program.values().len()];
        let needs_ring = needs_ring(program, operations);
        let rooms = rooms(program, operations, &needs_ring, off(options));
        let mut planner = Self {
            program,
            options,
            field,
            steps: Vec::new(),
            keys: Vec::new(),
            demands: Vec::new(),
            written: widths.clone(),
            widths,
            signs: signs(program, operations),
            bounds: vec![None; program.values().len()],
            lines: vec![None; program.values().len()],
            needs_ring,
            fits_any_ring: fits_any_ring(program, operations),
            read: bits_read(program, operations, &rooms),
            counted: bits_counted(program, operations, &rooms),
            rooms,
            masks: Vec::new(),
            opened: HashMap::new(),
            linear: Vec::new(),
            layers: Vec::new(),
            writers: writers(program),
            triples: Vec::new(),
            masked: Vec::new(),
            mask_of: HashMap::new(),
            cost: cost::Cost::default(),
            turns: Turns::default(),
        };
        operations.iter().enumerate().for_each(|(index, protocol)| planner.operation(index, &**protocol));
        for state in program.state() {
            planner.round_off(state.output);
            planner.extend(state.output);
        }
        for output in program.outputs() {
            planner.round_off(output.value);
            let (len, width) = (planner.len(output.value), planner.widths[output.value]);
            planner.cost = planner.cost + cost::open_to_client(len, width);
            planner.turns.server_sends();
        }
        planner
    }

    fn len(&self, value: usize) -> usize {
        self.program.value(value).len()
    }

    /// Whether several operations read a value, each of which gives it another shape for steps that need all of it in the wide ring.
    fn is_read_as_copies(&self, value: usize) -> bool {
        let readers = self.program.operations().iter().filter(|operation| operation.inputs.contains(&value));
        let mut copies = readers.map(|reader| {
            let output = reader.output;
            reader.operator == Operator::Reshape && self.needs_ring[output] && self.read[output].is_none()
        });
        copies.clone().count() > 1 && copies.all(|is_copy| is_copy)
    }

    fn operation(&mut self, index: usize, protocol: &dyn Protocol) {
        let operation = &self.program.operations()[index];
        let (inputs, output) = (&operation.inputs, operation.output);
        match protocol.product() {
            Some(_) => self.multiply(index),
            None => self.align(inputs, protocol),
        }
        // What is extended once it is copied takes as many extensions as there are copies.
        let is_copied = match operation.operator {
            Operator::Broadcast => true,
            Operator::Reshape => self.is_read_as_copies(inputs[0]),
            _ => false,
        };
        if self.needs_ring[output] && is_copied {
            self.extend(inputs[0]);
        }
        let ring_bits = self.program.ring_bits();
        let context = Context {
            ring_bits,
            options: self.options,
            is_read_wide: self.needs_ring[output],
            bits_read: self.read[output].map_or(ring_bits, |bits| bits.clamp(1, ring_bits)),
            bounds: bounds_of(operation, protocol, &self.bounds, self.widths[inputs[0]], off(self.options)),
            room: self.rooms[output],
            // A truncation that loses carries may give one more than the largest value.
            fits_any_ring: self.fits_any_ring[output] && self.options.truncation == Truncation::Exact,
        };
        let width = self.widths[inputs[0]];
        let output_width = protocol.width(&inputs.iter().map(|&id| self.widths[id]).collect::<Vec<_>>(), &context);
        let (cost, keys) = match self.options.suite {
            Suite::Gmw { rounds } => (protocol.cost(width, rounds, &context), Vec::new()),
            Suite::Fss => with_keys(protocol.keys([width, output_width], &context)),
        };
        self.lines[output] = protocol.lines([width, output_width], &context);
        self.exchange(cost);
        let mut demand = cost.demand;
        if let Some(map) = protocol.linear() {
            let mask = self.reach(inputs[0]);
            if let (Some(field), Suite::Gmw { rounds }) = (self.field, self.options.suite) {
                let leaving = LeaveField { field, to: self.program.ring_bits() }.cost(self.len(output), rounds);
                demand = demand + leaving.demand;
                self.exchange(leaving);
            }
            self.linear.push((index, mask, map.weight().to_owned()));
            self.layers.push(map.encrypted());
        }
        self.step(Step::Operation(index), keys, demand);
        let bits = output_width.min(ring_bits);
        let whole = (self.options.truncation == Truncation::Exact).then(|| all_of(bits));
        self.bounds[output] = context.bounds.filter(|bounds| signed_bits(bounds) <= bits).or(whole);
        self.widths[output] = output_width;
        self.written[output] = output_width;
    }

    /// The ring, without guard bits, in which encryption multiplies: that of the bits which count of any result of these operations.
    pub(super) fn encrypted_bits(&self, operations: impl Iterator<Item = usize>) -> u32 {
        let ring_bits = self.program.ring_bits();
        let counted = |at: usize| self.counted[self.program.operations()[at].output].unwrap_or(ring_bits);
        operations.map(counted).max().unwrap_or(ring_bits).clamp(NARROWEST_ENCRYPTED.min(ring_bits), ring_bits)
    }

    fn step(&mut self, step: Step, keys: Vec<Batch>, demand: Demand) {
        self.steps.push(step);
        self.keys.push(keys);
        self.demands.push(demand);
    }

    /// Brings the inputs of an operation to widths that it can work on: without guard bits unless it takes them, and in the wide
    /// ring where it needs that and they lack bits that it reads, else all of one width.
    fn align(&mut self, inputs: &[usize], protocol: &dyn Protocol) {
        let guarded = inputs.iter().filter(|&&id| self.widths[id] > self.program.ring_bits()).count();
        if !protocol.takes_guard_bits(guarded) {
            inputs.iter().for_each(|&id| self.round_off(id));
        }
        // The input of a linear layer in a field goes there from the ring that it is in.
        let enters_field = self.field.is_some() && protocol.linear().is_some();
        let read = protocol.reads(None);
        // A ring that holds what a value can be has all of it.
        let holds = |id: usize| self.fits_any_ring[id] && self.bounds[id].is_some() && protocol.takes(self.widths[id]);
        let has_all = inputs.iter().all(|&id| read.is_some_and(|bits| self.widths[id] >= bits || holds(id)));
        let needs_ring = protocol.computes_in_ring() && !enters_field && !has_all;
        if needs_ring || inputs.iter().any(|&id| self.widths[id] != self.widths[inputs[0]]) {
            inputs.iter().for_each(|&id| self.extend(id));
        }
    }

    fn extend(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if from < to {
            let (extend, len) = (Extend::new(from, to, self.signs[value]).within(self.bounds[value]), self.len(value));
            let (cost, keys) = match self.options.suite {
                Suite::Gmw { rounds } => (extend.cost(len, rounds), Vec::new()),
                Suite::Fss => with_keys(extend.keys(len)),
            };
            self.step(Step::Extend { value, from }, keys, cost.demand);
            self.exchange(cost);
            self.widths[value] = to;
        }
    }

    fn round_off(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if let Suite::Gmw { rounds } = self.options.suite
            && from > to
        {
            let cost = RoundOff { from, to }.cost(self.len(value), rounds);
            self.step(Step::RoundOff { value }, Vec::new(), cost.demand);
            self.exchange(cost);
            self.widths[value] = to;
        }
    }

    /// Books a step all of whose rounds are exchanges.
    fn exchange(&mut self, cost: cost::Cost) {
        self.cost = self.cost + cost;
        self.turns.exchange(cost.rounds);
    }

    /// How a linear layer gets at its input `value`: behind a mask, or encrypted if it runs online.
    fn reach(&mut self, value: usize) -> Option<usize> {
        if !self.options.is_one_shot() {
            return Some(self.open(value));
        }
        self.turns.client_sends();
        self.turns.server_sends();
        None
    }

    /// Brings the values that a product is made of to the program's ring, and books the opening of those that are not open yet.
    fn multiply(&mut self, index: usize) {
        let (program, first) = (self.program, self.masked.len());
        let inputs = &program.operations()[index].inputs;
        let operands = [0, 1].map(|side| {
            let origin = Origin::of(program, &self.writers, inputs[side]);
            self.round_off(origin.value);
            self.extend(origin.value);
            let masked = Masked { value: origin.value, len: self.len(origin.value) };
            let mask = *self.mask_of.entry(origin.value).or_insert(self.masked.len());
            if mask == self.masked.len() {
                self.masked.push(masked);
            }
            Operand { origin, mask }
        });
        let opens: Vec<usize> = (first..self.masked.len()).collect();
        if !opens.is_empty() {
            let len = self.masked[first..].iter().map(|masked| masked.len).sum();
            self.exchange(cost::open(len, program.ring_bits()));
        }
        self.triples.push(Triple { operation: index, operands, opens, matrices: None });
    }

    /// The mask behind which the server learns `value`.
    fn open(&mut self, value: usize) -> usize {
        if let Some(&mask) = self.opened.get(&value) {
            return mask;
        }
        let (mask, len) = (self.masks.len(), self.len(value));
        self.masks.push(len);
        self.opened.insert(value, mask);
        let entering = match (self.field, self.options.suite) {
            (Some(field), Suite::Gmw { rounds }) => {
                EnterField { from: self.widths[value], field, sign: self.signs[value] }.cost(len, rounds)
            }
            _ => cost::Cost::default(),
        };
        self.step(Step::Open { value, mask }, Vec::new(), entering.demand);
        self.exchange(entering);
        let width = self.field.map_or(self.program.ring_bits(), |field| field.packing().bits());
        self.cost = self.cost + cost::open_to_server(len, width);
        self.turns.client_sends();
        mask
    }
}

/// By how much a truncation may be off, or a product of matrices: by one where carries are lost.
fn off(options: Options) -> i64 {
    i64::from(options.truncation == Truncation::OneBit)
}

/// The operation that writes each value.
fn writers(program: &Program) -> Vec<Option<usize>> {
    let mut writers = vec![None; program.values().len()];
    program.operations().iter().enumerate().for_each(|(index, operation)| writers[operation.output] = Some(index));
    writers
}

/// Keys and what their evaluation takes online.
fn with_keys(keys: Vec<Batch>) -> (cost::Cost, Vec<Batch>) {
    (keys::cost(&keys), keys)
}
