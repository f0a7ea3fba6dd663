//! The server: products and replies, some sections of a layer at a time.

use std::ops::Range;

use privet_bfv::{Ciphertext, PublicKey, Sum};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::error::{Error, Misuse};
use crate::mail::{Inbox, Outbox};
use crate::plan::Plan;
use crate::weights::TransformedWeights;

/// Sums that a task holds at once: tiles that meet the same weights.
pub(crate) const TILES_PER_TASK: usize = 8;

/// Blocks of outputs that a task holds sums for, so that a ciphertext that was fetched from memory meets more than one
/// polynomial of weights.
pub(crate) const OUTPUTS_PER_TASK: usize = 8;

/// Input channel blocks of a sum that are multiplied before the next sum of the task: their weights take half a MiB.
pub(crate) const CHANNELS_AT_ONCE: usize = 8;

/// Tasks between two messages, per thread.
pub(crate) const TASKS_PER_THREAD: usize = 4;

/// Receives a layer's input, replies with the client's share and returns the server's share of `W r`,
/// `[plan.output_len()]` elements of Z_2^l, row-major.
///
/// # Errors
/// [`crate::PeerMisbehaved`] for messages of the wrong length or form; [`Misuse::PlansDiffer`] for weights or keys that were
/// made for another plan; those of the channel.
pub fn evaluate(
    channel: &mut Channel,
    plan: &Plan,
    key: &PublicKey,
    weights: &TransformedWeights,
    prg: &mut Prg,
) -> Result<Vec<u64>, Error> {
    if !plan.agrees_with(weights.plan()) {
        return Err(Misuse::PlansDiffer { what: "weights" }.into());
    }
    if !plan.parameters().agrees_with(key.parameters()) {
        return Err(Misuse::PlansDiffer { what: "keys" }.into());
    }
    let made = weights.for_evaluation()?;
    let weights = made.as_ref().unwrap_or(weights);
    let (channels, at_once) = (plan.packing().counts.channels, weights.sections());
    let mut output = vec![0; plan.output_len()];
    let (mut inbox, mut outbox) = (Inbox::new(plan, at_once * channels), Outbox::new(plan));
    for start in (0..plan.sections()).step_by(at_once) {
        let sections = start..plan.sections().min(start + at_once);
        let inputs = inbox.read(channel, sections.len() * channels)?;
        let deliver = |reply: Reply| {
            outbox.send(channel, &reply.bytes)?;
            reply.places.into_iter().zip(reply.shares).for_each(|(place, share)| output[place] = share);
            Ok(())
        };
        Chunk { plan, weights, key, inputs, sections: sections.clone() }.evaluate(prg, deliver)?;
        inbox.forget(sections.len() * channels);
    }
    Ok(output)
}

/// Sections that are worked on at once, with their ciphertexts.
struct Chunk<'a> {
    plan: &'a Plan,
    weights: &'a TransformedWeights,
    key: &'a PublicKey,
    inputs: &'a [Ciphertext],
    sections: Range<usize>,
}

/// Output polynomials that a thread makes together: for each of some blocks of outputs, as many tiles.
struct Task {
    indices: Vec<usize>,
    tiles: usize,
}

/// One output polynomial, finished.
struct Reply {
    bytes: Vec<u8>,
    places: Vec<usize>,
    shares: Vec<u64>,
}

impl Chunk<'_> {
    /// Gives the replies in the order in which they travel.
    fn evaluate(&self, prg: &mut Prg, mut deliver: impl FnMut(Reply) -> Result<(), Error>) -> Result<(), Error> {
        let outputs = self.plan.packing().counts.outputs;
        let first = self.sections.start * outputs;
        let mut replies: Vec<Option<Reply>> = Vec::new();
        replies.resize_with(self.sections.len() * outputs, || None);
        let mut delivered = 0;
        let tasks = self.tasks();
        for batch in tasks.chunks(TASKS_PER_THREAD * rayon::current_num_threads()) {
            let work: Vec<(&Task, Vec<Seed>)> =
                batch.iter().map(|task| (task, task.indices.iter().map(|_| prg.seed()).collect())).collect();
            let done: Vec<Vec<Reply>> =
                work.into_par_iter().map(|(task, seeds)| self.run(task, &seeds)).collect::<Result<_, _>>()?;
            for (index, reply) in batch.iter().flat_map(|task| &task.indices).zip(done.into_iter().flatten()) {
                replies[index - first] = Some(reply);
            }
            while let Some(reply) = replies.get_mut(delivered).and_then(Option::take) {
                deliver(reply)?;
                delivered += 1;
            }
        }
        Ok(())
    }

    /// Output polynomials, in runs of [`Task::tiles`] that use the same weights, few enough to keep all threads busy.
    fn tasks(&self) -> Vec<Task> {
        let counts = self.plan.packing().counts;
        let groups = counts.groups.min(self.sections.len());
        let least = TASKS_PER_THREAD * rayon::current_num_threads();
        let run = self.sections.len().div_ceil(groups).div_ceil(least.div_ceil(groups * counts.outputs));
        let run = run.min(TILES_PER_TASK);
        let runs = groups * self.sections.len().div_ceil(groups).div_ceil(run);
        let at_once = (runs * counts.outputs / least).clamp(1, OUTPUTS_PER_TASK);
        let outputs: Vec<usize> = (0..counts.outputs).collect();
        let of_group = |group: usize| -> Vec<Task> {
            let tiles: Vec<usize> = self.sections.clone().skip(group).step_by(counts.groups).collect();
            let blocks = outputs.chunks(at_once).flat_map(|outputs| tiles.chunks(run).map(move |run| (outputs, run)));
            let task = |(outputs, run): (&[usize], &[usize])| {
                let of_output = |output| run.iter().map(move |section| section * counts.outputs + output);
                Task { indices: outputs.iter().copied().flat_map(of_output).collect(), tiles: run.len() }
            };
            blocks.map(task).collect()
        };
        (0..groups).flat_map(of_group).collect()
    }

    fn run(&self, task: &Task, seeds: &[Seed]) -> Result<Vec<Reply>, Error> {
        let packing = self.plan.packing();
        let before = self.sections.start * packing.counts.channels;
        let mut sums = vec![Sum::new(self.plan.parameters()); task.indices.len()];
        let channels: Vec<usize> = (0..packing.counts.channels).collect();
        for channels in channels.chunks(CHANNELS_AT_ONCE) {
            for (sums, run) in sums.chunks_mut(task.tiles).zip(task.indices.chunks(task.tiles)) {
                let polynomials =
                    channels.iter().map(|&channel| self.weights.polynomial(packing.weight(run[0], channel)));
                let polynomials = polynomials.collect::<Result<Vec<_>, _>>()?;
                for (sum, &index) in sums.iter_mut().zip(run) {
                    let inputs = channels.iter().map(|&channel| &self.inputs[packing.input(index, channel) - before]);
                    let terms: Vec<_> = inputs.zip(polynomials.iter().map(|weights| &**weights)).collect();
                    sum.multiply_add(&terms)?;
                }
            }
        }
        let finish = |((sum, &index), seed): ((Sum, &usize), &Seed)| {
            let (positions, places) = packing.results(index);
            let mut bytes = Vec::with_capacity(self.plan.reply_bytes(index));
            let shares = sum.reply(self.key, &positions, &mut Prg::from_seed(seed), &mut bytes)?;
            Ok(Reply { bytes, places, shares })
        };
        sums.into_iter().zip(&task.indices).zip(seeds).map(finish).collect()
    }
}
