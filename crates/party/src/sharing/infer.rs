//! The online job: the steps of a plan on one input.

use std::borrow::Cow;

use privet_channel::Channel;
use privet_ot::Role;
use privet_program::{Operation, Operator};
use privet_ring::tournament::Ties;
use privet_ring::{Field, Modulus};

use super::nonlinear::{Party, Supply, fss_role};
use super::{ClientMaterial, Model, Plan, ServerMaterial, Step, evaluate, keys};
use crate::layers::{along, pooling_stages};
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report, check_inputs};

/// Where a party's shares of `W r` and its knowledge differ.
enum Side<'a> {
    Client { masks: Vec<Vec<u64>>, shares: Vec<Vec<u64>> },
    Server { shares: Vec<Vec<u64>>, model: &'a Model },
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
    let ring = Modulus::new(plan.program().ring_bits());
    let shares = inputs.iter().map(|x| x.iter().map(|&x| ring.reduce(x as u64)).collect()).collect();
    let ClientMaterial { masks, shares: products, correlated } = material;
    let mut supply = Supply::new(correlated, plan.options())?;
    let side = Side::Client { masks, shares: products };
    let (outputs, report) = run(channel, plan, Role::Client, side, &mut supply, shares, observer)?;
    let signed = |(ring, values): (Modulus, Vec<u64>)| values.into_iter().map(|value| ring.signed(value)).collect();
    Ok((outputs.into_iter().map(signed).collect(), report))
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
    let inputs = plan.program().inputs().iter().map(|input| vec![0; plan.program().value(input.value).len()]).collect();
    let ServerMaterial { shares, correlated } = material;
    let mut supply = Supply::new(correlated, plan.options())?;
    let side = Side::Server { shares, model };
    Ok(run(channel, plan, Role::Server, side, &mut supply, inputs, observer)?.1)
}

/// What the client learned, each vector in the ring that it was shared in.
type Outputs = Vec<(Modulus, Vec<u64>)>;

fn run(
    channel: &mut Channel,
    plan: &Plan,
    role: Role,
    mut side: Side<'_>,
    supply: &mut Supply,
    inputs: Vec<Vec<u64>>,
    observer: &mut dyn Observer,
) -> Result<(Outputs, Report), Error> {
    let mut recorder = Recorder::start(Phase::Online, channel);
    let program = plan.program();
    let mut state = State::new(plan, inputs);
    let total = plan.steps().len() + 1;
    let last_uses = plan.last_uses();
    for (done, step) in plan.steps().iter().enumerate() {
        let (name, operator) = plan.describe(step);
        observer.progress(Phase::Online, done, total, name);
        recorder.layer(name, operator, channel, |channel| {
            let mut party = Party { role, channel, supply: &mut *supply };
            state.step(step, &mut party, &mut side)
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
                self.shares[value] = party.extend(&self.shares[value], Modulus::new(from), wide)?;
                self.widths[value] = wide.bits();
            }
            Step::Open { value, mask } => {
                let masks = match side {
                    Side::Client { masks, .. } => Some(masks[mask].as_slice()),
                    Side::Server { .. } => None,
                };
                self.opened[mask] = match self.plan.field() {
                    None => privet_gmw::open_to_server(party.channel, &self.shares[value], masks, wide)?,
                    Some(field) => {
                        let share = party.enter_field(&self.shares[value], Modulus::new(self.widths[value]), field)?;
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
                None => self.linear(index, side),
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
                let weights = match side {
                    Side::Server { model, .. } => Some(model.weights()),
                    Side::Client { .. } => None,
                };
                evaluate::local(program, operation, &inputs, weights, ring)
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

    /// The offline share of `W r`, and at the server `W (x - r) + bias` on top.
    fn linear(&mut self, index: usize, side: &mut Side<'_>) -> Vec<u64> {
        let (position, mask) = self.linear_layer(index);
        let (ring, guard) = (self.plan.product_ring(), self.plan.options().guard_bits());
        match side {
            Side::Client { shares, .. } => std::mem::take(&mut shares[position]),
            Side::Server { shares, model } => {
                let opened = self.opened[mask].as_ref().expect("opened before");
                let operation = self.plan.operation(index);
                let product = evaluate::linear(self.plan.program(), operation, opened, model.weights());
                let result = product.iter().zip(std::mem::take(&mut shares[position]));
                result.map(|(product, share)| ring.reduce((product << guard).wrapping_add(share))).collect()
            }
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
        let (position, mask) = self.linear_layer(index);
        let (program, operation) = (self.plan.program(), self.plan.operation(index));
        let share = match side {
            Side::Client { shares, .. } => std::mem::take(&mut shares[position]),
            Side::Server { shares, model } => {
                let opened = self.opened[mask].as_ref().expect("opened before");
                let product = evaluate::linear_in(field, program, operation, opened, model.weights());
                let sums = product.iter().zip(std::mem::take(&mut shares[position]));
                sums.map(|(&product, share)| field.add(product, share)).collect()
            }
        };
        let ring = Modulus::new(program.ring_bits());
        let mut result = party.leave_field(&share, field, ring)?;
        if let Side::Server { model, .. } = side {
            evaluate::add_bias(program, operation, &mut result, model.weights());
            ring.reduce_all(&mut result);
        }
        Ok(result)
    }

    /// The position of the next linear layer, which is that of operation `index`, and the mask of its input.
    fn linear_layer(&mut self, index: usize) -> (usize, usize) {
        let (position, layer) = (self.next_linear, &self.plan.linear()[self.next_linear]);
        assert_eq!(layer.operation, index, "linear layers come in order");
        self.next_linear += 1;
        (position, layer.mask)
    }
}
