//! The offline job with a dealer: no ciphertext, no OT, no message between client and server.
//!
//! The dealer draws a seed for each party. From the client's come its masks `r`, its shares `s` and its correlations; the
//! server's correlations come from its own seed and the dealer's corrections ([`privet_ot::dealer`]). For `W r` the
//! server hides its weights once per model: the client holds `V = W - A`, and the server gives the dealer the seed of `A`
//! at each deal, so that the dealer keeps nothing. The dealer sends the server `A r - s`, the client computes
//! `V r + s`, and both together are `W r`, exactly.
//!
//! For a product of two values it sends the server `A B` less the client's part of it ([`super::triples`]).
//!
//! In suite `fss` keys take the place of correlations ([`super::keys`]); they follow, and go to the store as they come.

use std::io::Write;

use privet_channel::{Channel, HEADER_BYTES};
use privet_ot::{Role, Stock, dealer};
use privet_prg::{Prg, Seed};
use privet_program::Weights;
use privet_ring::Modulus;
use sha2::{Digest, Sha256};

use super::keys::{self, Keys};
use super::plan::LinearLayer;
use super::prepare::uniform;
use super::triples;
use super::{Correlated, Material, Plan, Suite, Triples};
use crate::bodies;
use crate::report::{Counterpart, Recorder};
use crate::{Error, MaterialId, Observer, Phase, Report};

/// Bytes of a seed's message.
const SEED_BYTES: usize = 16;

/// Bytes that the server sends the dealer: the seed of its mask.
pub(super) const SERVER_BYTES: u64 = (SEED_BYTES + HEADER_BYTES) as u64;

/// The server's secret `A` for all linear layers of a program.
pub struct WeightMask(Seed);

impl WeightMask {
    /// The mask that grows from `seed`.
    pub fn from_seed(seed: Seed) -> Self {
        Self(seed)
    }

    /// `W - A` of each linear layer, in the order of the plan: what the client holds.
    pub fn hide<'a>(&self, plan: &'a Plan, weights: &'a Weights) -> impl Iterator<Item = Vec<u64>> + 'a {
        let ring = ring(plan);
        plan.linear().iter().zip(self.layers(plan)).map(move |(layer, mut mask)| {
            let weights = weights.tensor(&layer.weight).iter();
            mask.iter_mut().zip(weights).for_each(|(a, &w)| *a = ring.reduce((w as u64).wrapping_sub(*a)));
            mask
        })
    }

    /// Tells this mask from others without telling anything of it.
    pub fn name(&self, program: &str) -> MaterialId {
        let digest =
            Sha256::new_with_prefix(b"privet weight mask").chain_update(program).chain_update(self.0.as_bytes());
        let mut name = [0; 16];
        name.copy_from_slice(&digest.finalize()[..16]);
        MaterialId::new(&name)
    }

    /// `A` of each linear layer.
    fn layers<'a>(&self, plan: &'a Plan) -> impl Iterator<Item = Vec<u64>> + 'a {
        let mut prg = Prg::from_seed(&self.0);
        plan.linear().iter().map(move |layer| {
            let mut layer_prg = Prg::from_seed(&prg.seed());
            uniform(&mut layer_prg, layer.plan.weights_len(), ring(plan))
        })
    }
}

/// What the client's seed decides.
struct ClientHalf {
    masks: Vec<Vec<u64>>,
    /// `s` of each linear layer.
    shares: Vec<Vec<u64>>,
    /// Its parts of the triples.
    triples: Triples,
    /// What correlations or keys grow from.
    correlations: Seed,
}

/// What the server's seed decides: the seed of its masks in triples, and what correlations or keys grow from.
fn server_half(seed: &Seed) -> [Seed; 2] {
    let mut prg = Prg::from_seed(seed);
    [prg.seed(), prg.seed()]
}

impl ClientHalf {
    fn expand(seed: &Seed, plan: &Plan) -> Self {
        let mut prg = Prg::from_seed(seed);
        let (mut masks, mut shares, correlations) =
            (Prg::from_seed(&prg.seed()), Prg::from_seed(&prg.seed()), prg.seed());
        let ring = ring(plan);
        let (triples, mut products) = (prg.seed(), Prg::from_seed(&prg.seed()));
        let mut product =
            |triple| uniform(&mut products, triples::output_len(plan, triple), triples::share_ring(plan, triple));
        Self {
            triples: Triples::new(plan, triples, plan.triples.iter().map(&mut product).collect()),
            masks: plan.masks().iter().map(|&len| uniform(&mut masks, len, ring)).collect(),
            shares: (plan.linear().iter())
                .map(|layer| uniform(&mut shares, layer.plan.output_len(), plan.share_ring(layer)))
                .collect(),
            correlations,
        }
    }
}

/// The client's side of a deal; `dealer` leads to the dealer, the bodies of keys go to `keys`. `weights`: `W - A` of the linear layer with
/// an index; it is asked for one layer at a time, in the order of the plan.
///
/// # Errors
/// If the link fails, the dealer misbehaves or the masked weights cannot be read; nothing made so far may then be used.
pub fn prepare_client(
    dealer: &mut Channel,
    plan: &Plan,
    weights: &mut dyn FnMut(usize) -> Result<Vec<u64>, Error>,
    keys: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<(Material, Report), Error> {
    let mut recorder = Recorder::start_with(Counterpart::Dealer, Phase::Offline, dealer);
    let total = plan.linear().len() + plan.keys.len() + 1;
    observer.progress(Phase::Offline, 0, total, "correlations");
    let seed = recorder.layer("correlations", "deal", dealer, receive_seed)?;
    let ClientHalf { masks, mut shares, triples, correlations } = ClientHalf::expand(&seed, plan);
    for (index, layer) in plan.linear().iter().enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, index + 1, total, &operation.name);
        recorder.layer(&operation.name, "multiply", dealer, |_| {
            let product = multiply(plan, layer, layer.mask_in(&masks), weights(index)?);
            add(&mut shares[index], &product, plan.share_ring(layer));
            Ok::<_, Error>(())
        })?;
    }
    let correlated = match plan.options().suite {
        Suite::Gmw { .. } => {
            Correlated::Stock(Box::new(Stock::of_client(&plan.online_cost().demand, &correlations)), None)
        }
        Suite::Fss => Correlated::Keys(Keys::put_aside(correlations)),
    };
    receive_keys(dealer, plan, Role::Client, keys, &mut recorder, observer)?;
    Ok((Material { masks, shares, triples, correlated }, recorder.finish(dealer)))
}

/// The keys of every step, to be written to `keys`; the last part of a deal.
fn receive_keys(
    dealer: &mut Channel,
    plan: &Plan,
    role: Role,
    keys: &mut dyn Write,
    recorder: &mut Recorder,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    let (before, steps) = (plan.linear().len() + 1, plan.steps().len());
    for (index, (step, batches)) in plan.steps().iter().zip(&plan.keys).enumerate() {
        if batches.is_empty() {
            continue;
        }
        let (name, operator) = plan.describe(step);
        observer.progress(Phase::Offline, before + index, before + steps, name);
        recorder
            .layer(name, operator, dealer, |dealer| bodies::receive(dealer, keys::body_bytes(batches, role), keys))?;
    }
    observer.progress(Phase::Offline, before + steps, before + steps, "");
    Ok(())
}

/// The server's side of a deal; `dealer` leads to the dealer, the bodies of keys go to `keys`.
///
/// # Errors
/// If the link fails or the dealer misbehaves; nothing made so far may then be used.
pub fn prepare_server(
    dealer: &mut Channel,
    plan: &Plan,
    mask: &WeightMask,
    keys: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<(Material, Report), Error> {
    let mut recorder = Recorder::start_with(Counterpart::Dealer, Phase::Offline, dealer);
    let total = plan.linear().len() + plan.keys.len() + 1;
    let (demand, ring) = (plan.online_cost().demand, ring(plan));
    observer.progress(Phase::Offline, 0, total, "correlations");
    let (triples, correlated) = recorder.layer("correlations", "deal", dealer, |dealer| {
        dealer.send(mask.0.as_bytes())?;
        let [triples, seed] = server_half(&receive_seed(dealer)?);
        if plan.options().suite == Suite::Fss {
            return Ok::<_, Error>((triples, Correlated::Keys(Keys::put_aside(seed))));
        }
        let corrections = dealer.recv(dealer::corrections_bytes(&demand, ring))?;
        Ok((triples, Correlated::Stock(Box::new(Stock::of_server(&demand, &seed, &corrections, ring)?), None)))
    })?;
    let mut shares = Vec::with_capacity(plan.linear().len());
    for (index, layer) in plan.linear().iter().enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, index + 1, total, &operation.name);
        let receive = |dealer: &mut Channel| receive_values(dealer, layer.plan.output_len(), plan.share_ring(layer));
        shares.push(recorder.layer(&operation.name, "deal", dealer, receive)?);
    }
    let mut products = Vec::with_capacity(plan.triples.len());
    for triple in &plan.triples {
        let (len, ring) = (triples::output_len(plan, triple), triples::share_ring(plan, triple));
        let receive = |dealer: &mut Channel| receive_values(dealer, len, ring);
        products.push(recorder.layer(&plan.operation(triple.operation).name, "deal", dealer, receive)?);
    }
    let triples = Triples::new(plan, triples, products);
    receive_keys(dealer, plan, Role::Server, keys, &mut recorder, observer)?;
    Ok((Material { masks: Vec::new(), shares, triples, correlated }, recorder.finish(dealer)))
}

/// A vector of the ring from the dealer.
fn receive_values(dealer: &mut Channel, len: usize, ring: Modulus) -> Result<Vec<u64>, Error> {
    Ok(ring.unpack(&dealer.recv(ring.packed_bytes(len))?, len).map_err(crate::PeerMisbehaved::from)?)
}

/// The dealer's side: material for one inference of `plan`. Nothing of it is kept.
///
/// # Errors
/// If a link fails or a party misbehaves; what it received so far must then not be used.
pub fn deal(client: &mut Channel, server: &mut Channel, plan: &Plan) -> Result<(), Error> {
    let (demand, ring) = (plan.online_cost().demand, ring(plan));
    let mut prg = Prg::from_os()?;
    let (client_seed, server_seed) = (prg.seed(), prg.seed());
    client.send(client_seed.as_bytes())?;
    client.flush()?;

    let mask = WeightMask(receive_seed(server)?);
    let ClientHalf { masks, shares, triples, correlations } = ClientHalf::expand(&client_seed, plan);
    server.send(server_seed.as_bytes())?;
    let [server_masks, server_seed] = server_half(&server_seed);
    if plan.options().suite != Suite::Fss {
        server.send(&dealer::corrections(&demand, &correlations, &server_seed, ring))?;
    }
    for ((layer, weights), share) in plan.linear().iter().zip(mask.layers(plan)).zip(&shares) {
        let product = multiply(plan, layer, layer.mask_in(&masks), weights);
        let ring = plan.share_ring(layer);
        server.send(&ring.pack(&ring.sub(&product, share)))?;
    }
    let server_triples = Triples::new(plan, server_masks, Vec::new());
    for (triple, share) in plan.triples.iter().zip(&triples.shares) {
        let correction = triples::correction(plan, triple, [&triples, &server_triples], share);
        server.send(&triples::share_ring(plan, triple).pack(&correction))?;
    }
    let mut generators = [correlations, server_seed].each_ref().map(Prg::from_seed);
    bodies::send([&mut *client, &mut *server], |bodies| {
        plan.keys.iter().try_for_each(|batches| keys::deal(batches, bodies, &mut generators))
    })?;
    client.flush()?;
    Ok(server.flush()?)
}

/// Bytes that a dealer sends to the client and to the server for one inference, frames included.
pub fn dealt_bytes(plan: &Plan) -> [u64; 2] {
    let ring = ring(plan);
    let product = |triple| (triples::share_ring(plan, triple), triples::output_len(plan, triple));
    let shares = plan.linear().iter().map(|layer| (plan.share_ring(layer), layer.plan.output_len()));
    let shares = shares.chain(plan.triples.iter().map(product));
    let shares = shares.map(|(ring, len)| ring.packed_bytes(len) + HEADER_BYTES);
    let corrections = match plan.options().suite {
        Suite::Gmw { .. } => dealer::corrections_bytes(&plan.online_cost().demand, ring) + HEADER_BYTES,
        Suite::Fss => 0,
    };
    let seed = (SEED_BYTES + HEADER_BYTES) as u64;
    let keys = |role| plan.keys.iter().map(|batches| bodies::wire_bytes(keys::body_bytes(batches, role))).sum::<u64>();
    [seed + keys(Role::Client), seed + (corrections + shares.sum::<usize>()) as u64 + keys(Role::Server)]
}

fn ring(plan: &Plan) -> Modulus {
    Modulus::new(plan.program().ring_bits())
}

fn receive_seed(channel: &mut Channel) -> Result<Seed, Error> {
    let mut seed = [0; SEED_BYTES];
    channel.recv_into(&mut seed)?;
    Ok(Seed::from_bytes(seed))
}

/// A layer's product with weights modulo the ring; only the low bits of the result count.
fn multiply(plan: &Plan, layer: &LinearLayer, x: &[u64], weights: Vec<u64>) -> Vec<u64> {
    // In place: the weights of a layer may be the largest thing in memory.
    let weights: Vec<i64> = weights.into_iter().map(|weight| weight as i64).collect();
    let mut product = layer.map(plan.program()).apply(x, &weights, ring(plan));
    ring(plan).reduce_all(&mut product);
    product
}

fn add(sum: &mut [u64], other: &[u64], ring: Modulus) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum = ring.reduce(sum.wrapping_add(*other)));
}
