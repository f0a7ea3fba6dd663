//! The server of layers whose channels lie in blocks of their own: sums of ciphertexts times numbers, a tile at a time.

use std::ops::Range;

use privet_bfv::{Blocks, Group, Panel, PublicKey, Sum};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::error::Error;
use crate::mail::{Outbox, PER_MESSAGE, messages};
use crate::plan::Plan;
use crate::server::Reply;
use crate::weights::TransformedWeights;

/// Most sums that a task holds at once: many for each ciphertext that it reads, and a multiple of those that a panel makes side by side.
const SUMS_PER_TASK: usize = 24;

/// [`crate::evaluate`] for such a plan.
pub(crate) fn evaluate(
    channel: &mut Channel,
    plan: &Plan,
    key: &PublicKey,
    weights: &TransformedWeights,
    prg: &mut Prg,
) -> Result<Vec<u64>, Error> {
    let outputs = plan.packing().counts.outputs;
    let threads = rayon::current_num_threads();
    let per_task = sums_per_task(outputs, threads);
    let mut output = vec![0; plan.output_len()];
    let (mut inbox, mut outbox) = (Inbox::new(plan), Outbox::new(plan));
    for section in 0..plan.sections() {
        let panels = inbox.read(channel)?;
        for start in (0..outputs).step_by(per_task * threads) {
            let end = outputs.min(start + per_task * threads);
            let seeds: Vec<Seed> = (start..end).map(|_| prg.seed()).collect();
            let work = seeds.par_chunks(per_task).enumerate().map(|(task, seeds)| {
                let first = start + task * per_task;
                let sums = sums(plan, panels, weights, first..first + seeds.len())?;
                let replies = (section * outputs + first..).zip(sums).zip(seeds);
                replies.map(|((index, sum), seed)| Reply::new(plan, key, index, sum, seed)).collect()
            });
            for reply in work.collect::<Result<Vec<Vec<_>>, Error>>()?.into_iter().flatten() {
                reply.deliver(channel, &mut outbox, &mut output)?;
            }
        }
    }
    Ok(output)
}

/// Sums that a task holds at once, of so many of a tile: few enough to keep all threads busy.
pub(crate) fn sums_per_task(outputs: usize, threads: usize) -> usize {
    outputs.div_ceil(threads).next_multiple_of(Panel::SIDE_BY_SIDE).min(SUMS_PER_TASK)
}

/// Those of a tile for some blocks of outputs.
fn sums(plan: &Plan, panels: &[Panel], weights: &TransformedWeights, outputs: Range<usize>) -> Result<Vec<Sum>, Error> {
    let (packing, parameters) = (plan.packing(), plan.parameters());
    let blocks = Blocks { count: packing.tiling.blocks.expect("a plan of blocks"), width: 1 };
    let mut sums = vec![Sum::new(parameters); outputs.len()];
    for (panel, first) in panels.iter().zip((0..).step_by(Panel::MOST)) {
        let channels = first..packing.counts.channels.min(first + Panel::MOST);
        let factors: Vec<Vec<i64>> =
            outputs.clone().map(|output| weights.factors(output, channels.clone(), blocks.count)).collect();
        let factors: Vec<&[i64]> = factors.iter().map(Vec::as_slice).collect();
        panel.multiply_add(blocks, &mut sums, &factors)?;
    }
    Ok(sums)
}

/// Reads the ciphertexts of one tile after the other.
struct Inbox<'a, I> {
    plan: &'a Plan,
    due: I,
    /// Received and not yet read.
    bytes: Vec<u8>,
    panels: Vec<Panel>,
}

impl<'a> Inbox<'a, ()> {
    fn new(plan: &'a Plan) -> Inbox<'a, impl Iterator<Item = Range<usize>> + use<>> {
        let panels = plan.packing().counts.channels.div_ceil(Panel::MOST);
        let panels = (0..panels).map(|_| Panel::new(plan.parameters())).collect();
        Inbox { plan, due: messages(plan.input_ciphertexts()), bytes: Vec::with_capacity(bytes_at_once(plan)), panels }
    }
}

impl<I: Iterator<Item = Range<usize>>> Inbox<'_, I> {
    /// The next tile's ciphertexts, of which there must be as many left.
    fn read(&mut self, channel: &mut Channel) -> Result<&[Panel], Error> {
        let parameters = self.plan.parameters();
        let ciphertext_bytes = parameters.ciphertext_bytes();
        let taken = self.plan.packing().counts.channels * ciphertext_bytes;
        while self.bytes.len() < taken {
            let message = self.due.next().map_or(0, |message| message.len());
            self.bytes.extend(channel.recv(message * ciphertext_bytes)?);
        }
        for (panel, bytes) in self.panels.iter_mut().zip(self.bytes[..taken].chunks(Panel::MOST * ciphertext_bytes)) {
            let groups = panel.groups(bytes.len() / ciphertext_bytes)?.par_iter_mut();
            let read = groups
                .zip(bytes.par_chunks(Group::MOST * ciphertext_bytes))
                .map(|(group, bytes)| group.read(parameters, bytes));
            read.collect::<Result<(), _>>()?;
        }
        self.bytes.drain(..taken);
        Ok(&self.panels)
    }
}

/// The most bytes of ciphertexts that wait: those of a tile, and what else a message has.
pub(crate) fn bytes_at_once(plan: &Plan) -> usize {
    let most = plan.packing().counts.channels + PER_MESSAGE - 1;
    most.min(plan.input_ciphertexts()) * plan.parameters().ciphertext_bytes()
}
