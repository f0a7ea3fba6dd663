//! The client over BFV: masks made ahead, and opened values.

use privet_channel::Channel;
use privet_linear::{ClientKeys, INFERENCES_PER_KEY};
use privet_ot::{OtParty, Role, Stock};
use privet_prg::Prg;
use privet_program::Program;
use privet_ring::{Bits, Modulus};

use super::super::exchange::{Exchange, Order};
use super::super::plan::{Plan, Step};
use super::super::shuffle::{self, Shape};
use super::super::transport;
use super::layout::{Layout, elements};
use super::material::DataMaterial;
use crate::ops::{InRing, Node};
use crate::report::Recorder;
use crate::sharing::uniform;
use crate::{Error, Observer, Phase, Report, check_inputs};

/// The client's side of a session: keys and transfers, and what is ready for one inference.
pub struct DataProvider {
    keys: Option<ClientKeys>,
    transfers: OtParty,
    prg: Prg,
    /// Preparations so far.
    prepared: u64,
    pub(in super::super) material: Option<Material>,
}

/// The client's masks of one inference.
pub(in super::super) struct Material {
    /// Of the inputs.
    pub(super) inputs: Vec<Vec<u64>>,
    /// For each step of what comes in an exchange, in the order in which it comes, and of what goes back.
    pub(in super::super) exchanges: Vec<[Vec<u64>; 2]>,
}

impl DataProvider {
    /// Makes keys and sets up transfers with the server.
    pub(crate) fn new(channel: &mut Channel, layout: &Layout) -> Result<Self, Error> {
        let mut prg = Prg::from_os()?;
        let transfers = OtParty::setup(channel, Role::Client, layout.extension)?;
        let keys = layout.layers.first().map(|layer| ClientKeys::generate(layer.plan.parameters(), &mut prg));
        if let Some(keys) = &keys {
            keys.send_public_key(channel, &mut prg)?;
        }
        channel.flush()?;
        Ok(Self { keys, transfers, prg, prepared: 0, material: None })
    }

    /// Whether these keys have served as many preparations as they may.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.prepared >= INFERENCES_PER_KEY
    }

    /// Makes the masks of one inference with the server.
    pub(crate) fn prepare(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        self.prepared += 1;
        let mut stock = recorder.layer("correlations", "ot", channel, |channel| {
            Ok::<_, Error>(Stock::generate(&mut self.transfers, channel, &layout.demand())?)
        })?;
        let mut masks = Masks::new(plan.program());
        let inputs = plan.program().inputs().iter().map(|input| {
            let mask = uniform(&mut self.prg, plan.program().value(input.value).len(), layout.ring());
            masks.values[input.value] = Some(mask.clone());
            mask
        });
        let mut material =
            Material { inputs: inputs.collect(), exchanges: vec![Default::default(); plan.steps().len()] };
        let flips = recorder.layer("shuffles", "back", channel, |channel| {
            self.backward(channel, plan, layout, &mut stock, &mut masks, &mut material)
        })?;
        self.layers(channel, plan, layout, &mut masks, recorder)?;
        recorder.layer("shuffles", "forth", channel, |channel| {
            forward(channel, plan, layout, &mut stock, &masks, &flips, &mut material)
        })?;
        self.material = Some(material);
        Ok(())
    }

    /// Reads all bits of the server; draws the masks of what the client returns and shuffles them back. Returns the bits
    /// of the way there.
    fn backward(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        stock: &mut Stock,
        masks: &mut Masks<'_>,
        material: &mut Material,
    ) -> Result<Vec<Bits>, Error> {
        // The server sends them in a row: to answer in between would look like waiting.
        let bits = |(_, shape): (usize, Shape)| {
            let forward = transport::receive_bits(channel, shape.forward())?;
            Ok::<_, Error>((forward, transport::receive_bits(channel, shape.backward())?))
        };
        let (there, back): (Vec<_>, Vec<_>) =
            layout.shuffles().map(bits).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        for ((step, shape), back) in layout.shuffles().zip(back) {
            let Step::Exchange(exchange) = &plan.steps()[step] else { continue };
            let returned = uniform(&mut self.prg, shape.windows, layout.ring());
            let mut mask = returned.clone();
            let products = stock.take_products_sent(layout.ring().bits(), shape.backward())?;
            let message = shuffle::backward_sent(shape, &mut mask, &back, &products);
            transport::send_values(channel, layout.ring(), &message)?;
            layout.ring().reduce_all(&mut mask);
            material.exchanges[step][1] = returned;
            masks.values[exchange.target] = Some(mask);
        }
        Ok(there)
    }

    /// Takes masks through the linear layers, a wave at a time.
    fn layers(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        masks: &mut Masks<'_>,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let operations = plan.program().operations();
        masks.go_on(plan, layout.ring());
        for wave in layout.waves() {
            let keys = self.keys.as_ref().ok_or_else(|| Error::Misuse("no keys for a linear layer".into()))?;
            for (_, layer) in &wave {
                let operation = &operations[layer.operation];
                let mask = masks.of(operation.inputs[0])?;
                recorder.layer(&operation.name, "encrypt", channel, |channel| {
                    privet_linear::encrypt(channel, &layer.plan, keys, mask, &mut self.prg)
                })?;
            }
            channel.flush()?;
            for (_, layer) in &wave {
                let operation = &operations[layer.operation];
                let share = recorder.layer(&operation.name, "decrypt", channel, |channel| {
                    privet_linear::decrypt(channel, &layer.plan, keys)
                })?;
                masks.values[operation.output] = Some(share);
            }
            masks.go_on(plan, layout.ring());
        }
        Ok(())
    }

    /// What was prepared, for a request that goes another way. Fails with [`Error::Misuse`] if nothing was.
    pub(crate) fn entry(&mut self, plan: &Plan) -> Result<DataMaterial, Error> {
        DataMaterial::new(plan, self.material.take().ok_or_else(|| Error::Misuse("prepare before each entry".into()))?)
    }

    /// Gives `inputs` and learns the outputs; uses up what was prepared. Fails with [`Error::Misuse`] if the inputs do
    /// not fit or nothing was prepared; others if the link fails or the peer misbehaves.
    pub(crate) fn infer(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Vec<i64>>, Report), Error> {
        let (program, ring) = (plan.program(), layout.ring());
        check_inputs(program, inputs)?;
        let material = self.material.take().ok_or_else(|| Error::Misuse("prepare before each inference".into()))?;
        let mut recorder = Recorder::start(Phase::Online, channel);
        for ((input, values), mask) in program.inputs().iter().zip(inputs).zip(&material.inputs) {
            let masked = masked(values, mask);
            recorder.layer(&input.name, "mask", channel, |channel| transport::send_values(channel, ring, &masked))?;
        }
        let mut outputs = vec![Vec::new(); program.outputs().len()];
        for (done, (step, [received, returned])) in plan.steps().iter().zip(material.exchanges).enumerate() {
            observer.progress(Phase::Online, done, plan.steps().len(), plan.name(step));
            let Step::Exchange(exchange) = step else { continue };
            recorder.layer(exchange.name(program), &exchange.operators(program), channel, |channel| {
                let sums = ring.add(&transport::receive_values(channel, ring, received.len())?, &received);
                let values = sums.into_iter().map(|sum| ring.signed(sum)).collect();
                let values = exchange.compute(program, values);
                match exchange.order {
                    Order::Output(index) => outputs[index] = values,
                    Order::Elements | Order::Windows(_) => {
                        transport::send_values(channel, ring, &masked(&values, &returned))?;
                    }
                }
                Ok::<_, Error>(())
            })?;
        }
        observer.progress(Phase::Online, plan.steps().len(), plan.steps().len(), "");
        Ok((outputs, recorder.finish(channel)))
    }
}

/// Shuffles the masks of what the server will send; those of outputs stay in order.
fn forward(
    channel: &mut Channel,
    plan: &Plan,
    layout: &Layout,
    stock: &mut Stock,
    masks: &Masks<'_>,
    flips: &[Bits],
    material: &mut Material,
) -> Result<(), Error> {
    let mut flips = flips.iter();
    for (step, shape) in layout.shapes.iter().enumerate() {
        let Step::Exchange(exchange) = &plan.steps()[step] else { continue };
        let mut mask = arranged(plan.program(), exchange, masks.of(exchange.source)?);
        if let Some(shape) = *shape {
            let flips = flips.next().ok_or_else(|| Error::Misuse("bits of another plan".into()))?;
            let products = stock.take_products_sent(layout.ring().bits(), shape.forward())?;
            let message = shuffle::forward_sent(shape, &mut mask, flips, &products);
            transport::send_values(channel, layout.ring(), &message)?;
        }
        material.exchanges[step][0] = mask;
    }
    transport::await_acknowledgement(channel)
}

/// A mask window by window. Where a window has no element, the server alone puts one.
fn arranged(program: &Program, exchange: &Exchange, mask: &[u64]) -> Vec<u64> {
    elements(program, exchange).into_iter().map(|element| element.map_or(0, |at| mask[at])).collect()
}

fn masked(values: &[i64], mask: &[u64]) -> Vec<u64> {
    values.iter().zip(mask).map(|(&value, mask)| (value as u64).wrapping_sub(*mask)).collect()
}

/// The masks of a program's values as far as they are known.
struct Masks<'a> {
    program: &'a Program,
    values: Vec<Option<Vec<u64>>>,
}

impl<'a> Masks<'a> {
    fn new(program: &'a Program) -> Self {
        Self { program, values: vec![None; program.values().len()] }
    }

    fn of(&self, value: usize) -> Result<&[u64], Error> {
        let mask = self.values[value].as_deref();
        mask.ok_or_else(|| Error::Misuse(format!("the mask of value {value} is read before it is there")))
    }

    /// Takes known masks through all linear operations without weights.
    fn go_on(&mut self, plan: &Plan, ring: Modulus) {
        for step in plan.steps() {
            let Step::Linear(index) = step else { continue };
            let operation = &self.program.operations()[*index];
            let known: Option<Vec<&[u64]>> = operation.inputs.iter().map(|&id| self.values[id].as_deref()).collect();
            let Some(inputs) = known else { continue };
            let local = Node { program: self.program, operation }.local();
            if let Some(local) = local.filter(|_| self.values[operation.output].is_none()) {
                self.values[operation.output] = Some(InRing::run(ring, &*local, &inputs, None));
            }
        }
    }
}
