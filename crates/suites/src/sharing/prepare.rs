//! The offline job: linear layers and products of matrices on random masks under BFV, and correlations from OT.
//!
//! The parties make correlations, and by some of them products of single masks; the client then sends its public keys and the
//! encrypted masks of all layers and products before it reads the first reply, as far as [`AHEAD`] lets it. So the whole job takes a
//! handful of rounds, whatever the depth of the model. In the one-shot mode it is the correlations alone.

use std::io::Write;
use std::sync::Arc;

use privet_channel::{Channel, Cost};
use privet_ot::{BaseOts, Extension, OtParty, Role, Stock};
use privet_prg::Prg;
use privet_ring::Modulus;

use super::elements::{Elements, Factors};
use super::encrypted::{ClientKeys, ServerKeys};
use super::material::unwritten;
use super::plan::LinearLayer;
use super::{Correlated, Encrypted, KeptClient, KeptServer, Material, Model, Plan, Triples, elements, making};
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report};

/// Bytes, of both directions, that may be on their way while the client sends ahead of what it opens: what is not read yet waits in
/// the memory of either party.
pub(super) const AHEAD: u64 = 256 << 20;

/// What the client does next with a layer, or a product of matrices behind all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Sends its mask.
    Encrypt(usize),
    /// Opens the replies.
    Decrypt(usize),
}

/// The client's turns for layers and products that cost so much each: all are sent ahead, as far as `ahead` bytes reach.
fn turns(costs: &[Cost], ahead: u64) -> Vec<Turn> {
    let bytes = |at: usize| costs[at].bytes_sent + costs[at].bytes_received;
    let (mut turns, mut opened, mut under_way) = (Vec::with_capacity(2 * costs.len()), 0, 0);
    for at in 0..costs.len() {
        while opened < at && under_way + bytes(at) > ahead {
            turns.push(Turn::Decrypt(opened));
            under_way -= bytes(opened);
            opened += 1;
        }
        turns.push(Turn::Encrypt(at));
        under_way += bytes(at);
    }
    turns.extend((opened..costs.len()).map(Turn::Decrypt));
    turns
}

/// What layers under BFV take, and then products of matrices.
fn homomorphic_costs(plan: &Plan) -> Vec<Cost> {
    let layers = plan.encrypted_linear().map(|layer| layer.plan.cost());
    layers.chain(plan.matrices().map(privet_linear::Triples::cost)).collect()
}

/// How often the client turns from sending masks to opening replies.
pub(super) fn homomorphic_rounds(plan: &Plan) -> u64 {
    let costs = homomorphic_costs(plan);
    let mut turns = turns(&costs, plan.ahead);
    // The replies to kept weights are the client's: it opens none.
    turns.retain(|turn| match *turn {
        Turn::Encrypt(at) => costs[at].bytes_sent > 0,
        Turn::Decrypt(at) => costs[at].bytes_received > 0,
    });
    turns.windows(2).filter(|pair| matches!(pair, [Turn::Encrypt(_), Turn::Decrypt(_)])).count() as u64
}

/// The client's side; `base` says how oblivious transfers begin, `kept` has the weights that a plan wants kept, and what comes before the
/// material's head goes to `entry`.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_client(
    channel: &mut Channel,
    plan: &Plan,
    base: &mut BaseOts,
    mut kept: Option<KeptClient>,
    entry: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<(Material, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let layers: Vec<&LinearLayer> = plan.encrypted_linear().collect();
    let turns = turns(&homomorphic_costs(plan), plan.ahead);
    let total = turns.len() + 2;
    let mut prg = Prg::from_os()?;
    let masks: Vec<Vec<u64>> = plan.masks().iter().map(|&len| mask(&mut prg, len, plan)).collect();
    let mut triples = Triples::new(plan, prg.seed(), Vec::new());

    observer.progress(Phase::Offline, 0, total, "correlations");
    let operands = (&triples, Factors::Masks(&masks));
    let (stock, elements) =
        correlations(channel, Role::Client, plan, (plan.extension(), base), operands, entry, &mut recorder)?;
    let under_keys = plan.encrypted();
    let keys = match (layers.as_slice(), under_keys.as_slice()) {
        ([], _) | (_, []) => None,
        _ => {
            observer.progress(Phase::Offline, 1, total, "keys");
            Some(recorder.layer("keys", "bfv", channel, |channel| ClientKeys::send(channel, &under_keys, &mut prg))?)
        }
    };
    let mut products = making::Client::new(plan, &triples);
    let mut shares = Vec::with_capacity(layers.len());
    for (index, turn) in turns.into_iter().enumerate() {
        let (Turn::Encrypt(at) | Turn::Decrypt(at)) = turn;
        let operation = match layers.get(at) {
            Some(layer) => plan.operation(layer.operation),
            None => products.operation(at - layers.len()),
        };
        observer.progress(Phase::Offline, index + 2, total, &operation.name);
        if let Some(Encrypted::Kept(layer)) = layers.get(at).map(|layer| &layer.plan) {
            let kept = kept.as_mut().ok_or_else(no_weights)?;
            match turn {
                Turn::Encrypt(_) => recorder.layer(&operation.name, "multiply", channel, |channel| {
                    kept.multiply(channel, plan, (at, layer), layers[at].mask_in(&masks), &mut prg)
                })?,
                Turn::Decrypt(_) => shares.push(kept.take(at)),
            }
            continue;
        }
        match (turn, layers.get(at), &keys) {
            (Turn::Encrypt(_), Some(layer), Some(keys)) => {
                recorder.layer(&operation.name, "encrypt", channel, |channel| {
                    let r = layer.mask_in(&masks);
                    keys.encrypt(channel, &layer.plan, r, plan.options().guard_bits(), &mut prg)
                })?;
            }
            (Turn::Decrypt(_), Some(layer), Some(keys)) => {
                shares.push(
                    recorder
                        .layer(&operation.name, "decrypt", channel, |channel| keys.decrypt(channel, &layer.plan))?,
                )
            }
            (Turn::Encrypt(_), ..) => products.encrypt(at - layers.len(), channel, &mut prg, &mut recorder)?,
            (Turn::Decrypt(_), ..) => products.decrypt(at - layers.len(), channel, &mut recorder)?,
        }
    }
    let matrices = products.finish();
    triples.shares = making::in_order(plan, elements.products, matrices);
    let shares = in_order(plan, shares, elements.layers);
    observer.progress(Phase::Offline, total, total, "");
    let correlated = Correlated::Stock(Box::new(stock), None);
    Ok((Material { masks, shares, triples, correlated }, recorder.finish(channel)))
}

fn no_weights() -> Error {
    Error::Misuse("this plan wants encrypted weights at the client, and there are none".into())
}

/// The server's side, with the OT extension that the client chose; `kept` has the key to weights that the client keeps.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_server(
    channel: &mut Channel,
    plan: &Plan,
    (extension, base): (Extension, &mut BaseOts),
    model: &Model,
    mut kept: Option<KeptServer>,
    entry: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<(Material, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let layers = plan.encrypted_linear().count();
    let total = layers + 1;
    let mut prg = Prg::from_os()?;
    let mut triples = Triples::new(plan, prg.seed(), Vec::new());

    if layers > 0 {
        // Weights in another form give way before correlations take their memory.
        drop(model.transformed(plan)?);
    }
    observer.progress(Phase::Offline, 0, total, "correlations");
    let operands = (&triples, Factors::Weights(model.weights()));
    let (stock, elements) =
        correlations(channel, Role::Server, plan, (extension, base), operands, entry, &mut recorder)?;
    let under_keys = plan.encrypted();
    let key = match (layers, under_keys.as_slice()) {
        (0, _) | (_, []) => None,
        _ => Some(recorder.layer("keys", "bfv", channel, |channel| ServerKeys::receive(channel, &under_keys))?),
    };
    let transformed = if layers == 0 { Arc::default() } else { model.transformed(plan)? };
    let mut shares = Vec::with_capacity(layers);
    let weighted = plan.prepared_linear().iter().zip(transformed.iter());
    for (at, (layer, weights)) in weighted.filter(|(layer, _)| layer.plan.is_encrypted()).enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, at + 1, total, &operation.name);
        if let Encrypted::Kept(layer) = &layer.plan {
            let kept = kept.as_mut().ok_or_else(no_weights)?;
            shares.push(
                recorder.layer(&operation.name, "open", channel, |channel| kept.share(channel, plan, (at, layer)))?,
            );
            continue;
        }
        shares.push(recorder.layer(&operation.name, "evaluate", channel, |channel| {
            let key = key.as_ref().expect("there are linear layers");
            key.evaluate(channel, &layer.plan, weights, &mut prg)
        })?);
    }
    let matrices = making::evaluate(channel, plan, &triples, &mut prg, &mut recorder)?;
    triples.shares = making::in_order(plan, elements.products, matrices);
    let shares = in_order(plan, shares, elements.layers);
    channel.flush()?;
    observer.progress(Phase::Offline, total, total, "");
    let correlated = Correlated::Stock(Box::new(stock), None);
    Ok((Material { masks: Vec::new(), shares, triples, correlated }, recorder.finish(channel)))
}

/// Shares of all prepared linear layers, of those under BFV and of those by OT.
fn in_order(plan: &Plan, encrypted: Vec<Vec<u64>>, chosen: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let (mut encrypted, mut chosen) = (encrypted.into_iter(), chosen.into_iter());
    let share = |layer: &LinearLayer| if layer.plan.is_encrypted() { encrypted.next() } else { chosen.next() };
    plan.prepared_linear().iter().map_while(share).collect()
}

/// Correlations for the first steps of the online job, and this party's parts of products of single masks. Those for later steps go to
/// `entry` first, chunk by chunk.
fn correlations(
    channel: &mut Channel,
    role: Role,
    plan: &Plan,
    (extension, base): (Extension, &mut BaseOts),
    (masks, factors): (&Triples, Factors<'_>),
    entry: &mut dyn Write,
    recorder: &mut Recorder,
) -> Result<(Stock, Elements), Error> {
    let (mut party, stock) = recorder.layer("correlations", "ot", channel, |channel| {
        let mut party = OtParty::setup_from(channel, role, extension, base)?;
        let (chunks, mut stock) = (plan.stored_chunks(), Stock::empty(role));
        for chunk in &chunks[1..] {
            stock = Stock::generate_in(stock, &mut party, channel, &chunk.demand)?;
            stock.write(entry).map_err(unwritten)?;
        }
        let stock = Stock::generate_in(stock, &mut party, channel, &chunks[0].demand)?;
        Ok::<_, Error>((party, stock))
    })?;
    if elements::demands(plan).is_empty() {
        return Ok((stock, Elements::default()));
    }
    let multiply = |channel: &mut Channel| elements::multiply(&mut party, channel, plan, masks, factors);
    let elements = recorder.layer("products", "ot", channel, multiply)?;
    Ok((stock, elements))
}

/// A uniform mask, in the ring or the field that values are opened in.
fn mask(prg: &mut Prg, len: usize, plan: &Plan) -> Vec<u64> {
    let Some(field) = plan.field() else {
        return uniform(prg, len, plan.mask_ring());
    };
    // Exactly uniform, whatever their number: a reduced word is not.
    (0..len).map(|_| prg.below(field.prime())).collect()
}

pub(crate) fn uniform(prg: &mut Prg, len: usize, ring: Modulus) -> Vec<u64> {
    let mut values = vec![0; len];
    prg.fill_words(&mut values);
    ring.reduce_all(&mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(mebibytes: &[u64]) -> Vec<Cost> {
        mebibytes.iter().map(|mb| Cost { bytes_sent: mb << 19, bytes_received: mb << 19, ..Cost::default() }).collect()
    }

    #[test]
    fn what_fits_is_sent_before_anything_is_opened() {
        use Turn::{Decrypt, Encrypt};
        assert_eq!(turns(&[], AHEAD), []);
        assert_eq!(turns(&costs(&[200, 56]), AHEAD), [Encrypt(0), Encrypt(1), Decrypt(0), Decrypt(1)]);
        let more = [Encrypt(0), Encrypt(1), Decrypt(0), Encrypt(2), Decrypt(1), Decrypt(2)];
        assert_eq!(turns(&costs(&[100, 100, 100]), AHEAD), more);
        // A layer beyond the bound goes alone.
        assert_eq!(turns(&costs(&[1, 999, 1]), AHEAD).len(), 6);
        assert_eq!(turns(&costs(&[1, 999, 1]), AHEAD)[..4], [Encrypt(0), Decrypt(0), Encrypt(1), Decrypt(1)]);
    }
}
