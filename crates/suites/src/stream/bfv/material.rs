//! What a preparation made, taken out of its session: the material of one request for whoever runs it elsewhere.

use std::fmt;

use super::super::exchange::Order;
use super::super::plan::{Plan, Step};
use super::super::rows;
use super::{client, server};
use crate::Error;

/// The client's masks of one request, as [rows](super::super::rows).
pub struct DataMaterial {
    /// Of each input, in the program's order.
    pub inputs: Vec<Vec<u8>>,
    /// For each round of what comes, in the order in which it comes, and of what goes back.
    pub rounds: Vec<[Vec<u8>; 2]>,
}

/// The server's part of one request.
pub struct ModelMaterial {
    /// For each layer with weights the value that it gives, and the server's share of the product with the mask.
    pub shares: Vec<(usize, Vec<u8>)>,
    /// For each round its order.
    pub rounds: Vec<Ordered>,
}

/// The order of one round of one request, with the server's parts of both shuffles; those are empty for an output, which
/// goes in its own order.
pub struct Ordered {
    /// For each place of what is sent the element that comes there; none for a window that hangs over the edge.
    pub sent: Vec<Option<usize>>,
    /// What is added to it, as rows.
    pub forward: Vec<u8>,
    /// For each element of the answer its place.
    pub returned: Vec<usize>,
    /// What is added to it in its own order, as rows.
    pub backward: Vec<u8>,
}

// Nothing of an entry may end up in a log.
impl fmt::Debug for DataMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataMaterial").finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelMaterial").finish_non_exhaustive()
    }
}

impl DataMaterial {
    /// The entry that a client's material is.
    pub(super) fn new(plan: &Plan, material: client::Material) -> Result<Self, Error> {
        let ring = plan.layout()?.ring();
        let rows = |mask: &Vec<u64>| rows::from_ring(ring, mask);
        let exchanged = plan.steps().iter().zip(&material.exchanges);
        let rounds = exchanged.filter(|(step, _)| matches!(step, Step::Exchange(_))).map(|(_, masks)| masks);
        Ok(Self {
            inputs: material.inputs.iter().map(rows).collect(),
            rounds: rounds.map(|masks| [rows(&masks[0]), rows(&masks[1])]).collect(),
        })
    }
}

impl ModelMaterial {
    /// The entry that a server's material is.
    pub(super) fn new(plan: &Plan, material: server::Material) -> Result<Self, Error> {
        let (layout, program) = (plan.layout()?, plan.program());
        let rows = |values: &[u64]| rows::from_ring(layout.ring(), values);
        let layers = layout.layers.iter().zip(&material.products);
        let shares = layers.map(|(layer, share)| (program.operations()[layer.operation].output, rows(share)));
        let mut rounds = Vec::new();
        for (step, arranged) in plan.steps().iter().zip(material.arrangements) {
            let Step::Exchange(exchange) = step else { continue };
            rounds.push(match (&exchange.order, arranged) {
                (Order::Output(_), _) => Ordered {
                    sent: (0..exchange.sent(program)).map(Some).collect(),
                    forward: Vec::new(),
                    returned: Vec::new(),
                    backward: Vec::new(),
                },
                (_, Some(arranged)) => Ordered {
                    forward: rows(&arranged.forward),
                    backward: rows(&arranged.backward),
                    sent: arranged.sent,
                    returned: arranged.returned,
                },
                (_, None) => return Err(Error::Misuse("material of another plan".into())),
            });
        }
        Ok(Self { shares: shares.collect(), rounds })
    }
}
