//! The suites on additive shares: `gmw` and `fss`.
//!
//! Linear layers are paid offline on random masks (Delphi's split), by BFV or by a dealer. The rest runs online: in `gmw` by
//! Boolean sharing (SecONNds), in `fss` by evaluating a dealer's keys (Orca, SIGMA).
//!
//! [`Plan`] turns a program into steps that both parties derive alike from its public half; [`prepare`] makes the
//! [`Material`] that the steps will consume, [`infer`] runs them.
//!
//! Threat model: semi-honest parties; where there is a dealer, it colludes with neither. See `docs/reference/protocols/gmw.md` and
//! `docs/reference/protocols/fss.md`.

mod conversion;
mod dealt;
mod elements;
mod encrypted;
mod forecast;
mod infer;
mod kept;
mod keys;
mod making;
mod material;
mod memory;
mod oneshot;
mod ops;
mod options;
mod party;
mod plan;
mod planner;
mod prepare;
mod refill;
mod security;
mod state;
mod suite;
mod triples;
pub(crate) mod weights;

pub use dealt::{WeightMask, deal, dealt_bytes};
pub use dealt::{prepare_client as prepare_client_dealt, prepare_server as prepare_server_dealt};
pub use encrypted::{Encrypted, Transformed};
pub use infer::{Kept, Stocked, infer_client, infer_client_online, infer_server, infer_server_online};
pub use kept::{KeptClient, KeptServer};
pub use keys::Keys;
pub use material::{Correlated, Material};
pub use oneshot::{SessionKeys, SessionPublicKey};
pub(crate) use ops::computes;
pub use options::{Arithmetic, Encrypts, Linear, Maker, Options, Suite};
pub use plan::{Plan, Step};
pub(crate) use prepare::uniform;
pub use prepare::{prepare_client, prepare_server};
pub use privet_gmw::{Rounds, Truncation};
pub use privet_linear::Keep;
pub use triples::Triples;
pub use weights::{load, load_keeping, load_within, warm};

use std::sync::{Arc, Mutex, PoisonError};

use privet_linear::{Saving, Workspace};
use privet_program::Weights;
use privet_ring::Modulus;

use crate::Error;

/// The server's side of a program: weights as integers for the online phase, and transformed for preparations without a
/// dealer, from the first of them on.
pub struct Model {
    weights: Arc<Weights>,
    workspaces: Vec<Workspace>,
    /// For the form that the last preparation took.
    transformed: Mutex<Option<(Form, Arc<[Transformed]>)>>,
}

/// The ring of linear layers, or their field; whether some choose by OT; whether the client keeps weights; what encryption saves first. No two modes of a
/// program have all of them alike and differ otherwise.
type Form = (Modulus, bool, bool, Saving);

impl Model {
    /// A model with what is to be kept and worked on at once for each linear layer.
    pub fn new(weights: impl Into<Arc<Weights>>, workspaces: Vec<Workspace>) -> Self {
        Self { weights: weights.into(), workspaces, transformed: Mutex::default() }
    }

    /// The weights of every linear layer as preparations take them; made once, by whoever asks first, and again for a plan
    /// with guard bits or in a field after one without: memory holds one form.
    ///
    /// # Errors
    /// [`Error::Linear`] if a layer does not fit its plan.
    pub fn transformed(&self, plan: &Plan) -> Result<Arc<[Transformed]>, Error> {
        let mut transformed = self.transformed.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = !plan.linear().iter().all(|layer| layer.plan.is_encrypted());
        let form = (plan.product_ring(), chosen, plan.options().keeps_weights(), plan.options().saving);
        match transformed.take() {
            Some((made_for, cached)) if made_for == form => {
                *transformed = Some((form, Arc::clone(&cached)));
                return Ok(cached);
            }
            _ => {}
        }
        let transform = |(layer, &workspace): (&plan::LinearLayer, &Workspace)| {
            layer.plan.transform(self.weights.tensor(&layer.weight), workspace)
        };
        let layers = plan.linear().iter().zip(&self.workspaces);
        let cached: Arc<[_]> = layers.map(transform).collect::<Result<_, privet_linear::Error>>()?;
        *transformed = Some((form, Arc::clone(&cached)));
        Ok(cached)
    }

    /// The weights as integers.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }
}
