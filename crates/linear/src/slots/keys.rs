//! What the client sends once per session: a public key, and a key for each rotation of any layer.

use privet_bfv::slots::{Parameters, PublicKey, Rotations, SecretKey};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::error::{Error, Misuse};

use super::plan::{Plan, rotations_of};

/// The client's keys for all layers of a program. Made for one session and never stored.
pub struct ClientKeys {
    pub(super) secret: SecretKey,
}

/// What the server has of them.
pub struct ServerKeys {
    pub(super) public: PublicKey,
    pub(super) rotations: Rotations,
}

impl ClientKeys {
    /// Fresh keys.
    pub fn generate(parameters: &Parameters, prg: &mut Prg) -> Self {
        Self { secret: SecretKey::generate(parameters, prg) }
    }

    /// Sends a public key and the rotation keys of these layers: [`Plan::keys_cost`].
    ///
    /// # Errors
    /// Those of the channel.
    pub fn send(&self, channel: &mut Channel, plans: &[&Plan], prg: &mut Prg) -> Result<(), Error> {
        channel.send(&self.secret.public_key(prg))?;
        let work: Vec<_> = rotations_of(plans).into_iter().map(|rotation| (rotation, prg.seed())).collect();
        let make = |(rotation, seed): (_, Seed)| self.secret.rotation_key(rotation, &mut Prg::from_seed(&seed));
        let keys: Vec<Vec<u8>> = work.into_par_iter().map(make).collect();
        keys.iter().try_for_each(|key| Ok(channel.send(key)?))
    }

    pub(super) fn check(&self, plan: &Plan) -> Result<(), Error> {
        Ok(Misuse::check_plans("keys", self.secret.parameters().agrees_with(plan.parameters()))?)
    }
}

impl ServerKeys {
    /// The server's half of [`ClientKeys::send`].
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] for keys of the wrong length or form; those of the channel.
    pub fn receive(channel: &mut Channel, parameters: &Parameters, plans: &[&Plan]) -> Result<Self, Error> {
        let public = PublicKey::from_bytes(parameters, &channel.recv(parameters.ciphertext_bytes())?)?;
        let mut rotations = Rotations::new(parameters);
        for rotation in rotations_of(plans) {
            rotations.add(rotation, &channel.recv(parameters.rotation_key_bytes())?)?;
        }
        Ok(Self { public, rotations })
    }
}
