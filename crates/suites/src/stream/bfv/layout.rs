//! What both parties derive from a program for its preparation: layers under BFV in waves, shuffles, transfers.

use privet_channel::Link;
use privet_linear::Resharing;
use privet_ot::{Demand, Extension, ProductCounts, Role};
use privet_program::Program;
use privet_ring::Modulus;

use super::super::exchange::{Exchange, Order};
use super::super::plan::Step;
use super::super::shuffle::Shape;
use super::super::transport;
use crate::Error;
use crate::limits;
use crate::ops::Node;

/// A linear layer with weights.
pub(crate) struct Layer {
    /// Its place among the program's operations.
    pub operation: usize,
    /// The name of its weights.
    pub weight: String,
    /// Ciphertexts and products.
    pub plan: privet_linear::Plan,
    /// Layers with weights that its input went through since the client last saw it: as many must be prepared before.
    pub wave: usize,
}

/// How a program's inferences are prepared.
pub(crate) struct Layout {
    /// In the order of the steps.
    pub layers: Vec<Layer>,
    /// For each step its shuffle, if it has one.
    pub shapes: Vec<Option<Shape>>,
    /// How transfers are made.
    pub extension: Extension,
    ring: Modulus,
}

impl Layout {
    pub fn new(program: &Program, steps: &[Step]) -> Result<Self, Error> {
        let waves = waves(program, steps);
        let linear: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Linear(index) => Some((*index, Node::at(program, *index).linear()?)),
                Step::Exchange(_) => None,
            })
            .collect();
        let shapes: Vec<_> = linear.iter().map(|(_, map)| map.encrypted()).collect();
        let plans = match shapes.is_empty() {
            true => Vec::new(),
            false => {
                privet_linear::Plan::for_program(&shapes, program.ring_bits(), program.weight_bits(), Resharing::Exact)?
            }
        };
        let layers = linear.into_iter().zip(plans).map(|((operation, map), plan)| {
            let wave = waves[program.operations()[operation].inputs[0]];
            Layer { operation, weight: map.weight().to_owned(), plan, wave }
        });
        let mut layout = Self {
            layers: layers.collect(),
            shapes: steps.iter().map(|step| shape(program, step)).collect(),
            extension: Extension::default(),
            ring: Modulus::new(program.ring_bits()),
        };
        let each = |layer: &Layer| layer.plan.input_ciphertexts() + layer.plan.output_ciphertexts();
        limits::check(layout.transfers(), layout.layers.iter().map(each).sum(), 0)?;
        layout.extension = Extension::for_demand(&layout.demand(), &Link::LAN);
        Ok(layout)
    }

    /// The ring of all values.
    pub fn ring(&self) -> Modulus {
        self.ring
    }

    /// The layers of each wave, in order.
    pub fn waves(&self) -> impl Iterator<Item = Vec<(usize, &Layer)>> {
        let count = self.layers.iter().map(|layer| layer.wave + 1).max().unwrap_or(0);
        (0..count).map(|wave| self.layers.iter().enumerate().filter(|(_, layer)| layer.wave == wave).collect())
    }

    /// Steps with a shuffle.
    pub fn shuffles(&self) -> impl Iterator<Item = (usize, Shape)> {
        self.shapes.iter().enumerate().filter_map(|(step, shape)| Some((step, (*shape)?)))
    }

    /// Transfers for one preparation.
    pub fn demand(&self) -> Demand {
        Demand { products_sent_by_client: ProductCounts::of(self.ring.bits(), self.transfers()), ..Demand::NONE }
    }

    /// How many transfers these are.
    pub fn transfers(&self) -> usize {
        self.shuffles().map(|(_, shape)| shape.products()).sum()
    }

    /// Bytes that client and server send for a session's first preparation, without the request for it.
    pub fn offline_bytes(&self) -> [usize; 2] {
        let transfers =
            privet_ot::cost::setup() + privet_ot::cost::generate(&self.demand(), self.extension, Role::Client);
        let [mut client, mut server] = [transfers.bytes_sent, transfers.bytes_received];
        for cost in self.layers.iter().map(|layer| layer.plan.cost()) {
            client += cost.bytes_sent;
            server += cost.bytes_received;
        }
        client += self.layers.first().map_or(0, |layer| layer.plan.public_key_cost().bytes_sent);
        for (_, shape) in self.shuffles() {
            for products in [shape.forward(), shape.backward()] {
                client += transport::ring_bytes(self.ring, products) as u64;
                server += transport::bit_bytes(products) as u64;
            }
        }
        [client as usize, server as usize + transport::ACKNOWLEDGED]
    }
}

/// For each value, the layers with weights that it went through since the client last saw it.
fn waves(program: &Program, steps: &[Step]) -> Vec<usize> {
    let mut waves = vec![0; program.values().len()];
    for step in steps {
        let Step::Linear(index) = step else { continue };
        let operation = &program.operations()[*index];
        let before = operation.inputs.iter().map(|&input| waves[input]).max().unwrap_or(0);
        waves[operation.output] = before + usize::from(Node { program, operation }.linear().is_some());
    }
    waves
}

fn shape(program: &Program, step: &Step) -> Option<Shape> {
    let Step::Exchange(exchange) = step else { return None };
    match &exchange.order {
        Order::Output(_) => None,
        Order::Elements => Some(Shape { windows: exchange.sent(program), length: 1 }),
        Order::Windows(pooling) => Some(Shape { windows: pooling.count, length: pooling.longest }),
    }
}

/// For each place of an exchange's windows the element that lies there before the shuffle; none where a window hangs over
/// the edge.
pub(super) fn elements(program: &Program, exchange: &Exchange) -> Vec<Option<usize>> {
    match &exchange.order {
        Order::Windows(pooling) => {
            let window = |group: &mut dyn Iterator<Item = usize>| -> Vec<_> {
                group.map(Some).chain(std::iter::repeat(None)).take(pooling.longest).collect()
            };
            pooling.groups(program).iter().flat_map(|mut group| window(&mut group)).collect()
        }
        Order::Elements | Order::Output(_) => (0..exchange.sent(program)).map(Some).collect(),
    }
}
