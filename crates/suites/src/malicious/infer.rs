//! The online job on authenticated values: both parties take the plan's steps, and the client looks at the output when two
//! checks have passed.

use std::borrow::Cow;

use privet_channel::Channel;
use privet_fss::KeyFile;
use privet_ring::Modulus;
use privet_shark::{Key, Masked, Party, Turns, Values, Weights};

use super::prepare::VALUE_BYTES;
use super::{Material, Plan};
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
    let total = plan.steps.len() + 1;
    let last_uses = plan.last_uses();
    for (index, placed) in plan.steps.iter().enumerate() {
        let ((name, operator), step) = (plan.describe(placed), &placed.step);
        observer.progress(Phase::Online, index, total, name);
        let before = party.cost();
        let started = std::time::Instant::now();
        step.run(&mut state, &mut party)?;
        recorder.book(name, operator, started, party.cost() - before);
        let keys = step.prepared().map_or_else(|| step.key_bytes().of(role), |count| VALUE_BYTES * count);
        recorder.used_keys(keys as u64);
        last_uses[index].iter().for_each(|&value| state.forget(value));
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
pub(super) struct Held {
    values: Option<Values>,
    pub masked: Option<Masked>,
}

/// What a party holds while a run goes on.
pub(super) struct State<'a> {
    pub plan: &'a Plan,
    /// Private tensors in the order of the plan.
    pub weights: std::slice::Iter<'a, Weights>,
    /// At the client.
    pub inputs: Option<std::slice::Iter<'a, Vec<i64>>>,
    /// What was made offline, in the order of the steps.
    prepared: KeyFile,
    pub held: Vec<Held>,
    /// Current ring of each value.
    pub rings: Vec<Modulus>,
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

    /// Values that were made offline.
    pub(super) fn pull(&mut self, count: usize) -> Result<Values, Error> {
        Ok(Values::pull(&mut self.prepared, count)?)
    }

    /// Takes a step's result.
    pub(super) fn write(&mut self, value: usize, values: Values) {
        self.held[value] = Held { values: Some(values), masked: None };
    }

    /// A value behind a mask.
    pub(super) fn masked(&self, value: usize) -> &Masked {
        self.held[value].masked.as_ref().expect("the plan masks what is read behind a mask")
    }

    /// A value, authenticated.
    pub(super) fn values(&self, value: usize, key: &Key) -> Cow<'_, Values> {
        match &self.held[value] {
            Held { values: Some(values), .. } => Cow::Borrowed(values),
            Held { masked: Some(masked), .. } => Cow::Owned(masked.values(key)),
            Held { .. } => unreachable!("the plan reads what was written"),
        }
    }

    fn outputs(&self, key: &Key) -> Values {
        let mut all = Values::default();
        for output in self.plan.program().outputs() {
            all.extend(&self.values(output.value, key));
        }
        all
    }
}
