//! Linear layers online, for clients that do not prepare them: the one-shot mode (SecONNds, Section 6; Cheetah's layers).
//!
//! Where the other modes pay `W r` ahead of time for a random `r`, here the client encrypts its own share `x_C` of the
//! layer's input when the input is there; the server computes `W x_C` under BFV, masks it as ever, and adds `W x_S` and the
//! bias to its share in the clear. SecONNds has the server add `x_S` to the ciphertext, which gives the same shares for a
//! larger product. One round a layer, and the bytes of [`privet_linear::Plan::cost`].
//!
//! Threat model: as for `W r`. The server sees ciphertexts under the client's key, the client replies behind uniform masks;
//! neither argument asks for a uniform `r` (`docs/reference/protocols/bfv.md`).

use std::cell::Cell;
use std::sync::Arc;

use privet_channel::Channel;
use privet_gmw::cost::Cost;
use privet_linear::INFERENCES_PER_KEY;
use privet_prg::Prg;
use privet_program::Weights;

use super::encrypted::{ClientKeys, ServerKeys};
use super::plan::LinearLayer;
use super::{Encrypted, Model, Plan, Transformed};
use crate::Error;

/// Traffic of all layers, and of the public key that goes before the first inference of a session.
pub(super) fn cost(linear: &[LinearLayer]) -> Cost {
    let key = Encrypted::keys_bytes(&linear.iter().map(|layer| &layer.plan).collect::<Vec<_>>());
    let layers = linear.iter().map(|layer| layer.plan.cost());
    let layer = |cost: privet_channel::Cost| Cost {
        client_bytes: cost.bytes_sent,
        server_bytes: cost.bytes_received,
        ..Cost::default()
    };
    layers.map(layer).sum::<Cost>() + Cost { client_bytes: key, ..Cost::default() }
}

/// The client's keys for linear layers online, which live as long as its session, or until they have served as many inferences as
/// a key may ([`INFERENCES_PER_KEY`]); then it makes others.
#[derive(Default)]
pub struct SessionKeys(Option<ClientKeys>, Uses);

/// What the server keeps of them.
#[derive(Default)]
pub struct SessionPublicKey(Option<ServerKeys>, Uses);

/// Inferences that a key has served.
#[derive(Default)]
struct Uses(Cell<u64>);

impl Uses {
    fn are_left(&self) -> bool {
        self.0.get() < INFERENCES_PER_KEY
    }

    fn count(&self) {
        self.0.set(self.0.get() + 1);
    }
}

impl SessionKeys {
    /// Whether keys for `plan` are still to be made and sent.
    pub(super) fn are_due(&self, plan: &Plan) -> bool {
        let first = plan.linear().first();
        first.is_some_and(|layer| !self.0.as_ref().is_some_and(|keys| keys.fit(&layer.plan) && self.1.are_left()))
    }

    /// Makes them and sends the public one.
    pub(super) fn send(&mut self, channel: &mut Channel, plan: &Plan) -> Result<(), Error> {
        if !plan.linear().is_empty() {
            *self = Self(Some(ClientKeys::send(channel, &plan.encrypted(), &mut Prg::from_os()?)?), Uses::default());
        }
        Ok(())
    }
}

impl SessionPublicKey {
    /// Whether a key for `plan` is still to come: the mirror of [`SessionKeys::are_due`].
    pub(super) fn is_due(&self, plan: &Plan) -> bool {
        let first = plan.linear().first();
        first.is_some_and(|layer| !self.0.as_ref().is_some_and(|key| key.fit(&layer.plan) && self.1.are_left()))
    }

    /// Takes it in.
    pub(super) fn receive(&mut self, channel: &mut Channel, plan: &Plan) -> Result<(), Error> {
        if !plan.linear().is_empty() {
            *self = Self(Some(ServerKeys::receive(channel, &plan.encrypted())?), Uses::default());
        }
        Ok(())
    }
}

/// The client's side of linear layers.
pub(super) struct ClientSide<'a> {
    keys: &'a SessionKeys,
    prg: Prg,
}

impl<'a> ClientSide<'a> {
    /// A side with randomness of its own, for one inference.
    pub(super) fn new(keys: &'a SessionKeys) -> Result<Self, Error> {
        let prg = Prg::from_os()?;
        keys.1.count();
        Ok(Self { keys, prg })
    }

    /// The client's share of `W x`, given its `share` of x.
    pub(super) fn product(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        layer: &LinearLayer,
        share: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let keys = self.keys.0.as_ref().expect("keys were sent");
        keys.encrypt(channel, &layer.plan, share, plan.options().guard_bits(), &mut self.prg)?;
        keys.decrypt(channel, &layer.plan)
    }
}

/// The server's side of linear layers.
pub(super) struct ServerSide<'a> {
    key: &'a SessionPublicKey,
    model: &'a Model,
    transformed: Arc<[Transformed]>,
    prg: Prg,
}

impl<'a> ServerSide<'a> {
    /// A side with randomness of its own, for one inference.
    pub(super) fn new(
        key: &'a SessionPublicKey,
        model: &'a Model,
        transformed: Arc<[Transformed]>,
    ) -> Result<Self, Error> {
        let prg = Prg::from_os()?;
        key.1.count();
        Ok(Self { key, model, transformed, prg })
    }

    /// The weights in the clear.
    pub(super) fn weights(&self) -> &Weights {
        self.model.weights()
    }

    /// The server's share of `W x` and the bias, given its `share` of x; `position`: the layer's place among all.
    pub(super) fn product(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        position: usize,
        share: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (layer, key) = (&plan.linear()[position], self.key.0.as_ref().expect("a key was received"));
        // The client encrypts meanwhile.
        let local = layer.map(plan.program()).affine(share, self.model.weights(), plan.mask_ring());
        let cross = key.evaluate(channel, &layer.plan, &self.transformed[position], &mut self.prg)?;
        channel.flush()?;
        let (ring, guard) = (plan.product_ring(), plan.options().guard_bits());
        Ok(local.iter().zip(cross).map(|(local, share)| ring.reduce((local << guard).wrapping_add(share))).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;

    use privet_channel::pair;
    use privet_program::Program;

    use super::*;
    use crate::sharing::{Options, Truncation};

    const FIXTURE: &str = "tests/fixtures/choice";

    fn read(name: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE).join(name)).expect("a fixture")
    }

    fn plan_of_choice() -> Plan {
        let program = Program::parse(&read("program.json")).expect("a program");
        let options = Options::one_shot().find(|options| options.truncation == Truncation::OneBit).expect("options");
        Plan::new(program, options).expect("a plan")
    }

    /// The shares of the first layer's product in the program `choice`, of the client's share 0 and the server's 0.
    fn products(session: &mut (SessionKeys, SessionPublicKey)) -> [Vec<u64>; 2] {
        let plan = plan_of_choice();
        let weights = Weights::parse(&read("weights.safetensors"), plan.program()).expect("its weights");
        let model = Model::new(weights, plan.standard_workspaces());
        let zeros = vec![0; plan.linear()[0].plan.input_len()];
        let ((mut near, mut far), (keys, key)) = (pair(), session);
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                if key.is_due(&plan) {
                    key.receive(&mut far, &plan).expect("a key");
                }
                let transformed = model.transformed(&plan).expect("weights");
                let mut server = ServerSide::new(key, &model, transformed).expect("entropy");
                server.product(&mut far, &plan, 0, &zeros).expect("a product")
            });
            if keys.are_due(&plan) {
                keys.send(&mut near, &plan).expect("a key");
            }
            let mut client = ClientSide::new(keys).expect("entropy");
            let client_share = client.product(&mut near, &plan, &plan.linear()[0], &zeros).expect("a product");
            [client_share, serving.join().expect("the server")]
        })
    }

    #[test]
    fn no_share_of_a_product_comes_twice() {
        let mut session = Default::default();
        let [one, other] = [(); 2].map(|()| products(&mut session));
        for (one, other) in one.iter().zip(&other) {
            assert!(one.iter().zip(other).all(|(one, other)| one != other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn a_key_that_has_served_is_replaced_by_both_at_once() {
        let mut session = Default::default();
        products(&mut session);
        let plan = plan_of_choice();
        let (keys, key) = &mut session;
        // The control: with an inference left neither asks for another.
        for uses in [&keys.1, &key.1] {
            assert_eq!(uses.0.get(), 1);
            uses.0.set(INFERENCES_PER_KEY - 1);
        }
        assert!(!keys.are_due(&plan) && !key.is_due(&plan));
        products(&mut session);
        let (keys, key) = &mut session;
        assert!(keys.are_due(&plan) && key.is_due(&plan));
        products(&mut session);
        assert_eq!((session.0.1.0.get(), session.1.1.0.get()), (1, 1));
    }

    #[test]
    fn every_session_has_keys_of_its_own_and_keeps_them() {
        let mut sessions = [(); 2].map(|()| <(SessionKeys, SessionPublicKey)>::default());
        let publics: Vec<Vec<u8>> = sessions
            .iter_mut()
            .map(|session| {
                let (mut near, mut far) = pair();
                let plan = plan_of_choice();
                assert!(session.0.are_due(&plan) && session.1.is_due(&plan));
                session.0.send(&mut near, &plan).expect("a key");
                near.flush().expect("a link");
                assert!(!session.0.are_due(&plan));
                let Encrypted::Ring(layer) = &plan.linear()[0].plan else { panic!("one-shot layers are in the ring") };
                far.recv(layer.parameters().public_key_bytes()).expect("a key")
            })
            .collect();
        assert!(publics[0].as_chunks::<16>().0.iter().zip(publics[1].as_chunks().0).all(|(one, other)| one != other));
    }
}
