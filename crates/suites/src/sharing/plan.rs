//! The steps of a program in a suite, and what they need.

use std::ops::Add;
use std::sync::OnceLock;

use privet_channel::Link;
use privet_gmw::{Sign, cost};
use privet_linear::Layer;
use privet_ot::{Demand, Extension, Role};
use privet_program::{Operation, Program};
use privet_ring::{Field, Lines, Modulus};

use super::encrypted::{Chosen, field_of};
use super::keys::Batch;
use super::planner::Planner;
use super::prepare::AHEAD;
use super::refill::{BUFFER, STORED};
use super::triples::{self, Masked, Triple};
use super::{Encrypted, Options, elements, making, oneshot, ops};
use crate::Error;
use crate::limits;
use crate::ops::{Bounds, LinearMap, Node, Product};

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
    RoundOff {
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
    /// How its weights and the mask meet.
    pub plan: Encrypted,
}

impl LinearLayer {
    /// The layer in the clear.
    pub(super) fn map<'a>(&self, program: &'a Program) -> Box<dyn LinearMap + 'a> {
        Node::at(program, self.operation).linear().expect("a linear operation")
    }

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
    /// Seconds that a gigabyte less for correlations is worth.
    byte_price: u32,
    buffer: usize,
    /// Bytes that correlations of a chunk of material take in store.
    pub(super) chunk_bytes: u64,
    /// Bytes that may be on their way while a client prepares linear layers.
    pub(super) ahead: u64,
    steps: Vec<Step>,
    /// The keys that each step uses up, in suite `fss`.
    pub(super) keys: Vec<Vec<Batch>>,
    /// The correlations that each step uses up, in suite `gmw`.
    pub(super) demands: Vec<Demand>,
    /// Ring width of each value when it is written, in bits; operations that need the wide ring extend it first.
    written: Vec<u32>,
    /// What is known of each value's sign.
    pub(super) signs: Vec<Sign>,
    /// Bounds of each value whatever the input, where they are known.
    pub(super) bounds: Vec<Bounds>,
    /// Of each value that a function made of lines gives, these.
    lines: Vec<Option<Lines>>,
    /// Number of elements that each of the client's masks hides.
    masks: Vec<usize>,
    linear: Vec<LinearLayer>,
    /// Products of two values, in order.
    pub(super) triples: Vec<Triple>,
    /// The values that they read, by their masks of both parties.
    pub(super) masked: Vec<Masked>,
    cost: cost::Cost,
    /// The OT extensions that may make correlations.
    extensions: Vec<Extension>,
    /// The one of them that suits the link, once somebody asks.
    extension: OnceLock<Extension>,
}

impl Plan {
    /// Plans `program` with these options; a bare [`privet_gmw::Rounds`] will do.
    ///
    /// # Errors
    /// [`Error::Linear`] if a linear layer does not fit BFV's secure parameters; [`Error::Misuse`] if a layer runs only
    /// in suite `ckks`, or the options do not go together.
    pub fn new(program: Program, options: impl Into<Options>) -> Result<Self, Error> {
        let operations = ops::all(&program)?;
        let options = options.into().check()?;
        check_ring(&program, options)?;
        let field = field_of(&program, options)?;
        let planner = Planner::plan(&program, &operations, options, field);
        let encrypted = planner.linear.iter().zip(&planner.layers).filter(|(_, layer)| !options.chooses(layer));
        let bits = planner.encrypted_bits(encrypted.map(|((operation, ..), _)| *operation));
        let of_matrices = |triple: &&Triple| {
            Node::at(&program, triple.operation).product().is_some_and(|product| product.matrices().is_some())
        };
        let product_bits =
            planner.encrypted_bits(planner.triples.iter().filter(of_matrices).map(|triple| triple.operation));
        let Planner {
            steps, keys, demands, written, signs, bounds, masks, linear, layers, mut triples, masked, ..
        } = planner;
        let (mut cost, turns, lines) = (planner.cost, planner.turns, planner.lines);
        drop(operations);
        making::plan(&program, &mut triples, product_bits, options)?;
        let under_bfv = linear.iter().zip(&layers).filter(|(_, layer)| !options.chooses(layer));
        let (hidden_by, encrypted): (Vec<_>, Vec<_>) =
            under_bfv.map(|((_, mask, _), layer)| (*mask, layer.clone())).unzip();
        let mut encrypted = Encrypted::plan(&encrypted, &hidden_by, (&program, bits), options, field)?.into_iter();
        let mut way = |operation: usize, layer: &Layer| {
            let output = program.operations()[operation].output;
            match options.chooses(layer) {
                true => Encrypted::Chosen(Chosen { len: program.value(output).len(), bits: written[output] }),
                false => encrypted.next().expect("a plan for each layer under BFV"),
            }
        };
        let placed = linear.into_iter().zip(&layers);
        let linear: Vec<LinearLayer> = placed
            .map(|((operation, mask, weight), layer)| LinearLayer {
                operation,
                mask,
                weight,
                plan: way(operation, layer),
            })
            .collect();
        if options.is_one_shot() {
            cost = cost + oneshot::cost(&linear);
        }
        cost.rounds = turns.rounds();
        let plan = Self {
            options,
            field,
            link: Link::LAN,
            byte_price: 0,
            buffer: BUFFER,
            chunk_bytes: STORED,
            ahead: AHEAD,
            steps,
            keys,
            demands,
            written,
            signs,
            bounds,
            lines,
            masks,
            linear,
            triples,
            masked,
            cost,
            extensions: Extension::ALL.to_vec(),
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
        let demand = elements::demands(self).into_iter().fold(demand, Add::add);
        let transfers = [Role::Client, Role::Server].map(|sender| demand.ots(sender)).into_iter().max().unwrap_or(0);
        let terms = self.matrices().flat_map(|matrices| matrices.terms());
        let terms = terms.map(|term| term.input_ciphertexts() + term.output_ciphertexts());
        let ciphertexts = self.linear.iter().flat_map(|layer| layer.plan.ciphertexts()).chain(terms).sum();
        let layers = self.linear.iter().map(|layer| layer.plan.output_len());
        let products = self.triples.iter().map(|triple| triples::output_len(self, triple));
        let values: usize = self.masks.iter().copied().chain(layers).chain(products).sum();
        let material = 8 * values as u64 + self.correlated_bytes(Role::Client).max(self.correlated_bytes(Role::Server));
        limits::check(if dealt { 0 } else { transfers }, if dealt { 0 } else { ciphertexts }, material)
    }

    /// The same plan for material that is made over `link` instead of a local network. The steps do not change.
    #[must_use]
    pub fn over(self, link: Link) -> Self {
        Self { link, extension: OnceLock::new(), ..self }
    }

    /// The same plan for correlations by one of these OT extensions.
    #[must_use]
    pub fn extending(self, extensions: Vec<Extension>) -> Self {
        Self { extensions, extension: OnceLock::new(), ..self }
    }

    /// The same plan where sending a gigabyte less for correlations is worth so many seconds.
    #[must_use]
    pub fn pricing(self, seconds_per_gigabyte: u32) -> Self {
        Self { byte_price: seconds_per_gigabyte, extension: OnceLock::new(), ..self }
    }

    /// The same plan with a buffer of so many OTs in either direction, for inferences without material.
    #[must_use]
    pub fn buffering(self, ots: usize) -> Self {
        Self { buffer: ots, ..self }
    }

    /// The same plan for material in chunks of at most so many bytes of correlations. Both parties' plans must say the same; those of a
    /// session have the default.
    #[must_use]
    pub fn storing(self, chunk_bytes: u64) -> Self {
        Self { chunk_bytes, ..self }
    }

    /// The same plan for a client that sends ciphertexts ahead of what it opens while no more than so many bytes of both directions are on
    /// their way. Both parties' plans must say the same, as of [`Plan::storing`]: whether layers travel between batches of OTs depends on it.
    #[must_use]
    pub fn sending_ahead(self, bytes: u64) -> Self {
        Self { ahead: bytes, ..self }
    }

    /// The OT extension that makes the correlations: the one that suits their number, the plan's link and the price of
    /// bytes. With a dealer, who makes them without transfers, the default.
    pub fn extension(&self) -> Extension {
        if self.is_dealt() {
            return Extension::default();
        }
        let demand = elements::demands(self).into_iter().fold(self.cost.demand, Add::add);
        let price = f64::from(self.byte_price);
        *self.extension.get_or_init(|| Extension::cheapest(&self.extensions, &demand, &self.link, price))
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

    /// Those of them that are under BFV.
    pub(super) fn encrypted_linear(&self) -> impl Iterator<Item = &LinearLayer> {
        self.prepared_linear().iter().filter(|layer| layer.plan.is_encrypted())
    }

    /// The ring of a layer's shares of `W r`.
    pub(super) fn share_ring(&self, layer: &LinearLayer) -> Modulus {
        match self.field {
            None => Modulus::new(self.width(self.operation(layer.operation).output)),
            Some(field) => field.packing(),
        }
    }

    /// How two parties make triples of matrices, in order; none with a dealer.
    pub(super) fn matrices(&self) -> impl Iterator<Item = &privet_linear::Triples> {
        self.triples.iter().filter_map(|triple| triple.matrices.as_ref())
    }

    /// The product of the operation with this index, if it is one.
    pub(super) fn triple_of(&self, operation: usize) -> Option<&Triple> {
        let place = self.triples.binary_search_by_key(&operation, |triple| triple.operation);
        place.ok().map(|at| &self.triples[at])
    }

    /// A product in the clear.
    pub(super) fn product(&self, triple: &Triple) -> Product<'_> {
        Node::at(&self.program, triple.operation).product().expect("a product")
    }

    /// Width of the ring in which value `id` is when its operation has run, in bits.
    pub fn width(&self, id: usize) -> u32 {
        self.written[id]
    }

    /// The lines that give value `id`.
    pub(super) fn lines(&self, id: usize) -> &Lines {
        self.lines[id].as_ref().expect("a function made of lines")
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

    /// How each linear layer meets its mask, or the client's share, under the client's keys.
    pub(super) fn encrypted(&self) -> Vec<&Encrypted> {
        self.linear.iter().map(|layer| &layer.plan).filter(|plan| plan.is_encrypted() && !plan.is_kept()).collect()
    }

    /// Correlations that one inference consumes, and its online traffic; the rounds are the client's.
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
            Step::RoundOff { value } => (writer(value), "round off"),
            Step::Operation(index) => (&operations[index].name, operations[index].operator.name()),
        }
    }

    /// The operation with index `index`.
    pub fn operation(&self, index: usize) -> &Operation {
        &self.program.operations()[index]
    }
}

/// Refuses a ring that leaves no room for guard bits. Fails with [`Error::Misuse`] with the widest ring.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::thread;

    use privet_channel::{Channel, pair};
    use privet_gmw::{Rounds, Truncation};
    use privet_ot::BaseOts;
    use privet_program::Weights;
    use serde_json::json;

    use super::*;
    use crate::Silent;
    use crate::sharing::{Material, Model, infer_client, infer_server, prepare, prepare_client, prepare_server};

    fn read(fixture: &str, name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        std::fs::read(folder.join(name)).expect("a fixture")
    }

    fn plan_of(fixture: &str) -> Plan {
        let program = Program::parse(&read(fixture, "program.json")).expect("a program");
        Plan::new(program, Options::gmw(Rounds::Linear, Truncation::Exact)).expect("a plan")
    }

    /// The program whose values overflow, in the exact mode.
    fn plan() -> Plan {
        plan_of("overflow")
    }

    /// The outputs of several runs on one input at the public bound.
    fn outputs(plan: &Plan) -> BTreeSet<Vec<Vec<i64>>> {
        outputs_of("overflow", plan)
    }

    fn outputs_of(fixture: &str, plan: &Plan) -> BTreeSet<Vec<Vec<i64>>> {
        let input = &plan.program().inputs()[0];
        let bound = (input.magnitude.expect("a bound") * 4096.0) as i64;
        let inputs = [vec![-bound; plan.program().value(input.value).len()]];
        (0..6).map(|_| run(fixture, plan, &inputs).0).collect()
    }

    #[test]
    fn correlations_are_made_by_an_extension_that_was_asked_for() {
        let silent = |plan: &Plan| matches!(plan.extension(), Extension::Silent(_));
        let only = |wanted: bool| {
            let allowed = |extension: &Extension| matches!(extension, Extension::Silent(_)) == wanted;
            plan().over(Link::WAN).extending(Extension::ALL.into_iter().filter(allowed).collect())
        };
        assert_eq!([false, true].map(|wanted| silent(&only(wanted))), [false, true]);
        assert_eq!(plan().extension(), Extension::for_demand(&plan().cost.demand, &Link::LAN));
        assert_eq!(outputs(&only(false)), outputs(&only(true)));
    }

    /// What the client makes of its material, its report of the preparation, and whatever `serve` does with the server's.
    fn prepared<T>(
        fixture: &str,
        plan: &Plan,
        serve: impl FnOnce(&mut Channel, &Model, Material) + Send,
        infer: impl FnOnce(&mut Channel, Material) -> T,
    ) -> (T, crate::Report) {
        let weights = Weights::parse(&read(fixture, "weights.safetensors"), plan.program()).expect("its weights");
        let model = Model::new(weights, plan.standard_workspaces());
        let (mut near, mut far) = pair();
        let (mut client_base, mut server_base) = (BaseOts::default(), BaseOts::default());
        let (mut client_entry, mut server_entry) = (std::io::sink(), std::io::sink());
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let (base, entry) = ((plan.extension(), &mut server_base), &mut server_entry);
                let (material, _) =
                    prepare_server(&mut far, plan, base, &model, None, entry, &mut Silent).expect("material");
                serve(&mut far, &model, material);
            });
            let (material, report) =
                prepare_client(&mut near, plan, &mut client_base, None, &mut client_entry, &mut Silent)
                    .expect("material");
            let result = infer(&mut near, material);
            serving.join().expect("the server");
            (result, report)
        })
    }

    /// The client's outputs, and its report of the preparation.
    fn run(fixture: &str, plan: &Plan, inputs: &[Vec<i64>]) -> (Vec<Vec<i64>>, crate::Report) {
        let serve = |channel: &mut Channel, model: &Model, material| {
            infer_server(channel, plan, model, material, &mut Vec::new(), &mut Silent).expect("an inference");
        };
        let infer = |channel: &mut Channel, material| {
            infer_client(channel, plan, material, inputs, &mut Vec::new(), &mut Silent).expect("an inference").0
        };
        prepared(fixture, plan, serve, infer)
    }

    /// Panics unless the preparation took what the plan says.
    fn check_offline(plan: &Plan, report: &crate::Report) {
        let (forecast, total) = (plan.forecast(), report.total);
        assert_eq!((total.bytes_sent, total.rounds), (forecast.offline_bytes_client, forecast.offline_rounds));
        assert_eq!(total.bytes_received, forecast.offline_bytes_server);
    }

    #[test]
    fn linear_layers_travel_between_batches_of_correlations() {
        let silent = |extension: &Extension| matches!(extension, Extension::Silent(_));
        let extensions: Vec<_> = Extension::ALL.into_iter().filter(silent).collect();
        let beside = plan_of("wide").over(Link::WAN).extending(extensions.clone());
        // Where so little may be on its way, all layers come afterwards, and one by one.
        let after = Plan { ahead: 1 << 20, ..plan_of("wide").over(Link::WAN).extending(extensions) };
        let inputs = [(0..4 * 128 * 128).map(|at| at % 8192 - 4096).collect()];
        let outputs = [&beside, &after].map(|plan| {
            let (outputs, report) = run("wide", plan, &inputs);
            check_offline(plan, &report);
            (outputs, report.layers.iter().position(|layer| layer.name == "correlations"))
        });
        assert_eq!(outputs[0].0, outputs[1].0);
        // Behind the keys and what layers send and receive, or before.
        assert_eq!([outputs[0].1, outputs[1].1], [Some(17), Some(0)]);
    }

    fn is_beside(plan: &Plan) -> bool {
        prepare::beside_any(plan, plan.extension())
    }

    #[test]
    fn linear_layers_travel_between_batches_of_the_first_chunk_or_of_none() {
        let plan = |chunk_bytes: u64| plan_of("wide").over(Link::WAN).storing(chunk_bytes);
        // In chunks this small, none has batches enough.
        for (plan, beside) in [(plan(12 << 20), true), (plan(6 << 20), false)] {
            assert_eq!((is_beside(&plan), plan.stored_chunks().len() > 1), (beside, true));
            let ((), report) = prepared("wide", &plan, |_, _, _| (), |_, _| ());
            check_offline(&plan, &report);
        }
    }

    /// The program `wide`, whose means all meet each other in the end.
    fn wide_with_products() -> Plan {
        let mut program: serde_json::Value = serde_json::from_slice(&read("wide", "program.json")).expect("JSON");
        let operations = program["operations"].as_array_mut().expect("operations");
        let pool = operations.last_mut().expect("a pooling");
        (pool["kernel"], pool["stride"], pool["factors"]) = ([4, 8].into(), [4, 8].into(), [128].into());
        let added = [("reshape", vec![25]), ("reshape", vec![25]), ("broadcast", vec![26]), ("broadcast", vec![27])];
        for (at, (op, inputs)) in added.into_iter().chain([("mul", vec![28, 29])]).enumerate() {
            operations.push(json!({"op": op, "name": "product", "inputs": inputs, "output": 26 + at}));
        }
        let values = program["values"].as_array_mut().expect("values");
        values.truncate(25);
        let square: &[usize] = &[2048, 2048];
        for shape in [&[1, 4, 32, 16], &[2048, 1][..], &[1, 2048], square, square, square] {
            values.push(json!({"shape": shape, "scale": 24}));
        }
        program["outputs"][0]["value"] = 30.into();
        let program = Program::parse(program.to_string().as_bytes()).expect("a program");
        Plan::new(program, Options::gmw(Rounds::Linear, Truncation::Exact)).expect("a plan")
    }

    #[test]
    fn layers_between_batches_are_counted_while_single_elements_are_multiplied() {
        // What travels earlier is held at least as long.
        let (beside, after) = (wide_with_products(), wide_with_products().sending_ahead(0));
        assert_eq!([&beside, &after].map(is_beside), [true, false]);
        let memory =
            |plan: &Plan| [plan.client_memory(2).offline, plan.server_memory(&plan.standard_workspaces(), 2).offline];
        for (beside, after) in memory(&beside).into_iter().zip(memory(&after)) {
            assert!(beside >= after, "{beside} and {after} bytes");
        }
    }

    #[test]
    fn outputs_show_a_sign_that_is_wrongly_trusted() {
        assert_eq!(outputs(&plan()).len(), 1);
        // The control: every extension trusts its value to be non-negative.
        let trusting = Plan { signs: vec![Sign::NonNegative; plan().signs.len()], ..plan() };
        assert!(outputs(&trusting).len() > 1);
    }

    #[test]
    fn outputs_show_bounds_that_are_wrongly_trusted() {
        let plan = plan_of("smooth");
        let extended = plan.steps().iter().find_map(|step| match *step {
            Step::Extend { value, from } => Some((value, from)),
            _ => None,
        });
        let (value, from) = extended.expect("what follows the function is extended");
        let [low, high] = plan.bounds[value].expect("bounds of the function");
        assert!(low < 0 && high.abs_diff(low) >> (from - 1) == 0, "it is extended by its bounds");
        assert_eq!(outputs_of("smooth", &plan).len(), 1);
        // The control: bounds so low that what is added leaves the half of the ring that it counts on.
        let wrong = low - (3 << (from - 2));
        let mut bounds = plan.bounds.clone();
        bounds[value] = Some([wrong, wrong]);
        assert!(outputs_of("smooth", &Plan { bounds, ..plan }).len() > 1);
    }

    #[test]
    fn only_results_of_relus_and_what_is_chosen_from_them_are_known_to_be_non_negative() {
        let plan = plan();
        let names: Vec<&str> = (plan.program.operations().iter())
            .filter(|operation| plan.signs[operation.output] == Sign::NonNegative)
            .map(|operation| operation.operator.name())
            .collect();
        assert_eq!(names, ["relu", "relu"]);
    }
}
