//! Ciphertexts in and replies out, some to a message.

use std::ops::Range;

use privet_bfv::Ciphertext;
use privet_channel::Channel;
use privet_prg::{Prg, Seed, Wiped};
use rayon::prelude::*;

use crate::error::Error;
use crate::plan::Plan;

/// Ciphertexts and replies travel this many to a message: half a megabyte or so.
pub(crate) const PER_MESSAGE: usize = 16;

/// The ciphertexts of each message.
pub(crate) fn messages(ciphertexts: usize) -> impl Iterator<Item = Range<usize>> {
    in_groups(ciphertexts, PER_MESSAGE)
}

/// The ciphertexts of each message, `most` to a message.
pub(crate) fn in_groups(ciphertexts: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..ciphertexts).step_by(most).map(move |start| start..ciphertexts.min(start + most))
}

/// Sends the ciphertexts of each message, which are made in parallel, each with randomness of its own: `fill` writes the
/// values with an index into `degree` zeros, which are wiped after, and `encrypt` appends their ciphertext of `each` bytes.
pub(crate) fn send_encrypted(
    channel: &mut Channel,
    messages: impl Iterator<Item = Range<usize>>,
    (degree, each): (usize, usize),
    prg: &mut Prg,
    fill: impl Fn(usize, &mut [u64]) + Sync,
    encrypt: impl Fn(&[u64], &mut Prg, &mut Vec<u8>) -> Result<(), privet_bfv::Error> + Sync,
) -> Result<(), Error> {
    for message in messages {
        let work: Vec<(usize, Seed)> = message.map(|index| (index, prg.seed())).collect();
        let ciphertexts: Vec<Vec<u8>> = work
            .into_par_iter()
            .map(|(index, seed)| {
                let (mut values, mut bytes) = (Wiped::from(vec![0; degree]), Vec::with_capacity(each));
                fill(index, &mut values);
                encrypt(&values, &mut Prg::from_seed(&seed), &mut bytes)?;
                Ok::<_, Error>(bytes)
            })
            .collect::<Result<_, _>>()?;
        channel.send(&ciphertexts.concat())?;
    }
    Ok(())
}

/// Reads a layer's ciphertexts as they are needed.
pub(crate) struct Inbox<'a, I> {
    plan: &'a Plan,
    due: I,
    /// Read and not yet taken.
    waiting: Vec<Ciphertext>,
}

impl<'a> Inbox<'a, ()> {
    pub(crate) fn new(plan: &'a Plan, most: usize) -> Inbox<'a, impl Iterator<Item = Range<usize>> + use<>> {
        let waiting = Vec::with_capacity((most + PER_MESSAGE - 1).min(plan.input_ciphertexts()));
        Inbox { plan, due: messages(plan.input_ciphertexts()), waiting }
    }
}

impl<I: Iterator<Item = Range<usize>>> Inbox<'_, I> {
    /// The next `count` ciphertexts, of which there must be as many left. Call [`Inbox::forget`] when they are used.
    pub(crate) fn read(&mut self, channel: &mut Channel, count: usize) -> Result<&[Ciphertext], Error> {
        let parameters = self.plan.parameters();
        let ciphertext_bytes = parameters.ciphertext_bytes();
        while self.waiting.len() < count {
            let Some(message) = self.due.next() else { break };
            let bytes = channel.recv(message.len() * ciphertext_bytes)?;
            let read = bytes.par_chunks(ciphertext_bytes).map(|chunk| Ciphertext::from_bytes(parameters, chunk));
            self.waiting.extend(read.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(&self.waiting[..count])
    }

    pub(crate) fn forget(&mut self, count: usize) {
        self.waiting.drain(..count);
    }
}

/// Gathers replies into messages.
pub(crate) struct Outbox<I> {
    due: I,
    pending: Vec<u8>,
    /// Replies gathered, and replies of the message they are for.
    waiting: usize,
    size: usize,
}

impl Outbox<()> {
    pub(crate) fn new(plan: &Plan) -> Outbox<impl Iterator<Item = Range<usize>> + use<>> {
        let replies = PER_MESSAGE.min(plan.output_ciphertexts());
        let pending = Vec::with_capacity(replies * plan.reply_bytes(0));
        Outbox { due: messages(plan.output_ciphertexts()), pending, waiting: 0, size: 0 }
    }
}

impl<I: Iterator<Item = Range<usize>>> Outbox<I> {
    pub(crate) fn send(&mut self, channel: &mut Channel, reply: &[u8]) -> Result<(), Error> {
        if self.waiting == 0 {
            self.size = self.due.next().map_or(1, |message| message.len());
        }
        self.pending.extend_from_slice(reply);
        self.waiting += 1;
        if self.waiting == self.size {
            channel.send(&self.pending)?;
            self.pending.clear();
            self.waiting = 0;
        }
        Ok(())
    }
}
