//! The server over BFV: products of masks ahead, plain arithmetic on masked values online.

use std::sync::{Arc, Mutex, PoisonError};

use privet_channel::Channel;
use privet_linear::{PublicKey, TransformedWeights, Workspace, receive_public_key};
use privet_ot::{OtParty, Role, Stock};
use privet_prg::Prg;
use privet_program::Weights;
use privet_ring::Modulus;

use super::super::exchange::{Exchange, Order};
use super::super::network::inverse;
use super::super::plan::{Plan, Step};
use super::super::shuffle::{Receiver, Secret, Shape};
use super::super::transport;
use super::layout::{Layout, elements};
use super::material::ModelMaterial;
use crate::ops::{InRing, Node};
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report};

/// A program's weights in the form in which preparations take them, made once by whoever asks first.
#[derive(Default)]
pub(crate) struct Transformed(Mutex<Option<Arc<[TransformedWeights]>>>);

impl Transformed {
    fn get(&self, layout: &Layout, weights: &Weights) -> Result<Arc<[TransformedWeights]>, Error> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = &*cached {
            return Ok(Arc::clone(cached));
        }
        let transform = |layer: &super::layout::Layer| {
            TransformedWeights::new(&layer.plan, weights.tensor(&layer.weight), Workspace::standard(&layer.plan))
        };
        let all: Arc<[_]> = layout.layers.iter().map(transform).collect::<Result<_, privet_linear::Error>>()?;
        *cached = Some(Arc::clone(&all));
        Ok(all)
    }
}

/// The server's side of a session: the client's key, transfers, and what is ready for one inference.
pub struct ModelProvider {
    key: Option<PublicKey>,
    transfers: OtParty,
    /// Draws the orders, and seeds replies.
    pub(in super::super) prg: Prg,
    material: Option<Material>,
}

/// The server's part of one inference.
pub(super) struct Material {
    /// Shares of the products of each linear layer, in the order of the steps.
    pub products: Vec<Vec<u64>>,
    /// For each step its arrangement; none without a shuffle.
    pub arrangements: Vec<Option<Arranged>>,
}

/// The order of one exchange of one inference, with the server's parts of both shuffles.
pub(super) struct Arranged {
    /// For each place of what is sent the element that comes there; none for a window that hangs over the edge.
    pub sent: Vec<Option<usize>>,
    /// The server's part of what is sent.
    pub forward: Vec<u64>,
    /// For each element of the answer its place.
    pub returned: Vec<usize>,
    /// The server's part of the answer.
    pub backward: Vec<u64>,
}

/// A shuffle that is being prepared.
struct Pending {
    step: usize,
    shape: Shape,
    secret: Secret,
    forward: Receiver,
    backward: Receiver,
}

impl ModelProvider {
    /// Reads the client's key and sets up transfers.
    pub(crate) fn new(channel: &mut Channel, layout: &Layout) -> Result<Self, Error> {
        let transfers = OtParty::setup(channel, Role::Server, layout.extension)?;
        let parameters = layout.layers.first().map(|layer| layer.plan.parameters());
        let key = parameters.map(|parameters| receive_public_key(channel, parameters)).transpose()?;
        Ok(Self { key, transfers, prg: Prg::from_os()?, material: None })
    }

    /// Makes the server's part of one inference with the client.
    pub(crate) fn prepare(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        model: (&Weights, &Transformed),
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let weights = recorder.layer("weights", "transform", channel, |_| model.1.get(layout, model.0))?;
        let stock = recorder.layer("correlations", "ot", channel, |channel| {
            Ok::<_, Error>(Stock::generate(&mut self.transfers, channel, &layout.demand())?)
        })?;
        let mut arrangements: Vec<Option<Arranged>> = plan.steps().iter().map(|_| None).collect();
        let pending = recorder.layer("shuffles", "back", channel, |channel| {
            let pending = self.draw(layout, stock)?;
            for Pending { forward, backward, .. } in &pending {
                transport::send_bits(channel, &forward.flips())?;
                transport::send_bits(channel, &backward.flips())?;
            }
            channel.flush()?;
            for Pending { step, shape, secret, backward, .. } in &pending {
                let message = transport::receive_values(channel, layout.ring(), shape.backward())?;
                let backward = backward.backward(*shape, &message, layout.ring());
                let returned = inverse(&secret.order);
                arrangements[*step] = Some(Arranged { sent: vec![], forward: vec![], returned, backward });
            }
            Ok::<_, Error>(pending)
        })?;
        let products = self.layers(channel, plan, layout, &weights, recorder)?;
        recorder.layer("shuffles", "forth", channel, |channel| {
            for Pending { step, shape, secret, forward, .. } in pending {
                let (Step::Exchange(exchange), Some(arranged)) = (&plan.steps()[step], &mut arrangements[step]) else {
                    continue;
                };
                let message = transport::receive_values(channel, layout.ring(), shape.forward())?;
                arranged.forward = forward.forward(shape, &message, layout.ring());
                let elements = elements(plan.program(), exchange);
                arranged.sent = secret.places(shape).into_iter().map(|at| elements[at]).collect();
            }
            transport::acknowledge(channel)
        })?;
        self.material = Some(Material { products, arrangements });
        Ok(())
    }

    /// Draws the orders of one inference, with transfers for each: those of the way back first.
    fn draw(&mut self, layout: &Layout, mut stock: Stock) -> Result<Vec<Pending>, Error> {
        let drawn: Vec<_> = layout
            .shuffles()
            .map(|(step, shape)| {
                let secret = Secret::draw(shape, &mut self.prg);
                let [forward, backward] = secret.bits(shape);
                let backward =
                    Receiver::new(backward, stock.take_products_received(layout.ring().bits(), shape.backward())?);
                Ok((step, shape, secret, forward, backward))
            })
            .collect::<Result<_, Error>>()?;
        drawn
            .into_iter()
            .map(|(step, shape, secret, forward, backward)| {
                let forward =
                    Receiver::new(forward, stock.take_products_received(layout.ring().bits(), shape.forward())?);
                Ok(Pending { step, shape, secret, forward, backward })
            })
            .collect()
    }

    /// Shares of all products with the client's masks, a wave at a time.
    fn layers(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        weights: &[TransformedWeights],
        recorder: &mut Recorder,
    ) -> Result<Vec<Vec<u64>>, Error> {
        let mut shares = vec![Vec::new(); layout.layers.len()];
        for wave in layout.waves() {
            let key = self.key.as_ref().ok_or_else(|| Error::Misuse("no key for a linear layer".into()))?;
            for (index, layer) in wave {
                let name = &plan.program().operations()[layer.operation].name;
                shares[index] = recorder.layer(name, "evaluate", channel, |channel| {
                    privet_linear::evaluate(channel, &layer.plan, key, &weights[index], &mut self.prg)
                })?;
            }
            channel.flush()?;
        }
        Ok(shares)
    }

    /// What was prepared, for a request that goes another way. Fails with [`Error::Misuse`] if nothing was.
    pub(crate) fn entry(&mut self, plan: &Plan) -> Result<ModelMaterial, Error> {
        ModelMaterial::new(plan, self.material.take().ok_or_else(|| Error::Misuse("prepare before each entry".into()))?)
    }

    /// Computes on what the client sends; learns nothing, and uses up what was prepared. Fails with [`Error::Misuse`]
    /// if nothing was prepared; others if the link fails or the peer misbehaves.
    pub(crate) fn infer(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layout: &Layout,
        weights: &Weights,
        observer: &mut dyn Observer,
    ) -> Result<Report, Error> {
        let Material { products, arrangements } =
            self.material.take().ok_or_else(|| Error::Misuse("prepare before each inference".into()))?;
        let (program, ring) = (plan.program(), layout.ring());
        let mut recorder = Recorder::start(Phase::Online, channel);
        let mut values = vec![Vec::new(); program.values().len()];
        for input in program.inputs() {
            let count = program.value(input.value).len();
            values[input.value] = recorder
                .layer(&input.name, "receive", channel, |channel| transport::receive_values(channel, ring, count))?;
        }
        let (mut products, last_uses) = (products.into_iter(), plan.last_uses());
        for (done, (step, arranged)) in plan.steps().iter().zip(arrangements).enumerate() {
            let name = plan.name(step);
            observer.progress(Phase::Online, done, plan.steps().len(), name);
            match step {
                Step::Linear(index) => {
                    let operation = &program.operations()[*index];
                    let inputs: Vec<&[u64]> = operation.inputs.iter().map(|&id| values[id].as_slice()).collect();
                    let node = Node { program, operation };
                    let layer = node.linear().and_then(|map| Some((map, products.next()?)));
                    let result = recorder.layer(name, operation.operator.name(), channel, |_| {
                        Ok::<_, Error>(match layer {
                            Some((map, share)) => ring.add(&map.affine(inputs[0], weights, ring), &share),
                            None => {
                                InRing::run(ring, &*node.local().expect("a local operation"), &inputs, Some(weights))
                            }
                        })
                    })?;
                    values[operation.output] = result;
                }
                Step::Exchange(exchange) => {
                    let source = &values[exchange.source];
                    let answer = recorder.layer(name, &exchange.operators(program), channel, |channel| {
                        exchange_values(channel, ring, exchange, source, arranged)
                    })?;
                    if !matches!(exchange.order, Order::Output(_)) {
                        values[exchange.target] = answer;
                    }
                }
            }
            last_uses[done].iter().for_each(|&value| values[value] = Vec::new());
        }
        observer.progress(Phase::Online, plan.steps().len(), plan.steps().len(), "");
        Ok(recorder.finish(channel))
    }
}

/// Sends the server's part of a value in the order prepared, and puts the answer in its own; an output as it is.
fn exchange_values(
    channel: &mut Channel,
    ring: Modulus,
    exchange: &Exchange,
    source: &[u64],
    arranged: Option<Arranged>,
) -> Result<Vec<u64>, Error> {
    let Some(Arranged { sent, forward, returned, backward }) = arranged else {
        debug_assert!(matches!(exchange.order, Order::Output(_)), "only outputs go in order");
        transport::send_values(channel, ring, source)?;
        return Ok(Vec::new());
    };
    // The least value in place of none: no maximum notices it.
    let least = 1_u64 << (ring.bits() - 1);
    let placed: Vec<u64> = sent.into_iter().map(|element| element.map_or(least, |at| source[at])).collect();
    transport::send_values(channel, ring, &ring.add(&placed, &forward))?;
    let answer = transport::receive_values(channel, ring, returned.len())?;
    let placed: Vec<u64> = returned.into_iter().map(|at| answer[at]).collect();
    Ok(ring.add(&placed, &backward))
}
