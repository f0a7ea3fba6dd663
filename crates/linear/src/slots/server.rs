//! The server: products, rotations and replies, one tile after the other.

use privet_bfv::slots::{Ciphertext, Rotation, Sum};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::error::{Error, Misuse};

use super::client::gather;
use super::keys::ServerKeys;
use super::plan::{Plan, messages};
use super::steps::{LEVELS, Turn, turns};
use super::weights::{Weights, Which};

/// Steps whose products are made side by side, before their sums are rotated one after the other, where threads have no
/// output ciphertexts of their own.
pub(super) const STEPS_AT_ONCE: usize = 16;

/// Inputs of a step that are multiplied at once.
pub(super) const INPUTS_AT_ONCE: usize = 8;

/// Receives a layer's input, replies with the client's share and returns the server's share of `W r`,
/// `[plan.output_len()]` residues modulo `p`, row-major.
///
/// # Errors
/// [`crate::PeerMisbehaved`] for messages of the wrong length or form; [`Misuse::PlansDiffer`] for weights or keys that were
/// made for another plan; those of the channel.
pub fn evaluate(
    channel: &mut Channel,
    plan: &Plan,
    keys: &ServerKeys,
    weights: &Weights,
    prg: &mut Prg,
) -> Result<Vec<u64>, Error> {
    Misuse::check_plans("weights", plan.agrees_with(weights.plan()))?;
    Misuse::check_plans("keys", plan.parameters().agrees_with(keys.rotations.parameters()))?;
    let (packing, parameters) = (plan.packing(), plan.parameters());
    let ciphertext_bytes = parameters.ciphertext_bytes();
    let (mut due, mut waiting) = (messages(plan.input_ciphertexts()), Vec::new());
    let mut replies: std::collections::VecDeque<Vec<u8>> = Default::default();
    let mut out = messages(plan.output_ciphertexts()).peekable();
    let mut output = vec![0; plan.output_len()];
    let apart = outputs_apart(packing.outputs, rayon::current_num_threads());
    for tile in 0..packing.tiles() {
        while waiting.len() < packing.inputs {
            let Some(message) = due.next() else { break };
            let bytes = channel.recv(message.len() * ciphertext_bytes)?;
            let read = bytes.par_chunks(ciphertext_bytes).map(|chunk| Ciphertext::from_bytes(parameters, chunk));
            waiting.extend(read.collect::<Result<Vec<_>, _>>()?);
        }
        let inputs: Vec<Ciphertext> = waiting.drain(..packing.inputs).collect();
        let strip = tile % packing.geometry.strips();
        let work: Vec<(usize, Seed)> = (0..packing.outputs).map(|output| (output, prg.seed())).collect();
        let finish = |(output, seed): (usize, Seed)| {
            let sum = Task { plan, keys, weights, inputs: &inputs, strip, output }.sum(!apart)?;
            let mut bytes = Vec::with_capacity(parameters.reply_bytes());
            let shares = sum.reply(&keys.public, &mut Prg::from_seed(&seed), &mut bytes)?;
            Ok::<_, Error>((bytes, shares))
        };
        let results: Vec<(Vec<u8>, Vec<u64>)> = match apart {
            true => work.into_par_iter().map(finish).collect::<Result<_, _>>()?,
            false => work.into_iter().map(finish).collect::<Result<_, _>>()?,
        };
        for (at, (bytes, shares)) in results.into_iter().enumerate() {
            gather(plan, tile * packing.outputs + at, &shares, &mut output);
            replies.push_back(bytes);
        }
        while let Some(message) = out.next_if(|message| message.len() <= replies.len()) {
            channel.send(&replies.drain(..message.len()).collect::<Vec<_>>().concat())?;
        }
    }
    Ok(output)
}

/// Whether each thread takes output ciphertexts of its own: if there are enough of them.
pub(super) fn outputs_apart(outputs: usize, threads: usize) -> bool {
    outputs >= 2 * threads || outputs.is_multiple_of(threads)
}

/// One output ciphertext of a tile.
struct Task<'a> {
    plan: &'a Plan,
    keys: &'a ServerKeys,
    weights: &'a Weights,
    inputs: &'a [Ciphertext],
    strip: usize,
    output: usize,
}

impl Task<'_> {
    /// Products of every step, each sum rotated before the next is added; those with rows swapped come first. With
    /// `side_by_side` all threads make products of it.
    fn sum(&self, side_by_side: bool) -> Result<Sum, Error> {
        let steps = self.plan.packing().steps_to(self.output);
        let turns: Vec<Turn> = turns(steps.iter().map(|(step, _)| step)).collect();
        let mut levels: [Option<Sum>; LEVELS] = Default::default();
        let mut swapped: Option<Sum> = None;
        let indices: Vec<usize> = (0..steps.len()).collect();
        for indices in indices.chunks(if side_by_side { STEPS_AT_ONCE } else { 1 }) {
            let products: Vec<Sum> = match side_by_side {
                true => indices.par_iter().map(|&step| self.products(step)).collect::<Result<_, _>>()?,
                false => vec![self.products(indices[0])?],
            };
            for (&step, products) in indices.iter().zip(products) {
                join(&mut levels[0], products)?;
                for level in 0..turns[step].level {
                    let complete = levels[level].take().expect("a product joined it");
                    join(&mut levels[level + 1], complete)?;
                }
                let sum = levels[turns[step].level].take().expect("a product joined it");
                let sum = match turns[step].rotation {
                    Some(rotation) => self.keys.rotations.rotate(sum, rotation)?,
                    None => sum,
                };
                match turns[step].swap {
                    true => swapped = Some(self.keys.rotations.rotate(sum, Rotation::Swap)?),
                    false => levels[turns[step].level] = Some(sum),
                }
            }
        }
        let [_, _, sum] = levels;
        let mut sum = sum.unwrap_or_else(|| Sum::new(self.plan.parameters()));
        if let Some(swapped) = swapped {
            sum.add(&swapped)?;
        }
        Ok(sum)
    }

    fn products(&self, step: usize) -> Result<Sum, Error> {
        let inputs = &self.plan.packing().steps_to(self.output)[step].1;
        let mut sum = Sum::new(self.plan.parameters());
        let indices: Vec<usize> = (0..inputs.len()).collect();
        for indices in indices.chunks(INPUTS_AT_ONCE) {
            let which = |input| Which { strip: self.strip, output: self.output, step, input };
            let polynomials = indices.iter().map(|&input| self.weights.polynomial(which(input)));
            let polynomials = polynomials.collect::<Result<Vec<_>, _>>()?;
            let terms = indices.iter().zip(&polynomials);
            let terms = terms.filter_map(|(&input, weights)| Some((&self.inputs[inputs[input]], weights.as_deref()?)));
            sum.multiply_add(&terms.collect::<Vec<_>>())?;
        }
        Ok(sum)
    }
}

/// Adds to a sum, or begins it.
fn join(sum: &mut Option<Sum>, term: Sum) -> Result<(), Error> {
    match sum {
        Some(sum) => Ok(sum.add(&term)?),
        None => {
            *sum = Some(term);
            Ok(())
        }
    }
}
