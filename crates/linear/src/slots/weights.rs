//! A layer's weights, as the server keeps them.

use std::borrow::Cow;
use std::sync::Arc;

use privet_bfv::slots;
use rayon::prelude::*;

use crate::error::{Error, Misuse};

use super::plan::Plan;
use super::steps::Step;

/// Transformed weights of a layer are kept up to this size; larger ones are made at each use.
const KEPT_BYTES: u64 = 32 << 20;

/// A layer's weights, made once and used in any number of sessions.
pub struct Weights {
    plan: Plan,
    residues: Vec<u64>,
    /// For each strip, output, step and input in turn, what is not zero.
    polynomials: Option<Vec<Option<slots::Weights>>>,
}

/// Which polynomial of weights: of a strip, to an output, at a step's index, for one of the step's inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which {
    pub(super) strip: usize,
    pub(super) output: usize,
    pub(super) step: usize,
    pub(super) input: usize,
}

impl Weights {
    /// Takes the weights of the plan's layer, in the layer's own order.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`].
    pub fn new(plan: &Plan, weights: &[i64]) -> Result<Self, Error> {
        Misuse::check_length("weights", plan.weights_len(), weights.len())?;
        let field = plan.field();
        let residues = weights.iter().map(|&weight| field.from_signed(weight)).collect();
        let mut weights = Self { plan: plan.clone(), residues, polynomials: None };
        if weights.bytes_transformed() <= KEPT_BYTES {
            let all: Vec<Which> = weights.every().collect();
            weights.polynomials =
                Some(all.into_par_iter().map(|which| weights.transform(which)).collect::<Result<_, _>>()?);
        }
        Ok(weights)
    }

    /// What they were made for.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The polynomial, unless it is zero.
    pub(super) fn polynomial(&self, which: Which) -> Result<Option<Cow<'_, slots::Weights>>, Error> {
        match &self.polynomials {
            Some(polynomials) => Ok(polynomials[self.index(which)].as_ref().map(Cow::Borrowed)),
            None => Ok(self.transform(which)?.map(Cow::Owned)),
        }
    }

    /// Bytes that weights of this plan's layer take between evaluations, and the most while they are made.
    pub(super) fn memory(plan: &Plan) -> u64 {
        let plain = 8 * plan.weights_len() as u64;
        let transformed = count(plan) as u64 * plan.parameters().weights_memory();
        plain + if transformed <= KEPT_BYTES { transformed } else { 0 }
    }

    fn bytes_transformed(&self) -> u64 {
        count(&self.plan) as u64 * self.plan.parameters().weights_memory()
    }

    fn every(&self) -> impl Iterator<Item = Which> + '_ {
        let packing = self.plan.packing();
        (0..packing.geometry.strips()).flat_map(move |strip| {
            (0..packing.outputs).flat_map(move |output| {
                packing.steps_to(output).iter().enumerate().flat_map(move |(step, (_, inputs))| {
                    (0..inputs.len()).map(move |input| Which { strip, output, step, input })
                })
            })
        })
    }

    fn index(&self, which: Which) -> usize {
        let packing = self.plan.packing();
        let of = |steps: &[(Step, Arc<[usize]>)]| -> usize { steps.iter().map(|(_, inputs)| inputs.len()).sum() };
        let to = |outputs: usize| -> usize { (0..outputs).map(|output| of(packing.steps_to(output))).sum() };
        let before = of(&packing.steps_to(which.output)[..which.step]);
        which.strip * to(packing.outputs) + to(which.output) + before + which.input
    }

    fn transform(&self, which: Which) -> Result<Option<slots::Weights>, Error> {
        let (packing, parameters) = (self.plan.packing(), self.plan.parameters());
        let (step, inputs) = &packing.steps_to(which.output)[which.step];
        let mut slots = vec![0; parameters.degree()];
        let place = [which.output, inputs[which.input]];
        match packing.fill_weights(which.strip, place, step, |index| self.residues[index], &mut slots) {
            true => Ok(Some(slots::Weights::new(parameters, &slots)?)),
            false => Ok(None),
        }
    }
}

impl Plan {
    /// Bytes that the weights take between evaluations, at most.
    pub fn weights_memory(&self) -> u64 {
        Weights::memory(self)
    }
}

/// Polynomials of weights.
fn count(plan: &Plan) -> usize {
    plan.products() / plan.packing().correlation.images
}
