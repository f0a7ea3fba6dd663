//! What one inference of a plan will take, by the protocols' formulas.

use std::ops::Add;

use privet_ot::{Demand, Extension, Role, STOCK_HEADER_BYTES, Shape, cost as ot_cost};
use privet_ring::Modulus;

use super::{Encrypted, Plan, Suite, Triples, dealt, elements, keys, making, prepare};
use crate::forecast::{ExtensionForecast, Forecast, LinearForecast};

impl Plan {
    /// Whether a dealer makes the material.
    pub fn is_dealt(&self) -> bool {
        self.options().is_dealt()
    }

    /// What one preparation and one inference will take.
    pub fn forecast(&self) -> Forecast {
        let linear: Vec<LinearForecast> = self
            .linear()
            .iter()
            .map(|layer| {
                let (operation, dealt) = (self.operation(layer.operation), self.is_dealt());
                let cost = if dealt { privet_channel::Cost::default() } else { layer.plan.cost() };
                let layout = match dealt {
                    true => format!("{} elements dealt", layer.plan.output_len()),
                    false => layer.plan.to_string(),
                };
                let encrypted = |count: usize| if dealt { 0 } else { count as u64 };
                LinearForecast {
                    name: operation.name.clone(),
                    operator: operation.operator.name().to_owned(),
                    layout,
                    ciphertexts: layer.plan.ciphertexts().map(encrypted),
                    products: encrypted(layer.plan.products()),
                    bytes_client: cost.bytes_sent,
                    bytes_server: cost.bytes_received,
                }
            })
            .collect();
        let online = self.online_cost();
        let demand = online.demand;
        // The first chunk is made last; then those for products, of which each but the first follows an exchange.
        let mut chunks: Vec<Demand> = self.stored_chunks().iter().map(|chunk| chunk.demand).collect();
        chunks.rotate_left(1);
        let first = (0, chunks.len() - 1);
        let mut products = elements::demands(self).into_iter();
        chunks.extend(products.next());
        let demands: Vec<Vec<Demand>> = [chunks].into_iter().chain(products.map(|demand| vec![demand])).collect();
        let prepared = &linear[..self.prepared_linear().len()];
        let linear_client: u64 = prepared.iter().map(|layer| layer.bytes_client).sum();
        let linear_server: u64 = prepared.iter().map(|layer| layer.bytes_server).sum();
        let (offline_rounds, [offline_client, offline_server]) = if self.is_dealt() {
            (1, [0, dealt::SERVER_BYTES])
        } else {
            let (extension, beside) = (self.extension(), prepare::beside(self, self.extension()));
            let ot = ot_cost::setup()
                + ot_cost::generate_beside(&demands, extension, Role::Client, Some(first), &beside)
                + elements::cost(self);
            let under_keys = self.encrypted();
            let key = if prepared.is_empty() { 0 } else { Encrypted::keys_bytes(&under_keys) };
            let matrices = making::matrices_cost(self);
            let bytes = [
                key + ot.bytes_sent + linear_client + matrices.bytes_sent,
                ot.bytes_received + linear_server + matrices.bytes_received,
            ];
            (ot.rounds + prepare::homomorphic_rounds(self), bytes)
        };
        let [dealer_client, dealer_server] = if self.is_dealt() { dealt::dealt_bytes(self) } else { [0, 0] };

        let threads = rayon::current_num_threads();
        Forecast {
            memory_bytes_client: self.client_memory(threads).peak(),
            memory_bytes_server: self.server_memory(&self.standard_workspaces(), threads).peak(),
            extension: (!self.is_dealt()).then(|| self.extension().name()),
            extensions: if self.is_dealt() { Vec::new() } else { extensions(&demands) },
            kept_bytes: self.kept_bytes(),
            offline_bytes_client: offline_client,
            offline_bytes_server: offline_server,
            dealer_bytes_client: dealer_client,
            dealer_bytes_server: dealer_server,
            offline_rounds,
            refill: self.options().is_one_shot().then(|| self.refill_forecast()),
            online_bytes_client: online.client_bytes,
            online_bytes_server: online.server_bytes,
            online_rounds: online.rounds,
            material_bytes_client: self.values_bytes(Role::Client) + self.correlated_bytes(Role::Client),
            material_bytes_server: self.values_bytes(Role::Server) + self.correlated_bytes(Role::Server),
            correlations: [
                ("private_ands", demand.private_ands),
                ("triples", demand.triples),
                ("paired_triples", demand.paired_triples),
                ("products_sent_by_server", demand.products_sent_by_server.total()),
                ("products_sent_by_client", demand.products_sent_by_client.total()),
            ]
            .into_iter()
            .chain(tables(&demand))
            .chain(one_hots(&demand))
            .collect(),
            linear: linear.into_iter().chain(making::forecasts(self)).collect(),
        }
    }
}

fn tables(demand: &Demand) -> impl Iterator<Item = (&'static str, usize)> {
    let (server, client) = (demand.tables_sent_by_server, demand.tables_sent_by_client);
    [
        ("eights_sent_by_server", server.eights),
        ("eights_sent_by_client", client.eights),
        ("sixteens_sent_by_server", server.sixteens),
        ("sixteens_sent_by_client", client.sixteens),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
}

/// The one-hot vectors of a demand, by their lengths, where it has any.
fn one_hots(demand: &Demand) -> impl Iterator<Item = (&'static str, usize)> {
    const NAMES: [&str; 7] = [
        "one_hots_of_64",
        "one_hots_of_128",
        "one_hots_of_256",
        "one_hots_of_512",
        "one_hots_of_1024",
        "one_hots_of_2048",
        "one_hots_of_4096",
    ];
    NAMES.into_iter().zip(demand.one_hots.all().map(|(_, count)| count)).filter(|(_, count)| *count > 0)
}

fn extensions(demands: &[Vec<Demand>]) -> Vec<ExtensionForecast> {
    let all = demands.iter().flatten().copied().fold(Demand::NONE, Add::add);
    let forecast = |extension: Extension| {
        let cost = ot_cost::generate_in_chunks(demands, extension, Role::Client);
        ExtensionForecast {
            name: extension.name(),
            bytes_client: cost.bytes_sent,
            bytes_server: cost.bytes_received,
            rounds: cost.rounds,
            core_seconds: extension.core_seconds(&all),
        }
    };
    Extension::ALL.into_iter().map(forecast).collect()
}

impl Plan {
    /// Size of masks and shares, as they are stored.
    fn values_bytes(&self, role: Role) -> u64 {
        let packed = |ring: Modulus, len: usize| ring.packed_bytes(len) as u64;
        let masks: u64 = match role {
            Role::Client => self.masks().iter().map(|&len| packed(self.mask_ring(), len)).sum(),
            Role::Server => 0,
        };
        let layers = self.prepared_linear().iter();
        let shares: u64 = layers.map(|layer| packed(self.share_ring(layer), layer.plan.output_len())).sum();
        masks + shares + Triples::stored_bytes(self)
    }

    /// Size of a stored entry of suite `gmw`.
    pub(super) fn entry_bytes(&self, role: Role) -> u64 {
        self.values_bytes(role) + STOCK_HEADER_BYTES + self.correlated_bytes(role)
    }

    /// Size of what non-linear steps use up, as it is stored.
    pub(super) fn correlated_bytes(&self, role: Role) -> u64 {
        match self.options().suite {
            Suite::Gmw { .. } => stored_bytes(&self.stored_chunks()[0].demand, role) + self.later_bytes(role),
            Suite::Fss => 16 + self.keys.iter().map(|batches| keys::body_bytes(batches, role)).sum::<u64>(),
        }
    }
}

/// Size of a stored stock without its fixed header: packed bits, and ring elements in the bytes of their width.
pub(super) fn stored_bytes(demand: &Demand, role: Role) -> u64 {
    let bits = |count: usize| count.div_ceil(8);
    let sent = demand.products(role).all().map(|(width, count)| 2 * width.bytes() * count);
    let received = demand.products(role.peer()).all().map(|(width, count)| bits(count) + width.bytes() * count);
    let products: usize = sent.chain(received).sum();
    let triples = 3 * bits(demand.triples) + 5 * bits(demand.paired_triples);
    let tables: usize = Shape::ALL
        .into_iter()
        .map(|shape| {
            let [sent, received] = [role, role.peer()].map(|sender| bits(demand.tables(sender).count(shape)));
            shape.sent_bits() * sent + shape.received_bits() * received
        })
        .sum();
    let whole = 2 * bits(demand.private_ands) + triples + products + tables + demand.one_hots.stored_bytes();
    whole as u64
}
