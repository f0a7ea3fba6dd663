//! A layer's weights, as the server keeps them.

use std::borrow::Cow;
use std::ops::Neg;

use privet_bfv::Weights;
use rayon::prelude::*;

use crate::error::{Error, Misuse};
use crate::memory::{Keep, Workspace};
use crate::plan::Plan;

/// A layer's weights, made once and used in any number of sessions.
pub struct TransformedWeights {
    plan: Plan,
    sections: usize,
    form: Form,
}

enum Form {
    Transformed(Vec<Weights>),
    Plain(Integers),
}

/// Weights as they are, in [`Plan::integer_bytes`] each.
enum Integers {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl TransformedWeights {
    /// Takes the weights of the plan's layer, in the layer's own order. `workspace` says how much memory to spend on them
    /// and on each evaluation: [`Plan::server_memory`].
    ///
    /// # Errors
    /// [`Misuse::WrongLength`]; [`Misuse::WeightTooLarge`] for a weight that the plan's noise bound does not cover.
    pub fn new(plan: &Plan, weights: &[i64], workspace: Workspace) -> Result<Self, Error> {
        let (expected, actual) = (plan.weights_len(), weights.len());
        if actual != expected {
            return Err(Misuse::WrongLength { what: "weights", expected, actual }.into());
        }
        let weight_bits = plan.weight_bits();
        if let Some(index) = weights.iter().position(|w| w.unsigned_abs() >> weight_bits != 0) {
            return Err(Misuse::WeightTooLarge { index, weight_bits }.into());
        }
        let weights = match plan.integer_bytes() {
            // At most 31 bits and a sign, as just checked.
            4 => Integers::Narrow(weights.iter().map(|&w| w as i32).collect()),
            _ => Integers::Wide(weights.to_vec()),
        };
        let form = match workspace.keep {
            Keep::Transformed => Form::Transformed(transform_all(plan, &weights)?),
            Keep::Plain => Form::Plain(weights),
        };
        Ok(Self { plan: plan.clone(), sections: workspace.sections.clamp(1, plan.sections()), form })
    }

    /// What they were made for.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Sections to work on at once.
    pub(crate) fn sections(&self) -> usize {
        self.sections
    }

    /// The weight polynomial with this index.
    pub(crate) fn polynomial(&self, index: usize) -> Result<Cow<'_, Weights>, Error> {
        match &self.form {
            Form::Transformed(polynomials) => Ok(Cow::Borrowed(&polynomials[index])),
            Form::Plain(weights) => Ok(Cow::Owned(transform(&self.plan, index, weights)?)),
        }
    }
}

fn transform_all(plan: &Plan, weights: &Integers) -> Result<Vec<Weights>, Error> {
    (0..plan.weight_polynomials()).into_par_iter().map(|index| transform(plan, index, weights)).collect()
}

fn transform(plan: &Plan, index: usize, weights: &Integers) -> Result<Weights, Error> {
    match weights {
        Integers::Narrow(weights) => spread(plan, index, weights),
        Integers::Wide(weights) => spread(plan, index, weights),
    }
}

fn spread<T: Copy + Default + Into<i64> + Neg<Output = T>>(
    plan: &Plan,
    index: usize,
    weights: &[T],
) -> Result<Weights, Error> {
    let mut polynomial = vec![T::default(); plan.parameters().degree()];
    plan.packing().fill_weights(index, weights, &mut polynomial);
    Ok(Weights::new(plan.parameters(), &polynomial)?)
}
