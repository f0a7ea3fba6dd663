//! The offline job: linear layers on random masks under BFV, and correlations from OT.
//!
//! The parties make correlations; the client then sends its public key and the encrypted masks of all layers before it
//! reads the first reply. So the whole job takes a handful of rounds, whatever the depth of the model. In the one-shot mode
//! it is the correlations alone.

use std::sync::Arc;

use privet_channel::Channel;
use privet_linear::ClientKeys;
use privet_ot::{Extension, OtParty, Role, Stock};
use privet_prg::Prg;
use privet_ring::Modulus;

use super::{ClientMaterial, Correlated, Model, Plan, ServerMaterial};
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report};

/// The client's side.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_client(
    channel: &mut Channel,
    plan: &Plan,
    observer: &mut dyn Observer,
) -> Result<(ClientMaterial, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let total = 2 * plan.prepared_linear().len() + 2;
    let mut prg = Prg::from_os()?;
    let ring = Modulus::new(plan.program().ring_bits());
    let masks: Vec<Vec<u64>> = plan.masks().iter().map(|&len| uniform(&mut prg, len, ring)).collect();

    observer.progress(Phase::Offline, 0, total, "correlations");
    let stock = recorder
        .layer("correlations", "ot", channel, |channel| correlations(channel, Role::Client, plan, plan.extension()))?;
    let keys = match plan.prepared_linear() {
        [] => None,
        [first, ..] => {
            observer.progress(Phase::Offline, 1, total, "keys");
            Some(recorder.layer("keys", "bfv", channel, |channel| {
                let keys = ClientKeys::generate(first.plan.parameters(), &mut prg);
                keys.send_public_key(channel, &mut prg)?;
                Ok::<_, Error>(keys)
            })?)
        }
    };
    for (done, layer) in plan.prepared_linear().iter().enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, done + 2, total, &operation.name);
        recorder.layer(&operation.name, "encrypt", channel, |channel| {
            let keys = keys.as_ref().expect("there are linear layers");
            let guard = plan.options().guard_bits();
            let raised: Vec<u64> = layer.mask_in(&masks).iter().map(|r| r << guard).collect();
            privet_linear::encrypt(channel, &layer.plan, keys, &raised, &mut prg)
        })?;
    }
    let mut shares = Vec::with_capacity(plan.prepared_linear().len());
    for (done, layer) in plan.prepared_linear().iter().enumerate() {
        let operation = plan.operation(layer.operation);
        observer.progress(Phase::Offline, plan.prepared_linear().len() + 2 + done, total, &operation.name);
        shares.push(recorder.layer(&operation.name, "decrypt", channel, |channel| {
            let keys = keys.as_ref().expect("there are linear layers");
            privet_linear::decrypt(channel, &layer.plan, keys)
        })?);
    }
    observer.progress(Phase::Offline, total, total, "");
    Ok((ClientMaterial { masks, shares, correlated: Correlated::Stock(Box::new(stock)) }, recorder.finish(channel)))
}

/// The server's side, with the OT extension that the client chose.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_server(
    channel: &mut Channel,
    plan: &Plan,
    extension: Extension,
    model: &Model,
    observer: &mut dyn Observer,
) -> Result<(ServerMaterial, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let total = plan.prepared_linear().len() + 1;
    let mut prg = Prg::from_os()?;

    observer.progress(Phase::Offline, 0, total, "correlations");
    let stock = recorder
        .layer("correlations", "ot", channel, |channel| correlations(channel, Role::Server, plan, extension))?;
    let key = match plan.prepared_linear() {
        [] => None,
        [first, ..] => Some(recorder.layer("keys", "bfv", channel, |channel| {
            privet_linear::receive_public_key(channel, first.plan.parameters())
        })?),
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
            privet_linear::evaluate(channel, &layer.plan, key, weights, &mut prg)
        })?);
    }
    channel.flush()?;
    observer.progress(Phase::Offline, total, total, "");
    Ok((ServerMaterial { shares, correlated: Correlated::Stock(Box::new(stock)) }, recorder.finish(channel)))
}

fn correlations(channel: &mut Channel, role: Role, plan: &Plan, extension: Extension) -> Result<Stock, Error> {
    let mut party = OtParty::setup(channel, role, extension)?;
    Ok(Stock::generate(&mut party, channel, &plan.online_cost().demand)?)
}

/// Uniform elements of a ring.
pub(crate) fn uniform(prg: &mut Prg, len: usize, ring: Modulus) -> Vec<u64> {
    let mut values = vec![0; len];
    prg.fill_words(&mut values);
    ring.reduce_all(&mut values);
    values
}
