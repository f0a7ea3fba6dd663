//! The online job: the steps of a plan on one input.

use std::borrow::Cow;

use privet_channel::Channel;
use privet_ot::{Role, Stock};
use privet_program::{Operation, Operator, Weights};
use privet_ring::tournament::Ties;
use privet_ring::{Field, Modulus};

use super::nonlinear::{Party, Supply, fss_role};
use super::oneshot::{ClientSide, ServerSide};
use super::refill::Refills;
use super::{
    ClientMaterial, Correlated, Model, Plan, ServerMaterial, SessionKeys, SessionPublicKey, Step, evaluate, keys,
};
use crate::layers::{along, pooling_stages};
use crate::report::Recorder;
use crate::suite::Filling;
use crate::{Error, Observer, Phase, Report, check_inputs};

/// Where a party's shares of linear layers come from: its material, or BFV online.
enum Side<'a> {
    Client { masks: Vec<Vec<u64>>, shares: Vec<Vec<u64>> },
    Server { shares: Vec<Vec<u64>>, model: &'a Model },
    ClientOnline(ClientSide<'a>),
    ServerOnline(ServerSide<'a>),
}

impl Side<'_> {
    /// The weights, at the server.
    fn weights(&self) -> Option<&Weights> {
        match self {
            Self::Server { model, .. } => Some(model.weights()),
            Self::ServerOnline(server) => Some(server.weights()),
            Self::Client { .. } | Self::ClientOnline(_) => None,
        }
    }
}

/// One party with all it needs for an inference.
struct Half<'a> {
    role: Role,
    side: Side<'a>,
    supply: Supply,
    /// Fills the supply while the network runs, if nothing was prepared.
    refills: Option<Refills>,
}

/// The client's side: gives `inputs` (fixed-point integers, one vector for each input of the program) and learns the
/// program's outputs as signed integers. The material is consumed.
///
/// # Errors
/// [`Error::Misuse`] if the inputs do not fit the program; otherwise if the link fails or the peer misbehaves.
pub fn infer_client(
    channel: &mut Channel,
    plan: &Plan,
    material: ClientMaterial,
    inputs: &[Vec<i64>],
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<i64>>, Report), Error> {
    check_inputs(plan.program(), inputs)?;
    let ClientMaterial { masks, shares, correlated } = material;
    let side = Side::Client { masks, shares };
    let half = Half { role: Role::Client, side, supply: Supply::new(correlated, plan.options())?, refills: None };
    let recorder = Recorder::start(Phase::Online, channel);
    let (outputs, report) = half.run(channel, plan, recorder, as_shares(plan, inputs), observer)?;
    Ok((signed(outputs), report))
}

/// The server's side: learns nothing. The material is consumed.
///
/// # Errors
/// If the link fails or the peer misbehaves.
pub fn infer_server(
    channel: &mut Channel,
    plan: &Plan,
    model: &Model,
    material: ServerMaterial,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    let ServerMaterial { shares, correlated } = material;
    let side = Side::Server { shares, model };
    let half = Half { role: Role::Server, side, supply: Supply::new(correlated, plan.options())?, refills: None };
    let recorder = Recorder::start(Phase::Online, channel);
    Ok(half.run(channel, plan, recorder, zeros(plan), observer)?.1)
}

/// Correlations for an inference with linear layers online: made earlier, or as it goes.
pub enum Stocked {
    /// Material in store, which is consumed.
    Prepared(Correlated),
    /// None: the buffer is filled in chunks.
    Unprepared(Filling),
}

/// As [`infer_client`] with linear layers under BFV online; `keys` are those of the session.
///
/// # Errors
/// As [`infer_client`].
pub fn infer_client_online(
    channel: &mut Channel,
    plan: &Plan,
    keys: &mut SessionKeys,
    stocked: Stocked,
    inputs: &[Vec<i64>],
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<i64>>, Report), Error> {
    check_inputs(plan.program(), inputs)?;
    let mut recorder = Recorder::start(Phase::Online, channel);
    if keys.are_due(plan) {
        recorder.layer("keys", "bfv", channel, |channel| keys.send(channel, plan))?;
    }
    let (supply, refills) = stock_up(channel, plan, Role::Client, stocked, &mut recorder)?;
    let half = Half { role: Role::Client, side: Side::ClientOnline(ClientSide::new(keys)?), supply, refills };
    let (outputs, report) = half.run(channel, plan, recorder, as_shares(plan, inputs), observer)?;
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
    stocked: Stocked,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    let mut recorder = Recorder::start(Phase::Online, channel);
    let transformed = model.transformed(plan)?;
    if key.is_due(plan) {
        recorder.layer("keys", "bfv", channel, |channel| key.receive(channel, plan))?;
    }
    let (supply, refills) = stock_up(channel, plan, Role::Server, stocked, &mut recorder)?;
    let side = ServerSide::new(key, model, transformed)?;
    let half = Half { role: Role::Server, side: Side::ServerOnline(side), supply, refills };
    Ok(half.run(channel, plan, recorder, zeros(plan), observer)?.1)
}

fn stock_up(
    channel: &mut Channel,
    plan: &Plan,
    role: Role,
    stocked: Stocked,
    recorder: &mut Recorder,
) -> Result<(Supply, Option<Refills>), Error> {
    match stocked {
        Stocked::Prepared(correlated) => Ok((Supply::new(correlated, plan.options())?, None)),
        Stocked::Unprepared(filling) => {
            let begin = |channel: &mut Channel| Refills::start(channel, role, plan, filling);
            let refills = recorder.layer("correlations", "ot", channel, begin)?;
            let empty = Correlated::Stock(Box::new(Stock::empty(role)));
            Ok((Supply::new(empty, plan.options())?, Some(refills)))
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
        observer: &mut dyn Observer,
    ) -> Result<(Outputs, Report), Error> {
        let (program, role) = (plan.program(), self.role);
        let mut state = State::new(plan, inputs);
        let total = plan.steps().len() + 1;
        let last_uses = plan.last_uses();
        for (done, step) in plan.steps().iter().enumerate() {
            let (name, operator) = plan.describe(step);
            observer.progress(Phase::Online, done, total, name);
            if let Some(refills) = self.refills.as_mut().filter(|refills| refills.is_due(done)) {
                let stock = recorder.layer(name, "refill", channel, |channel| refills.make(channel))?;
                self.supply.refill(stock);
            }
            recorder.layer(name, operator, channel, |channel| {
                let mut party = Party { role, channel, supply: &mut self.supply };
                state.step(step, &mut party, &mut self.side)
            })?;
            recorder.used_keys(keys::body_bytes(&plan.keys()[done], fss_role(role)));
            last_uses[done].iter().for_each(|&value| state.forget(value));
        }
        let mut outputs = Vec::new();
        observer.progress(Phase::Online, total - 1, total, "output");
        for output in program.outputs() {
            recorder.layer(&output.name, "reveal", channel, |channel| {
                let ring = Modulus::new(state.widths[output.value]);
                let opened = privet_gmw::open_to_client(channel, role, &state.shares[output.value], ring)?;
                outputs.extend(opened.map(|values| (ring, values)));
                Ok::<_, Error>(())
            })?;
        }
        channel.flush()?;
        observer.progress(Phase::Online, total, total, "");
        Ok((outputs, recorder.finish(channel)))
    }
}

/// A party's shares of all values so far.
struct State<'a> {
    plan: &'a Plan,
    shares: Vec<Vec<u64>>,
    widths: Vec<u32>,
    /// At the server: inputs of linear layers behind the client's masks.
    opened: Vec<Option<Vec<u64>>>,
    next_linear: usize,
}

impl<'a> State<'a> {
    fn new(plan: &'a Plan, inputs: Vec<Vec<u64>>) -> Self {
        let program = plan.program();
        let mut shares = vec![Vec::new(); program.values().len()];
        for (input, share) in program.inputs().iter().zip(inputs) {
            shares[input.value] = share;
        }
        let widths = (0..shares.len()).map(|id| plan.width(id)).collect();
        Self { plan, shares, widths, opened: vec![None; plan.masks().len()], next_linear: 0 }
    }

    /// Frees a value that nothing reads any more.
    fn forget(&mut self, value: usize) {
        self.shares[value] = Vec::new();
        if let Some(mask) = self.plan.mask_of(value) {
            self.opened[mask] = None;
        }
    }

    fn step(&mut self, step: &Step, party: &mut Party<'_>, side: &mut Side<'_>) -> Result<(), Error> {
        let wide = Modulus::new(self.plan.program().ring_bits());
        match *step {
            Step::Extend { value, from } => {
                self.shares[value] =
                    party.extend(&self.shares[value], Modulus::new(from), wide, self.plan.sign(value))?;
                self.widths[value] = wide.bits();
            }
            Step::Open { value, mask } => {
                let masks = match side {
                    Side::Client { masks, .. } => Some(masks[mask].as_slice()),
                    _ => None,
                };
                self.opened[mask] = match self.plan.field() {
                    None => privet_gmw::open_to_server(party.channel, &self.shares[value], masks, wide)?,
                    Some(field) => {
                        let (share, ring) = (&self.shares[value], Modulus::new(self.widths[value]));
                        let share = party.enter_field(share, ring, field, self.plan.sign(value))?;
                        privet_gmw::open_to_server_in_field(party.channel, &share, masks, field)?
                    }
                };
            }
            Step::Settle { value } => {
                self.shares[value] = self.truncate(value, 0, party)?;
                self.widths[value] = wide.bits();
            }
            Step::Operation(index) => {
                let operation = self.plan.operation(index);
                self.shares[operation.output] = self.operation(index, operation, party, side)?;
            }
        }
        Ok(())
    }

    fn operation(
        &mut self,
        index: usize,
        operation: &Operation,
        party: &mut Party<'_>,
        side: &mut Side<'_>,
    ) -> Result<Vec<u64>, Error> {
        let program = self.plan.program();
        let input = operation.inputs[0];
        let (x, ring) = (&self.shares[input], Modulus::new(self.widths[input]));
        let result = match &operation.operator {
            Operator::Conv2d { .. } | Operator::Dense { .. } | Operator::Scale { .. } => match self.plan.field() {
                None => self.linear(index, party, side)?,
                Some(field) => self.linear_in(field, index, party, side)?,
            },
            Operator::Truncate { bits } => self.truncate(input, *bits, party)?,
            Operator::Relu => party.relu(x, ring, Modulus::new(self.plan.width(operation.output)))?,
            Operator::MaxPool2d { window } => {
                let mut values = Cow::Borrowed(x);
                for groups in pooling_stages(program, operation, window) {
                    values = Cow::Owned(party.max_pool(&values, &groups, ring)?);
                }
                values.into_owned()
            }
            Operator::Argmax { axis, select_last, .. } => {
                let ties = if *select_last { Ties::Last } else { Ties::First };
                let groups = along(x, &program.value(input).shape, *axis);
                party.argmax(&groups, ties, [ring, Modulus::new(program.ring_bits())])?
            }
            _ => {
                let ring = Modulus::new(self.plan.width(operation.output).max(ring.bits()));
                let inputs: Vec<Cow<'_, [u64]>> = operation.inputs.iter().map(|&id| self.raised(id, ring)).collect();
                let inputs: Vec<&[u64]> = inputs.iter().map(AsRef::as_ref).collect();
                evaluate::local(program, operation, &inputs, side.weights(), ring)
            }
        };
        Ok(result)
    }

    /// A value without its low bits and guard bits.
    fn truncate(&self, value: usize, bits: u32, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, ring) = (&self.shares[value], Modulus::new(self.widths[value]));
        match ring.bits().saturating_sub(self.plan.program().ring_bits()) {
            0 => party.truncate(x, bits, ring, self.plan.options().truncation),
            guard => party.settle(x, bits, guard, ring),
        }
    }

    /// This party's share of a value in `ring`, which has guard bits if the value's ring has none: a multiple, so exact.
    fn raised(&self, value: usize, ring: Modulus) -> Cow<'_, [u64]> {
        match ring.bits() - self.widths[value] {
            0 => Cow::Borrowed(&self.shares[value]),
            guard => Cow::Owned(self.shares[value].iter().map(|x| x << guard).collect()),
        }
    }

    /// A party's share of `W x` and the bias: the offline share of `W r`, and at the server `W (x - r) + bias` on top; or by
    /// BFV on the client's share.
    fn linear(&mut self, index: usize, party: &mut Party<'_>, side: &mut Side<'_>) -> Result<Vec<u64>, Error> {
        let (position, operation) = (self.linear_layer(index), self.plan.operation(index));
        let layer = &self.plan.linear()[position];
        let (ring, guard) = (self.plan.product_ring(), self.plan.options().guard_bits());
        let share = &self.shares[operation.inputs[0]];
        match side {
            Side::Client { shares, .. } => Ok(std::mem::take(&mut shares[position])),
            Side::Server { shares, model } => {
                let opened = layer.mask.and_then(|mask| self.opened[mask].as_ref()).expect("opened before");
                let product = evaluate::linear(self.plan.program(), operation, opened, model.weights());
                let result = product.iter().zip(std::mem::take(&mut shares[position]));
                Ok(result.map(|(product, share)| ring.reduce((product << guard).wrapping_add(share))).collect())
            }
            Side::ClientOnline(client) => client.product(party.channel, self.plan, layer, share),
            Side::ServerOnline(server) => server.product(party.channel, self.plan, position, share),
        }
    }

    /// The same modulo a prime, and from there to the ring.
    fn linear_in(
        &mut self,
        field: Field,
        index: usize,
        party: &mut Party<'_>,
        side: &mut Side<'_>,
    ) -> Result<Vec<u64>, Error> {
        let position = self.linear_layer(index);
        let (program, operation) = (self.plan.program(), self.plan.operation(index));
        let share = match side {
            Side::Client { shares, .. } => std::mem::take(&mut shares[position]),
            Side::Server { shares, model } => {
                let mask = self.plan.linear()[position].mask;
                let opened = mask.and_then(|mask| self.opened[mask].as_ref()).expect("opened before");
                let product = evaluate::linear_in(field, program, operation, opened, model.weights());
                let sums = product.iter().zip(std::mem::take(&mut shares[position]));
                sums.map(|(&product, share)| field.add(product, share)).collect()
            }
            _ => unreachable!("layers that run online are in the ring"),
        };
        let ring = Modulus::new(program.ring_bits());
        let mut result = party.leave_field(&share, field, ring)?;
        if let Side::Server { model, .. } = side {
            evaluate::add_bias(program, operation, &mut result, model.weights());
            ring.reduce_all(&mut result);
        }
        Ok(result)
    }

    /// The position of the next linear layer, which is that of operation `index`.
    fn linear_layer(&mut self, index: usize) -> usize {
        let (position, layer) = (self.next_linear, &self.plan.linear()[self.next_linear]);
        assert_eq!(layer.operation, index, "linear layers come in order");
        self.next_linear += 1;
        position
    }
}
