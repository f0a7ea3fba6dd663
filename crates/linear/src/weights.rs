//! A layer's weights, as the server keeps them.

use std::ops::{Neg, Range};

use privet_bfv::{Residues, Values, Weights};
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
        Misuse::check_length("weights", plan.weights_len(), weights.len())?;
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
            // Blocks are multiplied by the weights themselves.
            Keep::Transformed if plan.packing().tiling.blocks.is_none() => {
                Form::Transformed(transform_all(plan, &weights)?)
            }
            _ => Form::Plain(weights),
        };
        Ok(Self { plan: plan.clone(), sections: workspace.sections.clamp(1, plan.sections()), form })
    }

    /// What they were made for.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How they are kept.
    pub(crate) fn keep(&self) -> Keep {
        match self.form {
            Form::Transformed(_) => Keep::Transformed,
            Form::Plain(_) => Keep::Plain,
        }
    }

    /// Sections to work on at once.
    pub(crate) fn sections(&self) -> usize {
        self.sections
    }

    /// What the blocks of some blocks of channels are multiplied by for a block of outputs, `count` to a ciphertext, as
    /// [`privet_bfv::Panel::multiply_add`] takes them; for weights that are kept as they are.
    pub(crate) fn factors(&self, output: usize, channels: Range<usize>, count: usize) -> Vec<i64> {
        let (packing, mut factors) = (self.plan.packing(), vec![0; channels.len() * count]);
        let first = output * packing.counts.channels;
        let indices = first + channels.start..first + channels.end;
        for (index, factors) in indices.zip(factors.chunks_mut(count)) {
            match &self.form {
                Form::Plain(Integers::Narrow(weights)) => packing.fill_factors(index, weights, factors),
                Form::Plain(Integers::Wide(weights)) => packing.fill_factors(index, weights, factors),
                Form::Transformed(_) => unreachable!("blocks have no transformed weights"),
            }
        }
        factors
    }

    /// The weight polynomial with this index modulo the prime with this number: kept, or made in `buffer`.
    pub(crate) fn residues<'a>(
        &'a self,
        index: usize,
        prime: usize,
        coefficients: &mut Coefficients,
        buffer: &'a mut Values,
    ) -> Result<Residues<'a>, Error> {
        let (plan, parameters) = (&self.plan, self.plan.parameters());
        let residues = match &self.form {
            Form::Transformed(polynomials) => return Ok(polynomials[index].residues(prime)),
            Form::Plain(Integers::Narrow(weights)) => {
                spread(plan, index, weights, &mut coefficients.narrow);
                Residues::new(parameters, prime, &coefficients.narrow, plan.packing().columns, buffer)
            }
            Form::Plain(Integers::Wide(weights)) => {
                spread(plan, index, weights, &mut coefficients.wide);
                Residues::new(parameters, prime, &coefficients.wide, plan.packing().columns, buffer)
            }
        };
        Ok(residues?)
    }
}

/// Room for the coefficients of a polynomial, of the width that weights have.
#[derive(Default)]
pub(crate) struct Coefficients {
    narrow: Vec<i32>,
    wide: Vec<i64>,
}

fn transform_all(plan: &Plan, weights: &Integers) -> Result<Vec<Weights>, Error> {
    (0..plan.weight_polynomials()).into_par_iter().map(|index| transform(plan, index, weights)).collect()
}

fn transform(plan: &Plan, index: usize, weights: &Integers) -> Result<Weights, Error> {
    let mut coefficients = Coefficients::default();
    Ok(match weights {
        Integers::Narrow(weights) => {
            spread(plan, index, weights, &mut coefficients.narrow);
            Weights::at(plan.parameters(), &coefficients.narrow, plan.packing().columns)
        }
        Integers::Wide(weights) => {
            spread(plan, index, weights, &mut coefficients.wide);
            Weights::at(plan.parameters(), &coefficients.wide, plan.packing().columns)
        }
    }?)
}

/// The coefficients of a polynomial.
fn spread<T: Copy + Default + Neg<Output = T>>(plan: &Plan, index: usize, weights: &[T], polynomial: &mut Vec<T>) {
    polynomial.clear();
    polynomial.resize(plan.parameters().degree(), T::default());
    plan.packing().fill_weights(index, weights, polynomial);
}
