//! The online job on authenticated values: both parties take the plan's steps, and the client looks at the output when two
//! checks have passed.

use std::borrow::Cow;

use privet_channel::Channel;
use privet_fss::KeyFile;
use privet_program::{Operation, Operator};
use privet_ring::Modulus;
use privet_shark::{Masked, Party, Turns, Values, Weights};

use super::plan::Step;
use super::prepare::VALUE_BYTES;
use super::{Material, Plan, layers, local};
use crate::layers::pooling_stages;
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report, check_inputs};

/// The client's side: gives `inputs` (fixed-point integers, one vector for each input of the program) and learns the
/// program's outputs as signed integers. The material is consumed. `weights`: those of the setup, and the turns in which its runs check.
///
/// # Errors
/// [`Error::Misuse`] if the inputs do not fit the program; if the link fails or the peer deviates in any message, and then
/// nothing of the output is known.
pub fn infer_client(
    channel: &mut Channel,
    plan: &Plan,
    weights: (&[Weights], &dyn Turns),
    material: Material,
    inputs: &[Vec<i64>],
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<i64>>, Report), Error> {
    check_inputs(plan.program(), inputs)?;
    let (revealed, report) = run(channel, plan, weights, material, Some(inputs), observer)?;
    let ring = plan.output_ring();
    let mut rest = revealed.unwrap_or_default().into_iter().map(|value| ring.signed(value));
    let outputs = plan.program().outputs().iter();
    let outputs =
        outputs.map(|output| rest.by_ref().take(plan.program().value(output.value).len()).collect()).collect();
    Ok((outputs, report))
}

/// The server's side: learns nothing. The material is consumed.
///
/// # Errors
/// If the link fails or the peer deviates in any message.
pub fn infer_server(
    channel: &mut Channel,
    plan: &Plan,
    weights: (&[Weights], &dyn Turns),
    material: Material,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    Ok(run(channel, plan, weights, material, None, observer)?.1)
}

/// `inputs`: at the client. Returns what the client learned.
fn run(
    channel: &mut Channel,
    plan: &Plan,
    (weights, turns): (&[Weights], &dyn Turns),
    material: Material,
    inputs: Option<&[Vec<i64>]>,
    observer: &mut dyn Observer,
) -> Result<(Option<Vec<u64>>, Report), Error> {
    let mut recorder = Recorder::start(Phase::Online, channel);
    let Material { key, seed, prepared, mut body, session } = material;
    let role = key.role();
    let mut state = State::new(plan, weights, inputs, prepared);
    let mut party = Party::new(&key, channel, &seed, &mut body, session.as_str().as_bytes()).in_turn(turns);
    party.state(plan.program().hash().to_string().as_bytes());
    weights.iter().for_each(|weights| party.state(weights.digest()));
    let total = plan.steps().len() + 1;
    let last_uses = plan.last_uses();
    for (done, step) in plan.steps().iter().enumerate() {
        let (name, operator) = plan.describe(step);
        observer.progress(Phase::Online, done, total, name);
        let before = party.cost();
        let started = std::time::Instant::now();
        state.step(step, &mut party)?;
        recorder.book(name, operator, started, party.cost() - before);
        let keys = if step.is_early() { VALUE_BYTES * plan.prepared_by(step) } else { plan.key_bytes(step).of(role) };
        recorder.used_keys(keys as u64);
        last_uses[done].iter().for_each(|&value| state.forget(value));
    }
    observer.progress(Phase::Online, total - 1, total, "output");
    let (before, started) = (party.cost(), std::time::Instant::now());
    let outputs = state.outputs(party.key());
    let revealed = party.reveal(&outputs, plan.output_ring())?;
    recorder.book("output", "reveal", started, channel.cost() - before);
    channel.flush()?;
    observer.progress(Phase::Online, total, total, "");
    Ok((revealed, recorder.finish(channel)))
}

/// A value as a party holds it: authenticated, behind a mask, or both.
#[derive(Default)]
struct Held {
    values: Option<Values>,
    masked: Option<Masked>,
}

struct State<'a> {
    plan: &'a Plan,
    /// Private tensors in the order of the plan.
    weights: std::slice::Iter<'a, Weights>,
    /// At the client.
    inputs: Option<std::slice::Iter<'a, Vec<i64>>>,
    /// What was made offline, in the order of the steps.
    prepared: KeyFile,
    held: Vec<Held>,
    /// Current ring of each value.
    rings: Vec<Modulus>,
}

impl<'a> State<'a> {
    fn new(plan: &'a Plan, weights: &'a [Weights], inputs: Option<&'a [Vec<i64>]>, prepared: KeyFile) -> Self {
        let count = plan.program().values().len();
        let held = (0..count).map(|_| Held::default()).collect();
        let rings = (0..count).map(|value| plan.ring_of(value)).collect();
        Self { plan, weights: weights.iter(), inputs: inputs.map(<[_]>::iter), prepared, held, rings }
    }

    fn forget(&mut self, value: usize) {
        self.held[value] = Held::default();
    }

    fn step(&mut self, step: &Step, party: &mut Party<'_>) -> Result<(), Error> {
        let operation = |index: usize| &self.plan.program().operations()[index];
        match step {
            Step::Input { value } => {
                let (ring, count) = (self.rings[*value], self.plan.program().value(*value).len());
                let mask = Values::pull(&mut self.prepared, count)?;
                let masked = match &mut self.inputs {
                    Some(inputs) => {
                        let input = inputs.next().expect("an input for each of the program's");
                        let input: Vec<u64> = input.iter().map(|&x| ring.reduce(x as u64)).collect();
                        party.input_with(&input, ring, mask)?
                    }
                    None => party.input_of_client_with(ring, mask)?,
                };
                self.held[*value].masked = Some(masked);
            }
            Step::Mask { value } => {
                let mask = Values::pull(&mut self.prepared, self.plan.program().value(*value).len())?;
                let values = self.values(*value, party);
                self.held[*value].masked = Some(party.mask_with(&values, self.rings[*value], mask)?);
            }
            Step::Extend { value, extend } => {
                let values = extend.evaluate(party, self.masked(*value))?;
                self.rings[*value] = self.plan.ring();
                self.held[*value] = Held { values: Some(values), masked: None };
            }
            Step::Linear { operation: index, layer } => {
                let operation = operation(*index);
                let weights = self.weights.next().expect("weights for each layer");
                let prepared = Values::pull(&mut self.prepared, layer.outputs())?;
                let mut values = layer.finish(prepared, weights, self.masked(operation.inputs[0]).opened());
                if layers::has_bias(operation) {
                    let bias = self.weights.next().expect("a bias");
                    values.add_runs(&bias.values(), layers::bias_run(self.plan.program(), operation));
                }
                self.write(operation, values);
            }
            Step::Relu { operation: index, input, relu } => {
                let values = relu.evaluate(party, self.masked(*input))?;
                self.write(operation(*index), values);
            }
            Step::Truncate { operation: index, truncate } => {
                let operation = operation(*index);
                let values = truncate.evaluate(party, self.masked(operation.inputs[0]))?;
                self.write(operation, values);
            }
            Step::Shorten { operation: index, extend } => {
                let operation = operation(*index);
                let values = extend.evaluate(party, self.masked(operation.inputs[0]))?;
                self.write(operation, values);
            }
            Step::MaxPool { operation: index, stages } => {
                let operation = operation(*index);
                let mut values = self.values(operation.inputs[0], party);
                let Operator::MaxPool2d { window } = &operation.operator else { unreachable!("only for poolings") };
                for (stage, groups) in stages.iter().zip(pooling_stages(self.plan.program(), operation, window)) {
                    values = Cow::Owned(stage.evaluate(party, &groups, &values)?.0);
                }
                let values = values.into_owned();
                self.write(operation, values);
            }
            Step::Argmax { operation: index, tournament } => {
                let operation = operation(*index);
                let values = self.values(operation.inputs[0], party);
                let Operator::Argmax { axis, select_last, .. } = operation.operator else {
                    unreachable!("only for places of maxima")
                };
                let shape = &self.plan.program().value(operation.inputs[0]).shape;
                let groups = layers::along(shape, axis, select_last).into();
                let positions = tournament.evaluate(party, &groups, &values)?.1.expect("a tournament with positions");
                let values = forwards(self.plan, operation, positions, party);
                self.write(operation, values);
            }
            Step::Local { operation: index } => {
                let operation = operation(*index);
                let constant = layers::constant(operation).map(|_| self.weights.next().expect("a constant").values());
                let inputs: Vec<_> = operation.inputs.iter().map(|&id| self.values(id, party)).collect();
                let inputs: Vec<&Values> = inputs.iter().map(|values| &**values).collect();
                let values = local::evaluate(party.key(), self.plan.program(), operation, &inputs, constant.as_ref());
                self.write(operation, values);
            }
        }
        Ok(())
    }

    fn write(&mut self, operation: &Operation, values: Values) {
        self.held[operation.output] = Held { values: Some(values), masked: None };
    }

    fn masked(&self, value: usize) -> &Masked {
        self.held[value].masked.as_ref().expect("the plan masks what is read behind a mask")
    }

    fn values(&self, value: usize, party: &Party<'_>) -> Cow<'_, Values> {
        self.values_with(value, party.key())
    }

    fn values_with(&self, value: usize, key: &privet_shark::Key) -> Cow<'_, Values> {
        match &self.held[value] {
            Held { values: Some(values), .. } => Cow::Borrowed(values),
            Held { masked: Some(masked), .. } => Cow::Owned(masked.values(key)),
            Held { .. } => unreachable!("the plan reads what was written"),
        }
    }

    fn outputs(&self, key: &privet_shark::Key) -> Values {
        let mut all = Values::default();
        for output in self.plan.program().outputs() {
            all.extend(&self.values_with(output.value, key));
        }
        all
    }
}

/// Positions in groups that ran backwards are counted from the end.
fn forwards(plan: &Plan, operation: &Operation, positions: Values, party: &Party<'_>) -> Values {
    match operation.operator {
        Operator::Argmax { axis, select_last: true, .. } => {
            let last = plan.program().value(operation.inputs[0]).shape[axis] as u64 - 1;
            positions.negate().plus(party.key(), &vec![last; positions.len()])
        }
        _ => positions,
    }
}
