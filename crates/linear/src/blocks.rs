//! The server of layers whose channels lie in blocks of their own: sums of ciphertexts times numbers, a tile at a time.

use std::ops::Range;

use privet_bfv::{Blocks, Group, Panel, PublicKey, Sum};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::error::Error;
use crate::mail::{Inbox, Outbox};
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
    let (outputs, channels) = (plan.packing().counts.outputs, plan.packing().counts.channels);
    let threads = rayon::current_num_threads();
    let per_task = sums_per_task(outputs, threads);
    let mut output = vec![0; plan.output_len()];
    let (mut inbox, mut outbox) = (Inbox::new(plan, channels), Outbox::new(plan));
    let mut panels: Vec<Panel> = (0..channels).step_by(Panel::MOST).map(|_| Panel::new(plan.parameters())).collect();
    for section in 0..plan.sections() {
        read(plan, inbox.take(channel, channels)?, &mut panels)?;
        for start in (0..outputs).step_by(per_task * threads) {
            let end = outputs.min(start + per_task * threads);
            let seeds: Vec<Seed> = (start..end).map(|_| prg.seed()).collect();
            let work = seeds.par_chunks(per_task).enumerate().map(|(task, seeds)| {
                let first = start + task * per_task;
                let sums = sums(plan, &panels, weights, first..first + seeds.len())?;
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

/// Reads the ciphertexts of a tile.
fn read(plan: &Plan, bytes: &[u8], panels: &mut [Panel]) -> Result<(), Error> {
    let parameters = plan.parameters();
    let ciphertext_bytes = parameters.ciphertext_bytes();
    for (panel, bytes) in panels.iter_mut().zip(bytes.chunks(Panel::MOST * ciphertext_bytes)) {
        let groups = panel.groups(bytes.len() / ciphertext_bytes)?.par_iter_mut();
        let read = groups
            .zip(bytes.par_chunks(Group::MOST * ciphertext_bytes))
            .map(|(group, bytes)| group.read(parameters, bytes));
        read.collect::<Result<(), _>>()?;
    }
    Ok(())
}
