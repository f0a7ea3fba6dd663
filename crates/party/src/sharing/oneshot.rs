//! Linear layers online, for clients that do not prepare them: the one-shot mode (SecONNds, Section 6; Cheetah's layers).
//!
//! Where the other modes pay `W r` ahead of time for a random `r`, here the client encrypts its own share `x_C` of the
//! layer's input when the input is there; the server computes `W x_C` under BFV, masks it as ever, and adds `W x_S` and the
//! bias to its share in the clear. SecONNds has the server add `x_S` to the ciphertext, which gives the same shares for a
//! larger product. One round a layer, and the bytes of [`privet_linear::Plan::cost`].
//!
//! Threat model: as for `W r`. The server sees ciphertexts under the client's key, the client replies behind uniform masks;
//! neither argument asks for a uniform `r` (`docs/protocols/bfv.md`).

use std::sync::Arc;

use privet_channel::Channel;
use privet_gmw::cost::Cost;
use privet_linear::{ClientKeys, PublicKey, TransformedWeights};
use privet_prg::Prg;

use super::plan::LinearLayer;
use super::{Model, Plan, evaluate};
use crate::Error;

/// Traffic of all layers, and of the public key that goes before the first inference of a session.
pub(super) fn cost(linear: &[LinearLayer]) -> Cost {
    let key = linear.first().map_or(0, |layer| layer.plan.public_key_cost().bytes_sent);
    let layers = linear.iter().map(|layer| layer.plan.cost());
    let layer = |cost: privet_channel::Cost| Cost {
        client_bytes: cost.bytes_sent,
        server_bytes: cost.bytes_received,
        ..Cost::default()
    };
    layers.map(layer).sum::<Cost>() + Cost { client_bytes: key, ..Cost::default() }
}

/// The client's keys for linear layers online, which live as long as its session.
#[derive(Default)]
pub struct SessionKeys(Option<ClientKeys>);

/// What the server keeps of them.
#[derive(Default)]
pub struct SessionPublicKey(Option<PublicKey>);

impl SessionKeys {
    /// Whether keys for `plan` are still to be made and sent.
    pub(super) fn are_due(&self, plan: &Plan) -> bool {
        let fit = |keys: &ClientKeys, layer: &LinearLayer| keys.parameters().agrees_with(layer.plan.parameters());
        plan.linear().first().is_some_and(|layer| !self.0.as_ref().is_some_and(|keys| fit(keys, layer)))
    }

    /// Makes them and sends the public one.
    pub(super) fn send(&mut self, channel: &mut Channel, plan: &Plan, prg: &mut Prg) -> Result<(), Error> {
        if let Some(layer) = plan.linear().first() {
            let keys = self.0.insert(ClientKeys::generate(layer.plan.parameters(), prg));
            keys.send_public_key(channel, prg)?;
        }
        Ok(())
    }
}

impl SessionPublicKey {
    /// Whether a key for `plan` is still to come: the mirror of [`SessionKeys::are_due`].
    pub(super) fn is_due(&self, plan: &Plan) -> bool {
        let fits = |key: &PublicKey, layer: &LinearLayer| key.parameters().agrees_with(layer.plan.parameters());
        plan.linear().first().is_some_and(|layer| !self.0.as_ref().is_some_and(|key| fits(key, layer)))
    }

    /// Takes it in.
    pub(super) fn receive(&mut self, channel: &mut Channel, plan: &Plan) -> Result<(), Error> {
        if let Some(layer) = plan.linear().first() {
            self.0 = Some(privet_linear::receive_public_key(channel, layer.plan.parameters())?);
        }
        Ok(())
    }
}

/// The client's side of linear layers.
pub(super) struct ClientSide<'a> {
    pub keys: &'a SessionKeys,
    pub prg: Prg,
}

impl ClientSide<'_> {
    /// The client's share of `W x`, given its `share` of x.
    pub(super) fn product(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layer: &LinearLayer,
        share: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let keys = self.keys.0.as_ref().expect("keys were sent");
        let raised: Vec<u64> = share.iter().map(|x| x << plan.options().guard_bits()).collect();
        privet_linear::encrypt(channel, &layer.plan, keys, &raised, &mut self.prg)?;
        Ok(privet_linear::decrypt(channel, &layer.plan, keys)?)
    }
}

/// The server's side of linear layers.
pub(super) struct ServerSide<'a> {
    pub key: &'a SessionPublicKey,
    pub model: &'a Model,
    pub transformed: Arc<[TransformedWeights]>,
    pub prg: Prg,
}

impl ServerSide<'_> {
    /// The server's share of `W x` and the bias, given its `share` of x; `position`: the layer's place among all.
    pub(super) fn product(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        position: usize,
        share: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (layer, key) = (&plan.linear()[position], self.key.0.as_ref().expect("a key was received"));
        let (program, operation) = (plan.program(), plan.operation(layer.operation));
        // The client encrypts meanwhile.
        let own = evaluate::linear(program, operation, share, self.model.weights());
        let theirs = privet_linear::evaluate(channel, &layer.plan, key, &self.transformed[position], &mut self.prg)?;
        channel.flush()?;
        let (ring, guard) = (plan.product_ring(), plan.options().guard_bits());
        Ok(own.iter().zip(theirs).map(|(own, share)| ring.reduce((own << guard).wrapping_add(share))).collect())
    }
}
