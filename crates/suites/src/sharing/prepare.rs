//! The offline job: linear layers and products of matrices on random masks under BFV, and correlations from OT.
//!
//! The parties make correlations, and by some of them products of single masks; the client then sends its public keys and the
//! encrypted masks of all layers and products before it reads the first reply. So the whole job takes a handful of rounds, whatever
//! the depth of the model. In the one-shot mode it is the correlations alone.

use std::sync::Arc;

use privet_channel::Channel;
use privet_ot::{BaseOts, Extension, OtParty, Role, Stock};
use privet_prg::Prg;
use privet_ring::Modulus;

use super::encrypted::{ClientKeys, ServerKeys};
use super::{ClientMaterial, Correlated, Model, Plan, ServerMaterial, Triples, making};
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report};

/// The client's side; `base` says how oblivious transfers begin.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_client(
    channel: &mut Channel,
    plan: &Plan,
    base: &mut BaseOts,
    observer: &mut dyn Observer,
) -> Result<(ClientMaterial, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let total = 2 * plan.prepared_linear().len() + 2;
    let mut prg = Prg::from_os()?;
    let masks: Vec<Vec<u64>> = plan.masks().iter().map(|&len| mask(&mut prg, len, plan)).collect();
    let mut triples = Triples::new(plan, prg.seed(), Vec::new());

    observer.progress(Phase::Offline, 0, total, "correlations");
    let (stock, elements) =
        correlations(channel, Role::Client, plan, (plan.extension(), base), &triples, &mut recorder)?;
    let keys = match plan.prepared_linear() {
        [] => None,
        [_, ..] => {
            observer.progress(Phase::Offline, 1, total, "keys");
            Some(
                recorder
                    .layer("keys", "bfv", channel, |channel| ClientKeys::send(channel, &plan.encrypted(), &mut prg))?,
            )
        }
    };
    for (done, layer) in plan.prepared_linear().iter().enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, done + 2, total, &operation.name);
        recorder.layer(&operation.name, "encrypt", channel, |channel| {
            let keys = keys.as_ref().expect("there are linear layers");
            keys.encrypt(channel, &layer.plan, layer.mask_in(&masks), plan.options().guard_bits(), &mut prg)
        })?;
    }
    let product_keys = making::encrypt(channel, plan, &triples, &mut prg, &mut recorder)?;
    let mut shares = Vec::with_capacity(plan.prepared_linear().len());
    for (done, layer) in plan.prepared_linear().iter().enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, plan.prepared_linear().len() + 2 + done, total, &operation.name);
        shares.push(recorder.layer(&operation.name, "decrypt", channel, |channel| {
            let keys = keys.as_ref().expect("there are linear layers");
            keys.decrypt(channel, &layer.plan)
        })?);
    }
    let matrices = making::decrypt(channel, plan, &triples, product_keys.as_ref(), &mut recorder)?;
    triples.shares = making::in_order(plan, elements, matrices);
    observer.progress(Phase::Offline, total, total, "");
    let correlated = Correlated::Stock(Box::new(stock));
    Ok((ClientMaterial { masks, shares, triples, correlated }, recorder.finish(channel)))
}

/// The server's side, with the OT extension that the client chose.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_server(
    channel: &mut Channel,
    plan: &Plan,
    (extension, base): (Extension, &mut BaseOts),
    model: &Model,
    observer: &mut dyn Observer,
) -> Result<(ServerMaterial, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let total = plan.prepared_linear().len() + 1;
    let mut prg = Prg::from_os()?;
    let mut triples = Triples::new(plan, prg.seed(), Vec::new());

    observer.progress(Phase::Offline, 0, total, "correlations");
    let (stock, elements) = correlations(channel, Role::Server, plan, (extension, base), &triples, &mut recorder)?;
    let key = match plan.prepared_linear() {
        [] => None,
        [_, ..] => {
            Some(recorder.layer("keys", "bfv", channel, |channel| ServerKeys::receive(channel, &plan.encrypted()))?)
        }
    };
    let mut shares = Vec::with_capacity(plan.prepared_linear().len());
    let transformed = match plan.prepared_linear() {
        [] => Arc::default(),
        _ => model.transformed(plan)?,
    };
    for (done, (layer, weights)) in plan.prepared_linear().iter().zip(transformed.iter()).enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, done + 1, total, &operation.name);
        shares.push(recorder.layer(&operation.name, "evaluate", channel, |channel| {
            let key = key.as_ref().expect("there are linear layers");
            key.evaluate(channel, &layer.plan, weights, &mut prg)
        })?);
    }
    let matrices = making::evaluate(channel, plan, &triples, &mut prg, &mut recorder)?;
    triples.shares = making::in_order(plan, elements, matrices);
    channel.flush()?;
    observer.progress(Phase::Offline, total, total, "");
    let correlated = Correlated::Stock(Box::new(stock));
    Ok((ServerMaterial { shares, triples, correlated }, recorder.finish(channel)))
}

/// Correlations for the online job, and this party's parts of products of single masks.
fn correlations(
    channel: &mut Channel,
    role: Role,
    plan: &Plan,
    (extension, base): (Extension, &mut BaseOts),
    masks: &Triples,
    recorder: &mut Recorder,
) -> Result<(Stock, Vec<Vec<u64>>), Error> {
    let (mut party, stock) = recorder.layer("correlations", "ot", channel, |channel| {
        let mut party = OtParty::setup_from(channel, role, extension, base)?;
        let stock = Stock::generate(&mut party, channel, &plan.online_cost().demand)?;
        Ok::<_, Error>((party, stock))
    })?;
    if making::demands(plan).is_empty() {
        return Ok((stock, Vec::new()));
    }
    let elements = recorder
        .layer("products", "ot", channel, |channel| making::multiply_elements(&mut party, channel, plan, masks))?;
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
