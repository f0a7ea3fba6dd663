//! The security budget of a plan on plain shares; see [`crate::security`].

use std::ops::Add;

use privet_linear::{INFERENCES_PER_KEY, Parameters};

use super::keys::Batch;
use super::{Encrypted, Plan, Truncation, elements};
use crate::security::{Growth, Loss, Security, ring_lwe, seeds, transfers, trees};

/// Generators that a party's seed of a batch of keys, or of a deal, grows into, with the seed itself.
const STREAMS: u64 = 6;

/// A bit under a word reduced modulo a prime: two of the word's values are less likely by this than the others.
const FIELD_BIT: f64 = 1.0 / (u64::MAX as f64);

impl Plan {
    /// What the plan assumes and loses.
    pub fn security(&self) -> Security {
        let one_shot = self.options().is_one_shot();
        let inferences = if one_shot { INFERENCES_PER_KEY } else { 1 };
        let (mut assumptions, mut losses, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        if self.options().truncation == Truncation::OneBit {
            notes.push("a one-bit truncation is off by a unit in a way that depends on shares: repeated answers give weights away");
        }
        if self.is_dealt() {
            notes.push("the dealer knows every mask: it must collude with neither party");
            // Two seeds, each with the streams that it grows into, for the deal and for each batch of keys; one for each part of a
            // batch that looks digits up; the server's mask.
            let batches = self.keys.iter().flatten().count() as u64;
            let parts = self.keys.iter().flatten().map(Batch::parts).sum::<usize>() as u64;
            assumptions.push(seeds(STREAMS * (2 * (1 + batches) + parts) + 1));
            assumptions.extend(self.keys.iter().flatten().filter_map(Batch::tree_hashes).max().map(trees));
        } else {
            let demand = elements::demands(self).into_iter().fold(self.online_cost().demand, Add::add);
            assumptions.extend(Some(elements::seeds(self)).filter(|&count| count > 0).map(seeds));
            // Preparations may follow from one another's transfers.
            assumptions.extend(transfers(self.extension(), &demand, 1, privet_ot::security::SESSIONS));
            let layers = self.encrypted();
            let replies = layers.iter().map(|layer| layer.ciphertexts()[1] as u64).sum::<u64>() * inferences;
            assumptions.extend(layers.first().and_then(|layer| match layer {
                Encrypted::Chosen(_) => None,
                Encrypted::Ring(plan) => {
                    let parameters = plan.parameters();
                    Some(ring_lwe(parameters.degree(), parameters.modulus_bits(), replies))
                }
                Encrypted::Field(plan) => {
                    let parameters = plan.parameters();
                    Some(ring_lwe(parameters.degree(), parameters.modulus_bits(), replies))
                }
                Encrypted::Kept(_) => unreachable!("it is not under the client's keys"),
            }));
            if let Some(parameters) = self.kept_parameters() {
                let replies = self.linear().iter().map(|layer| layer.plan.ciphertexts()[0] as u64).sum::<u64>();
                let samples = self.kept_ciphertexts() + replies;
                assumptions.push(ring_lwe(parameters.degree(), parameters.modulus_bits(), samples));
                losses.push(ring_loss("layers with kept weights", parameters, inferences));
                notes.push(
                    "the key of kept weights lives as long as the weights are served: whoever gets it has the weights",
                );
            }
            losses.extend(layers.first().and_then(|layer| linear_loss(layer, inferences)));
            if let Some(matrices) = self.matrices().next() {
                let terms = self.matrices().flat_map(|matrices| matrices.terms());
                let replies = terms.map(|term| term.output_ciphertexts() as u64).sum();
                let parameters = matrices.parameters();
                assumptions.push(ring_lwe(parameters.degree(), parameters.modulus_bits(), replies));
                losses.push(ring_loss("products of matrices", parameters, 1));
            }
        }
        if self.field().is_some() {
            let values = self.masks().iter().sum::<usize>() as u64;
            let loss = values as f64 * FIELD_BIT;
            losses.push(Loss::new(
                "ways into the field",
                "bit under a reduced word",
                values,
                loss,
                Growth::Sum,
                inferences,
            ));
        }
        let (key, limit) = match (self.is_dealt(), one_shot) {
            (true, _) => ("material of one deal", 1),
            (false, true) => ("BFV key of a session", INFERENCES_PER_KEY),
            (false, false) => ("BFV key and OT setup of a preparation", 1),
        };
        Security::new(assumptions, losses, key, Some(limit), notes)
    }

    /// Results of linear layers that leave under BFV in an inference; none with a dealer.
    pub fn replied_results(&self) -> u64 {
        if self.is_dealt() {
            return 0;
        }
        let terms = self.matrices().flat_map(|matrices| matrices.terms());
        let layers = self.encrypted().into_iter().map(Encrypted::results);
        layers.chain(terms.map(|term| term.replied_results() as u64)).sum()
    }
}

/// What replies in the ring lose.
fn ring_loss(what: &'static str, parameters: &Parameters, inferences: u64) -> Loss {
    let (count, loss) = (parameters.results() as u64, parameters.loss(1.0));
    Loss::new(what, "result that may be off by more than a unit", count, loss, Growth::Sum, inferences)
}

/// What replies lose.
fn linear_loss(layer: &Encrypted, inferences: u64) -> Option<Loss> {
    match layer {
        Encrypted::Chosen(_) => None,
        Encrypted::Ring(plan) => Some(ring_loss("linear layers", plan.parameters(), inferences)),
        Encrypted::Field(plan) => {
            let parameters = plan.parameters();
            let count = (parameters.degree() * parameters.replies()) as u64;
            let loss = parameters.loss(1.0);
            Some(Loss::new("linear layers", "coefficient under a flood", count, loss, Growth::Root, inferences))
        }
        Encrypted::Kept(_) => None,
    }
}
