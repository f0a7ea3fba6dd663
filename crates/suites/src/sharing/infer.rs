//! The online job: the steps of a plan on one input.

use privet_channel::Channel;
use privet_ot::{BaseOts, Role, Stock};
use privet_ring::Modulus;

use super::oneshot::{ClientSide, ServerSide};
use super::party::{Party, Supply};
use super::refill::Refills;
use super::state::{Side, State};
use super::{Correlated, Material, Model, Plan, SessionKeys, SessionPublicKey, Triples, keys};
use crate::report::Recorder;
use crate::suite::Filling;
use crate::{Error, Observer, Phase, Report, check_inputs};

/// A party's shares of a program's state: those that an inference begins with, and once it is done those that it leaves.
pub type Kept = Vec<Vec<u64>>;

/// One party with all it needs for an inference.
struct Half<'a> {
    role: Role,
    side: Side<'a>,
    triples: Triples,
    supply: Supply,
    /// Fills the supply while the network runs.
    refills: Option<Refills>,
}

/// The client's side: gives `inputs` (fixed-point integers, one vector for each input of the program) and learns the
/// program's outputs as signed integers. The material is consumed, and so are `state_shares`, unless all goes well.
///
/// # Errors
/// [`Error::Misuse`] if the inputs do not fit the program; otherwise if the link fails or the peer misbehaves.
pub fn infer_client(
    channel: &mut Channel,
    plan: &Plan,
    material: Material,
    inputs: &[Vec<i64>],
    state_shares: &mut Kept,
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<i64>>, Report), Error> {
    check_inputs(plan.program(), inputs)?;
    let Material { masks, shares, triples, correlated } = material;
    let side = Side::Client { masks, shares };
    let (supply, refills) = Supply::new(correlated, Role::Client, plan)?;
    let half = Half { role: Role::Client, side, triples, supply, refills };
    let recorder = Recorder::start(Phase::Online, channel);
    let (outputs, report) = half.run(channel, plan, recorder, as_shares(plan, inputs), state_shares, observer)?;
    Ok((signed(outputs), report))
}

/// The server's side: learns nothing. The material and the state are consumed as on the client's side.
///
/// # Errors
/// If the link fails or the peer misbehaves.
pub fn infer_server(
    channel: &mut Channel,
    plan: &Plan,
    model: &Model,
    material: Material,
    state_shares: &mut Kept,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    let Material { shares, triples, correlated, .. } = material;
    let side = Side::Server { shares, model };
    let (supply, refills) = Supply::new(correlated, Role::Server, plan)?;
    let half = Half { role: Role::Server, side, triples, supply, refills };
    let recorder = Recorder::start(Phase::Online, channel);
    Ok(half.run(channel, plan, recorder, zeros(plan), state_shares, observer)?.1)
}

/// Correlations for an inference with linear layers online: made earlier, or as it goes.
pub enum Stocked<'a> {
    /// Material in store, which is consumed.
    Prepared(Correlated),
    /// None: the buffer is filled in chunks.
    Unprepared(Filling, &'a mut BaseOts),
}

/// As [`infer_client`] with linear layers under BFV online; `keys` are those of the session.
///
/// # Errors
/// As [`infer_client`].
pub fn infer_client_online(
    channel: &mut Channel,
    plan: &Plan,
    keys: &mut SessionKeys,
    stocked: Stocked<'_>,
    inputs: &[Vec<i64>],
    state_shares: &mut Kept,
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<i64>>, Report), Error> {
    check_inputs(plan.program(), inputs)?;
    let mut recorder = Recorder::start(Phase::Online, channel);
    if keys.are_due(plan) {
        recorder.layer("keys", "bfv", channel, |channel| keys.send(channel, plan))?;
    }
    let (supply, refills) = stock_up(channel, plan, Role::Client, stocked, &mut recorder)?;
    let side = Side::ClientOnline(ClientSide::new(keys)?);
    let half = Half { role: Role::Client, side, triples: Triples::none(), supply, refills };
    let (outputs, report) = half.run(channel, plan, recorder, as_shares(plan, inputs), state_shares, observer)?;
    Ok((signed(outputs), report))
}

/// As [`infer_server`] with linear layers under BFV online; `key` is that of the session.
///
/// # Errors
/// As [`infer_server`].
pub fn infer_server_online(
    channel: &mut Channel,
    plan: &Plan,
    model: &Model,
    key: &mut SessionPublicKey,
    stocked: Stocked<'_>,
    state_shares: &mut Kept,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    let mut recorder = Recorder::start(Phase::Online, channel);
    let transformed = model.transformed(plan)?;
    if key.is_due(plan) {
        recorder.layer("keys", "bfv", channel, |channel| key.receive(channel, plan))?;
    }
    let (supply, refills) = stock_up(channel, plan, Role::Server, stocked, &mut recorder)?;
    let side = ServerSide::new(key, model, transformed)?;
    let side = Side::ServerOnline(side);
    let half = Half { role: Role::Server, side, triples: Triples::none(), supply, refills };
    Ok(half.run(channel, plan, recorder, zeros(plan), state_shares, observer)?.1)
}

fn stock_up(
    channel: &mut Channel,
    plan: &Plan,
    role: Role,
    stocked: Stocked<'_>,
    recorder: &mut Recorder,
) -> Result<(Supply, Option<Refills>), Error> {
    match stocked {
        Stocked::Prepared(correlated) => Supply::new(correlated, role, plan),
        Stocked::Unprepared(filling, base) => {
            let begin = |channel: &mut Channel| Refills::start(channel, role, plan, filling, base);
            let refills = recorder.layer("correlations", "ot", channel, begin)?;
            let empty = Correlated::Stock(Box::new(Stock::empty(role)), None);
            Ok((Supply::new(empty, role, plan)?.0, Some(refills)))
        }
    }
}

/// The client's shares of the inputs: the server's are zero.
fn as_shares(plan: &Plan, inputs: &[Vec<i64>]) -> Vec<Vec<u64>> {
    let ring = Modulus::new(plan.program().ring_bits());
    inputs.iter().map(|x| x.iter().map(|&x| ring.reduce(x as u64)).collect()).collect()
}

fn zeros(plan: &Plan) -> Vec<Vec<u64>> {
    plan.program().inputs().iter().map(|input| vec![0; plan.program().value(input.value).len()]).collect()
}

/// What the client learned, each vector in the ring that it was shared in.
type Outputs = Vec<(Modulus, Vec<u64>)>;

fn signed(outputs: Outputs) -> Vec<Vec<i64>> {
    let signed = |(ring, values): (Modulus, Vec<u64>)| values.into_iter().map(|value| ring.signed(value)).collect();
    outputs.into_iter().map(signed).collect()
}

impl Half<'_> {
    fn run(
        mut self,
        channel: &mut Channel,
        plan: &Plan,
        mut recorder: Recorder,
        inputs: Vec<Vec<u64>>,
        state_shares: &mut Kept,
        observer: &mut dyn Observer,
    ) -> Result<(Outputs, Report), Error> {
        let (program, role) = (plan.program(), self.role);
        let mut state = State::new(plan, self.side, self.triples, inputs, std::mem::take(state_shares));
        let total = plan.steps().len() + 1;
        let last_uses = plan.last_uses();
        for (index, step) in plan.steps().iter().enumerate() {
            let (name, operator) = plan.describe(step);
            observer.progress(Phase::Online, index, total, name);
            if let Some(refills) = self.refills.as_mut().filter(|refills| refills.is_due(index)) {
                let supply = &mut self.supply;
                recorder.layer(name, refills.name(), channel, |channel| {
                    supply.refill(|used| refills.next(channel, used))
                })?;
            }
            recorder.layer(name, operator, channel, |channel| {
                let mut party = Party { role, channel, supply: &mut self.supply };
                state.step(step, &last_uses[index], &mut party)
            })?;
            recorder.used_keys(keys::body_bytes(&plan.keys[index], role));
            last_uses[index].iter().for_each(|&value| state.forget(value));
        }
        let mut outputs = Vec::new();
        observer.progress(Phase::Online, total - 1, total, "output");
        for output in program.outputs() {
            recorder.layer(&output.name, "reveal", channel, |channel| {
                let (share, ring) = state.share(output.value);
                let opened = privet_gmw::open_to_client(channel, role, share, ring)?;
                outputs.extend(opened.map(|values| (ring, values)));
                Ok::<_, Error>(())
            })?;
        }
        channel.flush()?;
        *state_shares = state.next_state();
        observer.progress(Phase::Online, total, total, "");
        Ok((outputs, recorder.finish(channel)))
    }
}
