//! The server: weights transformed once, products and replies.

use std::borrow::Cow;
use std::ops::Range;

use privet_bfv::{Ciphertext, PublicKey, Sum, Weights};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use crate::error::{Error, Misuse};
use crate::plan::{Plan, messages};

/// Transformed weights of a layer are kept if they take this much memory at most; otherwise they are transformed again at
/// each evaluation.
const KEPT_BYTES: usize = 64 << 20;

/// Sums that a task holds at once: tiles that meet the same weights.
const TILES_PER_TASK: usize = 8;

/// Input channel blocks of a sum that are multiplied before the next sum of the task: their weights take 1 MiB.
const CHANNELS_AT_ONCE: usize = 16;

/// Tasks between two messages, per thread.
const TASKS_PER_THREAD: usize = 4;

/// A layer's weights, made once and used in any number of sessions.
pub struct TransformedWeights {
    plan: Plan,
    form: Form,
}

enum Form {
    Transformed(Vec<Weights>),
    Plain(Vec<i32>),
}

impl TransformedWeights {
    /// Takes the weights of the plan's layer, in the layer's own order.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`]; [`Misuse::WeightTooLarge`] for a weight that the plan's noise bound does not cover.
    pub fn new(plan: &Plan, weights: &[i64]) -> Result<Self, Error> {
        let (expected, actual) = (plan.weights_len(), weights.len());
        if actual != expected {
            return Err(Misuse::WrongLength { what: "weights", expected, actual }.into());
        }
        let weight_bits = plan.weight_bits();
        if let Some(index) = weights.iter().position(|w| w.unsigned_abs() >> weight_bits != 0) {
            return Err(Misuse::WeightTooLarge { index, weight_bits }.into());
        }
        // At most 31 bits and a sign, as just checked.
        let weights: Vec<i32> = weights.iter().map(|&w| w as i32).collect();
        let form = if 16 * plan.parameters().degree() * plan.weight_polynomials() <= KEPT_BYTES {
            let transformed =
                (0..plan.weight_polynomials()).into_par_iter().map(|index| transform(plan, index, &weights));
            Form::Transformed(transformed.collect::<Result<_, _>>()?)
        } else {
            Form::Plain(weights)
        };
        Ok(Self { plan: plan.clone(), form })
    }

    fn polynomial(&self, index: usize) -> Result<Cow<'_, Weights>, Error> {
        match &self.form {
            Form::Transformed(polynomials) => Ok(Cow::Borrowed(&polynomials[index])),
            Form::Plain(weights) => Ok(Cow::Owned(transform(&self.plan, index, weights)?)),
        }
    }
}

fn transform(plan: &Plan, index: usize, weights: &[i32]) -> Result<Weights, Error> {
    let mut polynomial = vec![0; plan.parameters().degree()];
    plan.packing().fill_weights(index, weights, &mut polynomial);
    Ok(Weights::new(plan.parameters(), &polynomial)?)
}

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
    if !plan.agrees_with(&weights.plan) {
        return Err(Misuse::PlansDiffer { what: "weights" }.into());
    }
    if !plan.parameters().agrees_with(key.parameters()) {
        return Err(Misuse::PlansDiffer { what: "keys" }.into());
    }
    let inputs = receive(channel, plan)?;
    let mut output = vec![0; plan.output_len()];
    let mut outbox =
        Outbox { channel, due: messages(plan.output_ciphertexts()), pending: Vec::new(), waiting: 0, size: 0 };
    let tasks = tasks(plan);
    for batch in tasks.chunks(TASKS_PER_THREAD * rayon::current_num_threads()) {
        let work: Vec<(Range<usize>, Vec<Seed>)> =
            batch.iter().map(|task| (task.clone(), task.clone().map(|_| prg.seed()).collect())).collect();
        let done: Vec<Vec<Reply>> = work
            .into_par_iter()
            .map(|(task, seeds)| run(plan, &inputs, weights, key, task, &seeds))
            .collect::<Result<_, _>>()?;
        for reply in done.into_iter().flatten() {
            outbox.send(&reply.bytes)?;
            reply.places.into_iter().zip(reply.shares).for_each(|(place, share)| output[place] = share);
        }
    }
    Ok(output)
}

fn receive(channel: &mut Channel, plan: &Plan) -> Result<Vec<Ciphertext>, Error> {
    let each = plan.parameters().ciphertext_bytes();
    let mut inputs = Vec::with_capacity(plan.input_ciphertexts());
    for message in messages(plan.input_ciphertexts()) {
        let bytes = channel.recv(message.len() * each)?;
        let read = bytes.par_chunks(each).map(|chunk| Ciphertext::from_bytes(plan.parameters(), chunk));
        inputs.extend(read.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(inputs)
}

/// Runs of output polynomials that use the same weights, short enough to keep all threads busy.
fn tasks(plan: &Plan) -> Vec<Range<usize>> {
    let tiles = plan.packing().tiles();
    let blocks = plan.output_ciphertexts() / tiles;
    let wanted = (TASKS_PER_THREAD * rayon::current_num_threads()).div_ceil(blocks);
    let run = tiles.div_ceil(wanted).min(TILES_PER_TASK);
    let of_block = |block: usize| {
        let end = (block + 1) * tiles;
        (block * tiles..end).step_by(run).map(move |start| start..end.min(start + run))
    };
    (0..blocks).flat_map(of_block).collect()
}

/// One output polynomial, finished.
struct Reply {
    bytes: Vec<u8>,
    places: Vec<usize>,
    shares: Vec<u64>,
}

fn run(
    plan: &Plan,
    inputs: &[Ciphertext],
    weights: &TransformedWeights,
    key: &PublicKey,
    task: Range<usize>,
    seeds: &[Seed],
) -> Result<Vec<Reply>, Error> {
    let packing = plan.packing();
    let mut sums = vec![Sum::new(plan.parameters()); task.len()];
    let channels: Vec<usize> = (0..packing.counts.channels).collect();
    for channels in channels.chunks(CHANNELS_AT_ONCE) {
        // All sums of a task meet the same weights.
        let polynomials = channels.iter().map(|&channel| weights.polynomial(packing.weight(task.start, channel)));
        let polynomials = polynomials.collect::<Result<Vec<_>, _>>()?;
        for (sum, index) in sums.iter_mut().zip(task.clone()) {
            let inputs = channels.iter().map(|&channel| &inputs[packing.input(index, channel)]);
            let terms: Vec<_> = inputs.zip(polynomials.iter().map(|weights| &**weights)).collect();
            sum.multiply_add(&terms)?;
        }
    }
    let finish = |((sum, index), seed): ((Sum, usize), &Seed)| {
        let (positions, places): (Vec<_>, Vec<_>) = plan.packing().results(index).unzip();
        let mut bytes = Vec::with_capacity(plan.reply_bytes(index));
        let shares = sum.reply(key, &positions, &mut Prg::from_seed(seed), &mut bytes)?;
        Ok(Reply { bytes, places, shares })
    };
    sums.into_iter().zip(task).zip(seeds).map(finish).collect()
}

/// Gathers replies into messages.
struct Outbox<'a, I> {
    channel: &'a mut Channel,
    due: I,
    pending: Vec<u8>,
    /// Replies gathered, and replies of the message they are for.
    waiting: usize,
    size: usize,
}

impl<I: Iterator<Item = Range<usize>>> Outbox<'_, I> {
    fn send(&mut self, reply: &[u8]) -> Result<(), Error> {
        if self.waiting == 0 {
            self.size = self.due.next().map_or(1, |message| message.len());
        }
        self.pending.extend_from_slice(reply);
        self.waiting += 1;
        if self.waiting == self.size {
            self.channel.send(&self.pending)?;
            self.pending.clear();
            self.waiting = 0;
        }
        Ok(())
    }
}
