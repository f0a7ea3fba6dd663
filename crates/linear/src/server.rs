//! The server: products and replies, some sections of a layer at a time.

use std::ops::Range;

use privet_bfv::{Ciphertext, Merge, PublicKey, Sum, Values};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::blocks;
use crate::error::{Error, Misuse};
use crate::mail::{Inbox, Outbox, PER_MESSAGE};
use crate::memory::Keep;
use crate::packing::Places;
use crate::plan::Plan;
use crate::weights::{Coefficients, TransformedWeights};

/// Sums that a task holds at once: tiles that meet the same weights.
pub(crate) const TILES_PER_TASK: usize = 8;

/// Blocks of outputs that a task holds sums for, so that a ciphertext that was fetched from memory meets more than one
/// polynomial of weights.
pub(crate) const OUTPUTS_PER_TASK: usize = 8;

/// Input channel blocks that are multiplied before the next ones: modulo one prime, their weights take a quarter of a MiB for each block of
/// outputs.
pub(crate) const CHANNELS_AT_ONCE: usize = 8;

/// Blocks of outputs whose weights are transformed before they are multiplied, for so many sections. What few sections use is best
/// multiplied while it is in a near cache; many read each ciphertext for more outputs.
pub(crate) fn outputs_at_once(sections: usize) -> usize {
    if sections <= 2 { 1 } else { OUTPUTS_PER_TASK }
}

/// Tasks between two messages, per thread.
pub(crate) const TASKS_PER_THREAD: usize = 4;

/// Replies between two messages, per thread, where a task makes few: to wake a thread takes about as long as a task.
const REPLIES_PER_THREAD: usize = 16;

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
    Misuse::check_plans("weights", plan.agrees_with(weights.plan()))?;
    Misuse::check_plans("keys", plan.parameters().agrees_with(key.parameters()))?;
    if plan.packing().tiling.blocks.is_some() {
        return blocks::evaluate(channel, plan, key, weights, prg);
    }
    let (channels, at_once) = (plan.packing().counts.channels, weights.sections());
    let mut output = vec![0; plan.output_len()];
    let (mut inbox, mut outbox) = (Inbox::new(plan, inputs_waiting(plan, at_once)), Outbox::new(plan));
    for start in (0..plan.sections()).step_by(at_once) {
        let sections = start..plan.sections().min(start + at_once);
        let inputs = match has_single_products(plan) {
            true => Inputs::Packed(inbox.take(channel, sections.len())?),
            false => Inputs::Read(inbox.read(channel, plan.parameters(), sections.len() * channels)?),
        };
        let deliver = |reply: Reply| reply.deliver(channel, &mut outbox, &mut output);
        Chunk { plan, weights, key, inputs, sections }.evaluate(prg, deliver)?;
    }
    Ok(output)
}

/// Whether each ciphertext meets one polynomial of weights alone, and each sum is one product: then a ciphertext is read when it is
/// multiplied.
pub(crate) fn has_single_products(plan: &Plan) -> bool {
    let counts = plan.packing().counts;
    counts.channels == 1 && counts.outputs == 1
}

/// Ciphertexts that are taken from the channel at once, for so many sections.
pub(crate) fn inputs_waiting(plan: &Plan, sections: usize) -> usize {
    if has_single_products(plan) { sections } else { PER_MESSAGE.min(sections * plan.packing().counts.channels) }
}

/// The ciphertexts of some sections.
enum Inputs<'a> {
    /// As they travel, by [`has_single_products`].
    Packed(&'a [u8]),
    Read(Vec<Ciphertext>),
}

/// Sections that are worked on at once, with their ciphertexts.
struct Chunk<'a> {
    plan: &'a Plan,
    weights: &'a TransformedWeights,
    key: &'a PublicKey,
    inputs: Inputs<'a>,
    sections: Range<usize>,
}

/// Replies that a thread makes together: some of each of a few sections, which use the same weights.
struct Task {
    sections: Vec<usize>,
    /// Replies of a section.
    replies: Range<usize>,
}

/// A reply, finished.
pub(crate) struct Reply {
    bytes: Vec<u8>,
    places: Places,
    shares: Vec<u64>,
}

impl Reply {
    /// That with this number.
    pub(crate) fn new(plan: &Plan, key: &PublicKey, index: usize, sum: Sum, seed: &Seed) -> Result<Self, Error> {
        let (positions, places) = plan.packing().results(index);
        let mut bytes = Vec::with_capacity(plan.reply_bytes(index));
        let shares = sum.reply(key, &positions, &mut Prg::from_seed(seed), &mut bytes)?;
        Ok(Self { bytes, places, shares })
    }

    /// Sends it, and puts the server's shares among all of the layer.
    pub(crate) fn deliver(
        self,
        channel: &mut Channel,
        outbox: &mut Outbox<impl Iterator<Item = Range<usize>>>,
        output: &mut [u64],
    ) -> Result<(), Error> {
        outbox.send(channel, self.bytes)?;
        self.places.put(&self.shares, output);
        Ok(())
    }
}

impl Chunk<'_> {
    /// Gives the replies in the order in which they travel.
    fn evaluate(&self, prg: &mut Prg, mut deliver: impl FnMut(Reply) -> Result<(), Error>) -> Result<(), Error> {
        let each = self.plan.packing().counts.replies;
        let first = self.sections.start * each;
        let mut replies: Vec<Option<Reply>> = Vec::new();
        replies.resize_with(self.sections.len() * each, || None);
        let mut delivered = 0;
        let tasks = self.tasks();
        let replies_of = |task: &Task| task.sections.len() * task.replies.len();
        let at_once = match (self.sections.len(), tasks.first()) {
            (2.., Some(task)) => REPLIES_PER_THREAD.div_ceil(replies_of(task)).max(TASKS_PER_THREAD),
            // Of a section, replies wait for no more than so many tasks: `Plan::server_memory` counts on it.
            _ => TASKS_PER_THREAD,
        };
        for batch in tasks.chunks(at_once * rayon::current_num_threads()) {
            let seeded = |task: &'_ Task| task.replies().map(|_| prg.seed()).collect();
            let seeds: Vec<Vec<Seed>> = batch.iter().map(seeded).collect();
            let work = batch.par_iter().zip(seeds);
            let results: Vec<Vec<Reply>> =
                work.map(|(task, seeds)| self.run(task, &seeds)).collect::<Result<_, _>>()?;
            let indices = batch.iter().flat_map(Task::replies).map(|(section, reply)| section * each + reply);
            for (index, reply) in indices.zip(results.into_iter().flatten()) {
                replies[index - first] = Some(reply);
            }
            while let Some(reply) = replies.get_mut(delivered).and_then(Option::take) {
                deliver(reply)?;
                delivered += 1;
            }
        }
        Ok(())
    }

    /// Replies in runs of sections that use the same weights, few enough to keep all threads busy.
    fn tasks(&self) -> Vec<Task> {
        let packing = self.plan.packing();
        let counts = packing.counts;
        let groups = counts.groups.min(self.sections.len());
        let least = TASKS_PER_THREAD * rayon::current_num_threads();
        let run = self.sections.len().div_ceil(groups).div_ceil(least.div_ceil(groups * counts.replies));
        let run = run.min(TILES_PER_TASK);
        let runs = groups * self.sections.len().div_ceil(groups).div_ceil(run);
        let at_once = (runs * counts.replies / least).clamp(1, packing.replies_per_task());
        let of_group = |group: usize| -> Vec<Task> {
            let tiles: Vec<usize> = self.sections.clone().skip(group).step_by(counts.groups).collect();
            let task = |start: usize, run: &[usize]| Task {
                sections: run.to_vec(),
                replies: start..counts.replies.min(start + at_once),
            };
            let blocks = (0..counts.replies).step_by(at_once);
            blocks.flat_map(|start| tiles.chunks(run).map(move |run| task(start, run))).collect()
        };
        (0..groups).flat_map(of_group).collect()
    }

    fn run(&self, task: &Task, seeds: &[Seed]) -> Result<Vec<Reply>, Error> {
        let finish = |((sum, (section, reply)), seed): ((Sum, (usize, usize)), &Seed)| {
            let index = section * self.plan.packing().counts.replies + reply;
            Reply::new(self.plan, self.key, index, sum, seed)
        };
        self.merged(task)?.into_iter().zip(task.replies()).zip(seeds).map(finish).collect()
    }

    /// What a task replies, in the order of [`Task::replies`]: sums, or several in one.
    fn merged(&self, task: &Task) -> Result<Vec<Sum>, Error> {
        let packing = self.plan.packing();
        let (levels, sections) = (packing.tiling.levels, &task.sections);
        let outputs = packing.merged(task.replies.start).start..packing.merged(task.replies.end - 1).end;
        let mut replies = Vec::with_capacity(sections.len() * task.replies.len());
        let mut merges = Vec::with_capacity(sections.len());
        for first in outputs.clone().step_by(OUTPUTS_PER_TASK) {
            let blocks = first..outputs.end.min(first + OUTPUTS_PER_TASK);
            let mut sums = self.sums(sections, blocks.clone())?.into_iter();
            if levels == 0 {
                replies.extend(sums);
                continue;
            }
            for output in blocks {
                if merges.is_empty() {
                    let fresh = sections.iter().map(|_| Merge::new(self.key, levels));
                    merges = fresh.collect::<Result<Vec<_>, _>>()?;
                }
                merges.iter_mut().zip(&mut sums).try_for_each(|(merge, sum)| merge.add(sum))?;
                let next = output + 1;
                if next == outputs.end || next.is_multiple_of(1 << levels) {
                    replies.extend(merges.drain(..).map(Merge::finish));
                }
            }
        }
        Ok(replies)
    }

    /// For each of some blocks of outputs, the sums of these sections.
    fn sums(&self, sections: &[usize], outputs: Range<usize>) -> Result<Vec<Sum>, Error> {
        match &self.inputs {
            Inputs::Packed(bytes) => self.products(bytes, sections),
            Inputs::Read(ciphertexts) => self.sums_of(ciphertexts, sections, outputs),
        }
    }

    /// [`Chunk::sums`] of one product each.
    fn products(&self, bytes: &[u8], sections: &[usize]) -> Result<Vec<Sum>, Error> {
        let mut coefficients = Coefficients::default();
        let [mut first, mut second] = [(); 2].map(|()| Values::default());
        let weight = self.plan.packing().weight(sections[0], 0);
        let mut residues = |prime, buffer| self.weights.residues(weight, prime, &mut coefficients, buffer);
        let weights = [residues(0, &mut first)?, residues(1, &mut second)?];
        let ciphertext_bytes = self.plan.parameters().ciphertext_bytes();
        let product = |&section: &usize| {
            let bytes = &bytes[(section - self.sections.start) * ciphertext_bytes..][..ciphertext_bytes];
            Ok(Sum::product(bytes, &weights)?)
        };
        sections.iter().map(product).collect()
    }

    /// [`Chunk::sums`] of all ciphertexts.
    fn sums_of(
        &self,
        ciphertexts: &[Ciphertext],
        sections: &[usize],
        outputs: Range<usize>,
    ) -> Result<Vec<Sum>, Error> {
        let packing = self.plan.packing();
        let before = self.sections.start * packing.counts.channels;
        let index = |section: usize, output: usize| section * packing.counts.outputs + output;
        let count = sections.len() * outputs.len();
        let mut sums: Vec<Sum> = (0..count).map(|_| Sum::new(self.plan.parameters())).collect();
        let channels: Vec<usize> = (0..packing.counts.channels).collect();
        let rows = match self.weights.keep() {
            Keep::Transformed => OUTPUTS_PER_TASK,
            Keep::Plain => outputs_at_once(sections.len()),
        };
        let mut coefficients = Coefficients::default();
        let mut buffers = vec![Values::default(); rows.min(outputs.len()) * CHANNELS_AT_ONCE.min(channels.len())];
        for channels in channels.chunks(CHANNELS_AT_ONCE) {
            let inputs = |&section: &usize| -> Vec<_> {
                let first = index(section, outputs.start);
                channels.iter().map(|&channel| &ciphertexts[packing.input(first, channel) - before]).collect()
            };
            let inputs: Vec<Vec<_>> = sections.iter().map(inputs).collect();
            for prime in 0..2 {
                for (first, sums) in outputs.clone().step_by(rows).zip(sums.chunks_mut(rows * sections.len())) {
                    let mut buffers = buffers.iter_mut();
                    let mut row = |output: usize| {
                        let weights = channels.iter().zip(buffers.by_ref()).map(|(&channel, buffer)| {
                            let weight = packing.weight(index(sections[0], output), channel);
                            self.weights.residues(weight, prime, &mut coefficients, buffer)
                        });
                        weights.collect::<Result<Vec<_>, _>>()
                    };
                    let last = outputs.end.min(first + rows);
                    let weights = (first..last).map(&mut row).collect::<Result<Vec<_>, _>>()?;
                    Sum::multiply_add_all(sums, prime, &inputs, &weights)?;
                }
            }
        }
        Ok(sums)
    }
}

impl Task {
    /// Section and number in it of each reply, in the order in which they are made.
    fn replies(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.replies.clone().flat_map(|reply| self.sections.iter().map(move |&section| (section, reply)))
    }
}
