//! From a program to the steps of a suite.
//!
//! A truncation drops the low bits of each share, which also shrinks the ring that the value is shared in. Comparisons
//! then run on the small ring, and a value is extended back to Z_2^l only where a step needs the wide ring. So the
//! planner follows each value's width and puts an [`Step::Extend`] where one is needed: that is all there is to
//! "truncate, then compare, then extend".

use std::collections::HashMap;
use std::sync::OnceLock;

use privet_channel::Link;
use privet_gmw::{Rounds, Sign, Truncation, cost};
use privet_linear::Layer;
use privet_ot::{Demand, Extension, Role};
use privet_program::{Operation, Operator, Program};
use privet_ring::{Field, Modulus};

use super::encrypted::field_of;
use super::keys::{self, Batch};
use super::refill::BUFFER;
use super::{Encrypted, Options, Suite, oneshot};
use crate::Error;
use crate::layers::{check_supported, computes_in_ring, linear_layer, needs_ring, pooling_sizes, signs};
use crate::limits;
use crate::turns::Turns;

/// One step of the online phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Brings the value to the program's ring.
    Extend {
        /// Value id.
        value: usize,
        /// Width of the ring it is in, in bits.
        from: u32,
    },
    /// Lets the server learn the value behind the client's mask; linear layers that read the value share the opening.
    Open {
        /// Value id.
        value: usize,
        /// Which of the client's masks hides it.
        mask: usize,
    },
    /// Rounds off the guard bits of a linear layer's result where no truncation does.
    Settle {
        /// Value id.
        value: usize,
    },
    /// Runs the operation with this index.
    Operation(usize),
}

/// The offline half of a linear operation.
#[derive(Debug)]
pub struct LinearLayer {
    /// Index of the operation.
    pub operation: usize,
    /// Which of the client's masks hides the layer's input; none if the layer runs online.
    pub mask: Option<usize>,
    /// Name of the weights.
    pub weight: String,
    /// How its weights and the mask meet under BFV.
    pub plan: Encrypted,
}

impl LinearLayer {
    /// The layer's mask among all of the client's.
    pub(super) fn mask_in<'a>(&self, masks: &'a [Vec<u64>]) -> &'a [u64] {
        &masks[self.mask.expect("the layer is prepared behind a mask")]
    }
}

/// The steps of a program and what they need.
pub struct Plan {
    program: Program,
    options: Options,
    /// The field of linear layers, if they are not in the ring.
    field: Option<Field>,
    link: Link,
    buffer: usize,
    steps: Vec<Step>,
    /// The keys that each step uses up, in suite `fss`.
    keys: Vec<Vec<Batch>>,
    /// The correlations that each step uses up, in suite `gmw`.
    demands: Vec<Demand>,
    /// Ring width of each value when it is written, in bits; operations that need the wide ring extend it first.
    written: Vec<u32>,
    /// What is known of each value's sign.
    signs: Vec<Sign>,
    /// Number of elements that each of the client's masks hides.
    masks: Vec<usize>,
    linear: Vec<LinearLayer>,
    cost: cost::Cost,
    /// The OT extension that suits the link, once somebody asks.
    extension: OnceLock<Extension>,
}

impl Plan {
    /// Plans `program` with these options; a bare [`privet_gmw::Rounds`] will do.
    ///
    /// # Errors
    /// [`Error::Linear`] if a linear layer does not fit BFV's secure parameters; [`Error::Misuse`] if a layer runs only
    /// in suite `ckks`, or the options do not go together.
    pub fn new(program: Program, options: impl Into<Options>) -> Result<Self, Error> {
        check_supported(&program)?;
        let options = options.into().check()?;
        check_ring(&program, options)?;
        let field = field_of(&program, options)?;
        let mut planner = Planner::new(&program, options, field);
        for index in 0..program.operations().len() {
            planner.operation(index);
        }
        for output in program.outputs() {
            planner.settle(output.value);
            let (len, width) = (program.value(output.value).len(), planner.widths[output.value]);
            planner.cost = planner.cost + cost::open_to_client(len, width);
            planner.turns.server_sends();
        }
        let Planner { steps, keys, demands, written, signs, masks, linear, layers, mut cost, turns, .. } = planner;
        let plans = Encrypted::plan(&layers, &program, options, field)?;
        let place = |((operation, mask, weight), plan)| LinearLayer { operation, mask, weight, plan };
        let linear: Vec<LinearLayer> = linear.into_iter().zip(plans).map(place).collect();
        cost.rounds = turns.rounds();
        if options.is_one_shot() {
            // A server answers a layer in parts as its memory allows, so its turns are its own affair.
            cost = cost + oneshot::cost(&linear);
            cost.rounds = turns.client_rounds();
        }
        let plan = Self {
            options,
            field,
            link: Link::LAN,
            buffer: BUFFER,
            steps,
            keys,
            demands,
            written,
            signs,
            masks,
            linear,
            cost,
            extension: OnceLock::new(),
            program,
        };
        plan.check_totals()?;
        Ok(plan)
    }

    /// # Errors
    /// [`Error::Misuse`] if one inference takes more than anything can ([`crate::limits`]).
    fn check_totals(&self) -> Result<(), Error> {
        let (demand, dealt) = (self.cost.demand, self.is_dealt());
        let transfers = [Role::Client, Role::Server].map(|sender| demand.ots(sender)).into_iter().max().unwrap_or(0);
        let ciphertexts = self.linear.iter().flat_map(|layer| layer.plan.ciphertexts()).sum();
        let values: usize =
            self.masks.iter().chain(&self.linear.iter().map(|layer| layer.plan.output_len()).collect::<Vec<_>>()).sum();
        let material = 8 * values as u64 + self.correlated_bytes(Role::Client).max(self.correlated_bytes(Role::Server));
        limits::check(if dealt { 0 } else { transfers }, if dealt { 0 } else { ciphertexts }, material)
    }

    /// The same plan for material that is made over `link` instead of a local network. The steps do not change.
    #[must_use]
    pub fn over(self, link: Link) -> Self {
        Self { link, extension: OnceLock::new(), ..self }
    }

    /// The link that material is made over.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The same plan with a buffer of so many OTs in either direction, for inferences without material.
    #[must_use]
    pub fn buffering(self, ots: usize) -> Self {
        Self { buffer: ots, ..self }
    }

    /// The OT extension that makes the correlations: the one that suits their number and the plan's link. With a dealer, who
    /// makes them without transfers, the default.
    pub fn extension(&self) -> Extension {
        if self.is_dealt() {
            return Extension::default();
        }
        *self.extension.get_or_init(|| Extension::for_demand(&self.cost.demand, &self.link))
    }

    /// OTs in either direction that the buffer of an inference without material takes at once.
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What both parties chose.
    pub fn options(&self) -> Options {
        self.options
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The keys that each step uses up.
    pub(super) fn keys(&self) -> &[Vec<Batch>] {
        &self.keys
    }

    /// The correlations that each step uses up.
    pub(super) fn demands(&self) -> &[Demand] {
        &self.demands
    }

    /// Sizes of the client's masks.
    pub fn masks(&self) -> &[usize] {
        &self.masks
    }

    /// Linear layers in order.
    pub fn linear(&self) -> &[LinearLayer] {
        &self.linear
    }

    /// Linear layers that are paid offline, in order: all, or none in the one-shot mode.
    pub fn prepared_linear(&self) -> &[LinearLayer] {
        if self.options.is_one_shot() { &[] } else { &self.linear }
    }

    /// Width of the ring in which value `id` is when its operation has run, in bits.
    pub fn width(&self, id: usize) -> u32 {
        self.written[id]
    }

    /// What is known of the sign of value `id`.
    pub(super) fn sign(&self, id: usize) -> Sign {
        self.signs[id]
    }

    /// The ring of the linear layers' results: the program's, and guard bits below the last place if resharing is exact. In a
    /// field, the ring that residues are packed in.
    pub fn product_ring(&self) -> Modulus {
        let ring = Modulus::new(self.program.ring_bits() + self.options.guard_bits());
        self.field.map_or(ring, Field::packing)
    }

    /// The ring in which the inputs of linear layers are opened and the client's masks are packed.
    pub fn mask_ring(&self) -> Modulus {
        self.field.map_or(Modulus::new(self.program.ring_bits()), Field::packing)
    }

    /// The field of linear layers, if they are not in the ring.
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// How each linear layer meets its mask.
    pub(super) fn encrypted(&self) -> Vec<&Encrypted> {
        self.linear.iter().map(|layer| &layer.plan).collect()
    }

    /// Correlations that one inference consumes, and its online traffic; the rounds are those of the party that counts
    /// more.
    pub fn online_cost(&self) -> cost::Cost {
        self.cost
    }

    /// What a step is for, in tables: the ONNX node and the operator.
    pub(super) fn describe(&self, step: &Step) -> (&str, &'static str) {
        let operations = self.program.operations();
        let writer = |value: usize| {
            operations.iter().find(|operation| operation.output == value).map_or("input", |operation| &operation.name)
        };
        match *step {
            Step::Extend { value, .. } => (writer(value), "extend"),
            Step::Open { value, .. } => (writer(value), "open"),
            Step::Settle { value } => (writer(value), "settle"),
            Step::Operation(index) => (&operations[index].name, operations[index].operator.name()),
        }
    }

    /// The operation with index `index`.
    pub fn operation(&self, index: usize) -> &Operation {
        &self.program.operations()[index]
    }
}

struct Planner<'a> {
    program: &'a Program,
    options: Options,
    field: Option<Field>,
    steps: Vec<Step>,
    keys: Vec<Vec<Batch>>,
    demands: Vec<Demand>,
    /// Current width of each value.
    widths: Vec<u32>,
    written: Vec<u32>,
    signs: Vec<Sign>,
    needs_ring: Vec<bool>,
    masks: Vec<usize>,
    opened: HashMap<usize, usize>,
    /// Operation, mask and weights of each linear layer.
    linear: Vec<(usize, Option<usize>, String)>,
    layers: Vec<Layer>,
    cost: cost::Cost,
    turns: Turns,
}

impl<'a> Planner<'a> {
    fn new(program: &'a Program, options: Options, field: Option<Field>) -> Self {
        let widths = vec![program.ring_bits(); program.values().len()];
        Self {
            program,
            options,
            field,
            steps: Vec::new(),
            keys: Vec::new(),
            demands: Vec::new(),
            written: widths.clone(),
            widths,
            signs: signs(program),
            needs_ring: needs_ring(program),
            masks: Vec::new(),
            opened: HashMap::new(),
            linear: Vec::new(),
            layers: Vec::new(),
            cost: cost::Cost::default(),
            turns: Turns::new(),
        }
    }

    fn operation(&mut self, index: usize) {
        let operation = &self.program.operations()[index];
        self.align(operation);
        let input = operation.inputs[0];
        let width = self.widths[input];
        let output_width = match &operation.operator {
            Operator::Truncate { bits } => width.min(self.program.ring_bits()) - bits,
            Operator::Add | Operator::Sub | Operator::Concat { .. } => {
                operation.inputs.iter().map(|&id| self.widths[id]).max().unwrap_or(width)
            }
            Operator::Conv2d { .. } | Operator::Dense { .. } | Operator::Scale { .. } => {
                self.program.ring_bits() + self.options.guard_bits()
            }
            Operator::Argmax { .. } => self.program.ring_bits(),
            // The key of a ReLU brings its value to the wide ring for a few bits more.
            Operator::Relu if self.options.suite == Suite::Fss && self.needs_ring[operation.output] => {
                self.program.ring_bits()
            }
            _ => width,
        };
        let exact = self.options.truncation == Truncation::Exact;
        let keys = match self.options.suite {
            Suite::Fss => keys::of_operation(self.program, operation, [width, output_width], exact),
            Suite::Gmw { .. } => Vec::new(),
        };
        let cost = match self.options.suite {
            Suite::Fss => keys::cost(&keys),
            Suite::Gmw { rounds } => boolean_cost(self.program, operation, width, rounds, exact),
        };
        self.exchange(cost);
        let mut demand = cost.demand;
        if let Some((weight, layer)) = linear_layer(self.program, operation) {
            let mask = self.reach(input);
            if let (Some(field), Suite::Gmw { rounds }) = (self.field, self.options.suite) {
                let len = self.program.value(operation.output).len();
                let leaving = cost::from_field(len, field, self.program.ring_bits(), rounds);
                demand = demand + leaving.demand;
                self.exchange(leaving);
            }
            self.linear.push((index, mask, weight.to_owned()));
            self.layers.push(layer);
        }
        self.step(Step::Operation(index), keys, demand);
        self.widths[operation.output] = output_width;
        self.written[operation.output] = output_width;
    }

    fn step(&mut self, step: Step, keys: Vec<Batch>, demand: Demand) {
        self.steps.push(step);
        self.keys.push(keys);
        self.demands.push(demand);
    }

    /// Brings the inputs of `operation` to widths that it can work on: the wide ring where it needs that, else all of one
    /// width. A truncation takes guard bits, what moves elements leaves them as they are, and a sum takes one input with them:
    /// two would be off by more than they can round.
    fn align(&mut self, operation: &Operation) {
        let guarded = |&&id: &&usize| self.widths[id] > self.program.ring_bits();
        let keeps = match operation.operator {
            Operator::Truncate { .. }
            | Operator::Reshape
            | Operator::Broadcast
            | Operator::Transpose { .. }
            | Operator::Slice { .. }
            | Operator::Concat { .. } => true,
            Operator::Add | Operator::Sub => operation.inputs.iter().filter(guarded).count() == 1,
            _ => false,
        };
        if !keeps {
            operation.inputs.iter().for_each(|&id| self.settle(id));
        }
        let widths: Vec<u32> = operation.inputs.iter().map(|&id| self.widths[id]).collect();
        // The input of a linear layer in a field goes there from the ring that it is in.
        let enters_field = self.field.is_some() && linear_layer(self.program, operation).is_some();
        let needs_ring = computes_in_ring(&operation.operator) && !enters_field;
        if needs_ring || widths.iter().any(|&width| width != widths[0]) {
            for &id in &operation.inputs {
                self.extend(id);
            }
        }
    }

    fn extend(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if from < to {
            let (len, sign) = (self.program.value(value).len(), self.signs[value]);
            let (cost, keys) = match self.options.suite {
                Suite::Gmw { rounds } => (cost::extend(len, from, to, sign, rounds), Vec::new()),
                Suite::Fss => {
                    let keys = vec![keys::extend(len, from, to, sign)];
                    (keys::cost(&keys), keys)
                }
            };
            self.step(Step::Extend { value, from }, keys, cost.demand);
            self.exchange(cost);
            self.widths[value] = to;
        }
    }

    fn settle(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if let Suite::Gmw { rounds } = self.options.suite
            && from > to
        {
            let len = self.program.value(value).len();
            let cost = cost::truncate_guarded(len, from - to, from, rounds);
            self.step(Step::Settle { value }, Vec::new(), cost.demand);
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

    /// The mask behind which the server learns `value`.
    fn open(&mut self, value: usize) -> usize {
        if let Some(&mask) = self.opened.get(&value) {
            return mask;
        }
        let (mask, len) = (self.masks.len(), self.program.value(value).len());
        self.masks.push(len);
        self.opened.insert(value, mask);
        let entering = match (self.field, self.options.suite) {
            (Some(field), Suite::Gmw { rounds }) => {
                cost::to_field(len, self.widths[value], field, self.signs[value], rounds)
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

/// Refuses a ring that leaves no room for guard bits.
///
/// # Errors
/// [`Error::Misuse`] with the widest ring.
fn check_ring(program: &Program, options: Options) -> Result<(), Error> {
    let widest = LINEAR_RING_BITS - options.guard_bits();
    if options.guard_bits() > 0 && program.ring_bits() > widest {
        let bits = program.ring_bits();
        return Err(Error::Misuse(format!(
            "exact mode takes rings of up to {widest} bits, not {bits}: compile for fewer"
        )));
    }
    Ok(())
}

/// The widest ring that linear layers under BFV work in.
const LINEAR_RING_BITS: u32 = 50;

/// What an operation on a value of `width` bits takes with Boolean sharing.
fn boolean_cost(program: &Program, operation: &Operation, width: u32, rounds: Rounds, exact: bool) -> cost::Cost {
    let len = program.value(operation.inputs[0]).len();
    let out = program.value(operation.output).len();
    match &operation.operator {
        Operator::Truncate { bits } => {
            let guard = width.saturating_sub(program.ring_bits());
            match (exact, guard, bits) {
                (false, ..) | (true, 0, 0) => cost::Cost::default(),
                (true, 0, _) => cost::truncate_exactly(len, *bits, width, rounds),
                (true, ..) => cost::truncate_guarded(len, bits + guard, width, rounds),
            }
        }
        Operator::Relu => cost::relu(len, width, rounds),
        Operator::MaxPool2d { window } => {
            let stages = pooling_sizes(program, operation, window);
            stages.into_iter().map(|sizes| cost::max_pool(sizes, width, rounds)).sum()
        }
        Operator::Argmax { .. } => cost::argmax(out, len / out, width, program.ring_bits(), rounds),
        _ => cost::Cost::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::thread;

    use privet_channel::pair;
    use privet_program::Weights;

    use super::*;
    use crate::Silent;
    use crate::sharing::{Model, infer_client, infer_server, prepare_client, prepare_server};

    fn read(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/overflow");
        std::fs::read(folder.join(name)).expect("a fixture")
    }

    /// The program whose values overflow, in the exact mode.
    fn plan() -> Plan {
        let program = Program::parse(&read("program.json")).expect("a program");
        Plan::new(program, Options::gmw(Rounds::Linear, Truncation::Exact)).expect("a plan")
    }

    /// The outputs of several runs on one input at the public bound.
    fn outputs(plan: &Plan) -> BTreeSet<Vec<Vec<i64>>> {
        let weights = Weights::parse(&read("weights.safetensors"), plan.program()).expect("its weights");
        let model = Model::new(weights, plan.standard_workspaces());
        let input = &plan.program().inputs()[0];
        let bound = (input.magnitude.expect("a bound") * 4096.0) as i64;
        let inputs = [vec![-bound; plan.program().value(input.value).len()]];
        let run = |_| {
            let (mut near, mut far) = pair();
            thread::scope(|scope| {
                let serving = scope.spawn(|| {
                    let extension = plan.extension();
                    let (material, _) =
                        prepare_server(&mut far, plan, extension, &model, &mut Silent).expect("material");
                    infer_server(&mut far, plan, &model, material, &mut Silent).expect("an inference");
                });
                let (material, _) = prepare_client(&mut near, plan, &mut Silent).expect("material");
                let outputs = infer_client(&mut near, plan, material, &inputs, &mut Silent).expect("an inference").0;
                serving.join().expect("the server");
                outputs
            })
        };
        (0..6).map(run).collect()
    }

    #[test]
    fn outputs_show_a_sign_that_is_wrongly_trusted() {
        assert_eq!(outputs(&plan()).len(), 1);
        // The control: every extension trusts its value to be non-negative.
        let trusting = Plan { signs: vec![Sign::NonNegative; plan().signs.len()], ..plan() };
        assert!(outputs(&trusting).len() > 1);
    }

    #[test]
    fn only_results_of_relus_and_what_is_chosen_from_them_are_known_to_be_non_negative() {
        let plan = plan();
        let known: Vec<&str> = (plan.program.operations().iter())
            .filter(|operation| plan.sign(operation.output) == Sign::NonNegative)
            .map(|operation| operation.operator.name())
            .collect();
        assert_eq!(known, ["relu", "relu"]);
    }
}
