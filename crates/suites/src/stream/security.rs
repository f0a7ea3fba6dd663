//! The security budget of suite `stream`; see [`crate::security`].

use privet_linear::INFERENCES_PER_KEY;
use privet_paillier::{TABLE_BITS, TABLE_DRAWS};

use super::cipher::Cipher;
use super::plan::Plan;
use crate::security::{Assumption, Growth, Loss, Security, ring_lwe, transfers};

const ORDER: &str = "values are revealed up to order to the data provider, by design";

impl Plan {
    /// What the plan assumes and loses.
    pub fn security(&self) -> Security {
        match (self.cipher(), self.layout()) {
            (Cipher::Paillier(size), _) => {
                let noise = self.forecast().decryptions as u64;
                let problem = format!("decisional composite residues, factoring {} bits", size.bits());
                let assumptions = vec![Assumption::new("Paillier key", problem, size.strength(), 1)];
                let loss = noise as f64 * (-TABLE_BITS).exp2();
                let inferences = TABLE_DRAWS / noise.max(1);
                let losses = vec![Loss::new("noise", "draw from a table", noise.max(1), loss, Growth::Sum, inferences)];
                let notes = vec![ORDER, "the bound on noise holds for every key whose proof was checked"];
                Security::new(assumptions, losses, "Paillier key with its table of noise", Some(inferences), notes)
            }
            (Cipher::Bfv, Ok(layout)) => {
                let inferences = INFERENCES_PER_KEY;
                let mut assumptions = transfers(layout.extension, &layout.demand(), inferences, 1);
                let mut losses = Vec::new();
                if let Some(layer) = layout.layers.first() {
                    let parameters = layer.plan.parameters();
                    let replies = layout.layers.iter().map(|layer| layer.plan.output_ciphertexts() as u64).sum::<u64>();
                    assumptions.push(ring_lwe(parameters.degree(), parameters.modulus_bits(), replies * inferences));
                    let (count, loss) = (parameters.results() as u64, parameters.loss(1.0));
                    losses.push(Loss::new(
                        "linear layers",
                        "result under a flood",
                        count,
                        loss,
                        Growth::Root,
                        inferences,
                    ));
                }
                Security::new(assumptions, losses, "BFV key and OT setup of a session", Some(inferences), vec![ORDER])
            }
            (Cipher::Bfv, Err(_)) => unreachable!("a plan over BFV has a layout"),
        }
    }
}
