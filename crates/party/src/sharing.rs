//! The suites on additive shares: `gmw` and `fss`.
//!
//! Linear layers are paid offline on random masks (Delphi's split), by BFV or by a dealer. The rest runs online: in `gmw` by
//! Boolean sharing (SecONNds), in `fss` by evaluating a dealer's keys (Orca, SIGMA).
//!
//! [`Plan`] turns a program into steps that both parties derive alike from its public half; [`prepare`] makes the
//! [`Material`] that the steps will consume, [`infer`] runs them.
//!
//! Threat model: semi-honest parties; where there is a dealer, it colludes with neither. See `docs/protocols/gmw.md` and
//! `docs/protocols/fss.md`.

mod dealt;
mod evaluate;
mod forecast;
mod infer;
mod keys;
mod layers;
mod material;
mod memory;
mod nonlinear;
mod options;
mod plan;
mod prepare;
mod turns;

pub use dealt::{MaskedWeights, WeightMask, deal, dealt_bytes};
pub use dealt::{prepare_client as prepare_client_dealt, prepare_server as prepare_server_dealt};
pub use forecast::{Forecast, LinearForecast};
pub(crate) use infer::check_inputs;
pub use infer::{infer_client, infer_server};
pub use keys::Keys;
pub use material::{ClientMaterial, Correlated, ServerMaterial};
pub use memory::Memory;
pub use options::{Correlations, Options, Suite};
pub use plan::{Plan, Step};
pub use prepare::{prepare_client, prepare_server};
pub use privet_gmw::{Rounds, Truncation};

use privet_linear::{TransformedWeights, Workspace};
use privet_program::Weights;

use crate::Error;

/// The server's side of a plan: weights as integers for the online phase, transformed for the offline phase.
pub struct Model {
    weights: Weights,
    transformed: Vec<TransformedWeights>,
}

impl Model {
    /// Transforms the weights of every linear layer once, for any number of preparations.
    ///
    /// # Errors
    /// [`Error::Linear`] if a layer does not fit its plan.
    pub fn new(plan: &Plan, weights: Weights) -> Result<Self, Error> {
        Self::with_workspaces(plan, weights, &plan.standard_workspaces())
    }

    /// As [`Model::new`], with what is to be kept and worked on at once for each linear layer.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn with_workspaces(plan: &Plan, weights: Weights, workspaces: &[Workspace]) -> Result<Self, Error> {
        let transform = |(layer, &workspace): (&plan::LinearLayer, &Workspace)| {
            TransformedWeights::new(&layer.plan, weights.tensor(&layer.weight), workspace)
        };
        let layers = plan.linear().iter().zip(workspaces);
        let transformed = layers.map(transform).collect::<Result<_, privet_linear::Error>>()?;
        Ok(Self { weights, transformed })
    }

    /// The weights as integers.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }
}
