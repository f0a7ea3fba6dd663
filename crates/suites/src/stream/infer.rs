//! The two sides of one inference.

use privet_channel::Channel;
use privet_paillier::{Ciphertexts, Noise, NoiseTable, Plaintext, PrivateKey, PublicKey};
use privet_prg::Prg;
use privet_program::{Program, Weights};

use super::arrangement::Arrangement;
use super::elements::Encrypted;
use super::exchange::{Exchange, Order};
use super::packed::Samples;
use super::parts::Part;
use super::plan::{Plan, Step};
use super::{parts, transport};
use crate::ops::Node;
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report};

/// The client's side: the key, and noise for one inference.
pub struct DataProvider {
    pub(super) key: PrivateKey,
    noise: Option<Noise>,
}

impl DataProvider {
    /// Makes a key of the plan's size.
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        Ok(Self { key: PrivateKey::generate(plan.key_size()?)?, noise: None })
    }

    /// What the server gets of the key.
    pub fn public_key(&self) -> &PublicKey {
        self.key.public()
    }

    /// Makes the noise of one inference's encryptions ahead of it.
    pub fn prepare(&mut self, plan: &Plan) -> Result<(), Error> {
        self.noise = Some(self.key.noise(plan.forecast().encryptions)?);
        Ok(())
    }

    /// Gives `inputs` (fixed-point integers, one vector for each of the program's, sample after sample) and learns its
    /// outputs.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the inputs do not fit the program, nothing was prepared, or a value leaves the ring; others
    /// if the link fails or the peer misbehaves.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Vec<i64>>, Report), Error> {
        check_inputs(plan, inputs)?;
        let mut noise = self.noise.take().ok_or_else(|| Error::Misuse("prepare before each inference".into()))?;
        let program = plan.program();
        let mut recorder = Recorder::start(Phase::Online, channel);
        for (input, values) in program.inputs().iter().zip(inputs) {
            recorder
                .layer(&input.name, "encrypt", channel, |channel| send(channel, plan.samples(), values, &mut noise))?;
        }
        let mut outputs = vec![Vec::new(); program.outputs().len()];
        let total = plan.steps().len();
        for (done, step) in plan.steps().iter().enumerate() {
            observer.progress(Phase::Online, done, total, plan.name(step));
            let Step::Exchange(exchange) = step else { continue };
            recorder.layer(exchange.name(program), &exchange.operators(program), channel, |channel| {
                let values = self.receive(channel, plan, exchange)?;
                let values =
                    values.into_iter().flat_map(|values| exchange.compute(program, values)).collect::<Vec<_>>();
                match exchange.order {
                    Order::Output(index) => outputs[index] = values,
                    Order::Elements | Order::Windows(_) => send(channel, plan.samples(), &values, &mut noise)?,
                }
                Ok::<_, Error>(())
            })?;
        }
        observer.progress(Phase::Online, total, total, "");
        Ok((outputs, recorder.finish(channel)))
    }

    /// Decrypts what the server sends: the values of each sample.
    fn receive(&self, channel: &mut Channel, plan: &Plan, exchange: &Exchange) -> Result<Vec<Vec<i64>>, Error> {
        let (program, samples) = (plan.program(), plan.samples());
        let mut values = vec![Vec::with_capacity(exchange.sent(program)); samples.count()];
        transport::receive(channel, self.key.public(), exchange.sent(program), |ciphertexts| {
            for slots in checked(program, exchange, samples, &self.key.decrypt(&ciphertexts)?)? {
                values.iter_mut().zip(slots).for_each(|(values, value)| values.push(value));
            }
            Ok(())
        })?;
        Ok(values)
    }
}

/// The samples' values in each plaintext, all of which must fit the ring.
pub(super) fn checked(
    program: &Program,
    exchange: &Exchange,
    samples: Samples,
    plaintexts: &[Plaintext],
) -> Result<Vec<Vec<i64>>, Error> {
    let room = 1_i64 << (program.ring_bits() - 1);
    let slots = |plaintext: &Plaintext| {
        let slots = samples.unpack(plaintext);
        slots.filter(|slots| slots.iter().all(|value| (-room..room).contains(value)))
    };
    plaintexts.iter().map(|plaintext| slots(plaintext).ok_or_else(|| overflow(program, exchange))).collect()
}

/// Whether there are as many values as all samples have. Fails with [`Error::Misuse`] if not.
pub(super) fn check_inputs(plan: &Plan, inputs: &[Vec<i64>]) -> Result<(), Error> {
    let samples = plan.samples().count();
    if inputs.iter().any(|values| values.len() % samples != 0) {
        return Err(Error::Misuse(format!("the values given are not those of {samples} samples")));
    }
    let first: Vec<Vec<i64>> = inputs.iter().map(|values| values[..values.len() / samples].to_vec()).collect();
    crate::check_inputs(plan.program(), &first)
}

fn overflow(program: &Program, exchange: &Exchange) -> Error {
    let (name, bits) = (exchange.name(program), program.ring_bits());
    Error::Misuse(format!("a value before layer {name} needs more than {bits} bits: the input is out of range"))
}

/// Encrypts the samples' values and sends them.
fn send(channel: &mut Channel, samples: Samples, values: &[i64], noise: &mut Noise) -> Result<(), Error> {
    let plaintexts = samples.pack(values)?;
    transport::send(channel, &Ciphertexts::encrypt(&plaintexts, noise.split_off(plaintexts.len())?)?)
}

/// The server's side for one client: its public key, and noise for one inference.
pub struct ModelProvider {
    key: PublicKey,
    table: NoiseTable,
    noise: Option<Noise>,
    /// Draws the orders.
    pub(super) prg: Prg,
}

impl ModelProvider {
    /// For a client's key.
    pub fn new(key: PublicKey) -> Result<Self, Error> {
        let table = NoiseTable::new(&key)?;
        Ok(Self { key, table, noise: None, prg: Prg::from_os()? })
    }

    /// Makes the noise of what one inference sends ahead of it.
    pub fn prepare(&mut self, plan: &Plan) -> Result<(), Error> {
        self.noise = Some(self.table.draw(plan.forecast().decryptions)?);
        Ok(())
    }

    /// Computes on what the client sends; learns nothing.
    ///
    /// # Errors
    /// [`Error::Misuse`] if nothing was prepared; others if the link fails or the peer misbehaves.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        weights: &Weights,
        observer: &mut dyn Observer,
    ) -> Result<Report, Error> {
        let mut noise = self.noise.take().ok_or_else(|| Error::Misuse("prepare before each inference".into()))?;
        let program = plan.program();
        let mut recorder = Recorder::start(Phase::Online, channel);
        let mut values: Vec<Option<Part<Encrypted>>> = program.values().iter().map(|_| None).collect();
        let whole = |ciphertexts| Part::whole(Encrypted { ciphertexts, samples: plan.samples() });
        for input in program.inputs() {
            let count = program.value(input.value).len();
            let received =
                recorder.layer(&input.name, "receive", channel, |channel| receive(channel, &self.key, count))?;
            values[input.value] = received.map(whole);
        }
        let (total, last_uses) = (plan.steps().len(), plan.last_uses());
        for (done, step) in plan.steps().iter().enumerate() {
            let name = plan.name(step);
            observer.progress(Phase::Online, done, total, name);
            match step {
                Step::Linear(index) => {
                    let node = Node::at(program, *index);
                    let (operation, all) = (node.operation, (0..node.output().len()).collect::<Vec<_>>());
                    let inputs = operation.inputs.iter().map(|&id| held(&values, id)).collect::<Result<Vec<_>, _>>()?;
                    let result = recorder.layer(name, operation.operator.name(), channel, |_| {
                        parts::compute(node, &inputs, weights, &all)
                    })?;
                    values[operation.output] = Some(Part::whole(result));
                }
                Step::Exchange(exchange) => {
                    let fresh = noise.split_off(exchange.sent(program))?;
                    let source = &held(&values, exchange.source)?.elements.ciphertexts;
                    let answer = recorder.layer(name, &exchange.operators(program), channel, |channel| {
                        self.exchange(channel, program, exchange, source, fresh)
                    })?;
                    if answer.is_some() {
                        values[exchange.target] = answer.map(whole);
                    }
                }
            }
            last_uses[done].iter().for_each(|&value| values[value] = None);
        }
        observer.progress(Phase::Online, total, total, "");
        Ok(recorder.finish(channel))
    }

    /// Sends a value re-randomised in a fresh order, and puts the answer in its own; no answer to an output.
    fn exchange(
        &mut self,
        channel: &mut Channel,
        program: &Program,
        exchange: &Exchange,
        source: &Ciphertexts,
        fresh: Noise,
    ) -> Result<Option<Ciphertexts>, Error> {
        let arrangement = match &exchange.order {
            Order::Elements => Some(Arrangement::elements(source.len(), &mut self.prg)),
            Order::Windows(pooling) => Some(Arrangement::groups(pooling.groups(program), &mut self.prg)),
            Order::Output(_) => None,
        };
        let mut sent = match &arrangement {
            Some(arrangement) => source.select(&arrangement.sent)?,
            None => source.clone(),
        };
        sent.randomize(fresh)?;
        transport::send(channel, &sent)?;
        let Some(arrangement) = arrangement else { return Ok(None) };
        let answer = receive(channel, &self.key, exchange.returned(program))?;
        Ok(answer.map(|answer| answer.select(&arrangement.returned)).transpose()?)
    }
}

fn held(values: &[Option<Part<Encrypted>>], id: usize) -> Result<&Part<Encrypted>, Error> {
    values[id].as_ref().ok_or_else(|| Error::Misuse(format!("value {id} is read before it is there")))
}

/// All ciphertexts of a value; none for no elements.
fn receive(channel: &mut Channel, key: &PublicKey, count: usize) -> Result<Option<Ciphertexts>, Error> {
    let mut all: Option<Ciphertexts> = None;
    transport::receive(channel, key, count, |part| {
        match &mut all {
            Some(all) => all.append(part)?,
            None => all = Some(part),
        }
        Ok(())
    })?;
    Ok(all)
}
