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

/// Input channel blocks of a sum that are multiplied before the next sum of the task: their weights take 1 MiB.
pub(crate) const CHANNELS_AT_ONCE: usize = 16;

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
            let work: Vec<(&[usize], Vec<Seed>)> =
                batch.iter().map(|task| (task.as_slice(), task.iter().map(|_| prg.seed()).collect())).collect();
            let done: Vec<Vec<Reply>> =
                work.into_par_iter().map(|(task, seeds)| self.run(task, &seeds)).collect::<Result<_, _>>()?;
            for (index, reply) in batch.iter().flatten().zip(done.into_iter().flatten()) {
                replies[index - first] = Some(reply);
            }
            while let Some(reply) = replies.get_mut(delivered).and_then(Option::take) {
                deliver(reply)?;
                delivered += 1;
            }
        }
        Ok(())
    }

    /// Output polynomials that use the same weights, few enough to keep all threads busy.
    fn tasks(&self) -> Vec<Vec<usize>> {
        let counts = self.plan.packing().counts;
        let groups = counts.groups.min(self.sections.len());
        let wanted = (TASKS_PER_THREAD * rayon::current_num_threads()).div_ceil(groups * counts.outputs);
        let run = self.sections.len().div_ceil(groups).div_ceil(wanted).min(TILES_PER_TASK);
        let of_block = |(group, output): (usize, usize)| {
            let tiles: Vec<usize> = self.sections.clone().skip(group).step_by(counts.groups).collect();
            let runs =
                tiles.chunks(run).map(|run| run.iter().map(|section| section * counts.outputs + output).collect());
            runs.collect::<Vec<Vec<usize>>>()
        };
        let blocks = (0..groups).flat_map(|group| (0..counts.outputs).map(move |output| (group, output)));
        blocks.flat_map(of_block).collect()
    }

    fn run(&self, task: &[usize], seeds: &[Seed]) -> Result<Vec<Reply>, Error> {
        let packing = self.plan.packing();
        let before = self.sections.start * packing.counts.channels;
        let mut sums = vec![Sum::new(self.plan.parameters()); task.len()];
        let channels: Vec<usize> = (0..packing.counts.channels).collect();
        for channels in channels.chunks(CHANNELS_AT_ONCE) {
            // All sums of a task meet the same weights.
            let polynomials = channels.iter().map(|&channel| self.weights.polynomial(packing.weight(task[0], channel)));
            let polynomials = polynomials.collect::<Result<Vec<_>, _>>()?;
            for (sum, &index) in sums.iter_mut().zip(task) {
                let inputs = channels.iter().map(|&channel| &self.inputs[packing.input(index, channel) - before]);
                let terms: Vec<_> = inputs.zip(polynomials.iter().map(|weights| &**weights)).collect();
                sum.multiply_add(&terms)?;
            }
        }
        let finish = |((sum, &index), seed): ((Sum, &usize), &Seed)| {
            let (positions, places) = packing.results(index);
            let mut bytes = Vec::with_capacity(self.plan.reply_bytes(index));
            let shares = sum.reply(self.key, &positions, &mut Prg::from_seed(seed), &mut bytes)?;
            Ok(Reply { bytes, places, shares })
        };
        sums.into_iter().zip(task).zip(seeds).map(finish).collect()
    }
}
