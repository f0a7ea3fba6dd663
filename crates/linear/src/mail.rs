//! Ciphertexts in and replies out, some to a message.

use std::ops::Range;

use privet_bfv::{Ciphertext, Parameters};
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
        channel.send_parts(&ciphertexts)?;
    }
    Ok(())
}

/// Takes a layer's ciphertexts in as they are needed.
pub(crate) struct Inbox<I> {
    ciphertext_bytes: usize,
    due: I,
    bytes: Vec<u8>,
    /// What of `bytes` was received and not yet taken.
    waiting: Range<usize>,
}

impl Inbox<()> {
    /// For at most so many at once.
    pub(crate) fn new(plan: &Plan, most: usize) -> Inbox<impl Iterator<Item = Range<usize>> + use<>> {
        let (count, ciphertext_bytes) = (plan.input_ciphertexts(), plan.parameters().ciphertext_bytes());
        let bytes = vec![0; most_waiting(plan, most) * ciphertext_bytes];
        Inbox { ciphertext_bytes, due: messages(count), bytes, waiting: 0..0 }
    }
}

/// The most ciphertexts that wait where so many are taken at once: those, and what else a message has.
pub(crate) fn most_waiting(plan: &Plan, most: usize) -> usize {
    (most + PER_MESSAGE - 1).min(plan.input_ciphertexts())
}

impl<I: Iterator<Item = Range<usize>>> Inbox<I> {
    /// The next `count` ciphertexts, of which there must be as many left.
    pub(crate) fn take(&mut self, channel: &mut Channel, count: usize) -> Result<&[u8], Error> {
        let length = count * self.ciphertext_bytes;
        if self.waiting.len() < length {
            self.bytes.copy_within(self.waiting.clone(), 0);
            self.waiting = 0..self.waiting.len();
        }
        while self.waiting.len() < length {
            let message = self.due.next().map_or(0, |message| message.len() * self.ciphertext_bytes);
            let end = self.waiting.end + message;
            channel.recv_into(&mut self.bytes[self.waiting.end..end])?;
            self.waiting.end = end;
        }
        let start = self.waiting.start;
        self.waiting.start += length;
        Ok(&self.bytes[start..start + length])
    }

    /// [`Inbox::take`], read, a message's worth at a time.
    pub(crate) fn read(
        &mut self,
        channel: &mut Channel,
        parameters: &Parameters,
        count: usize,
    ) -> Result<Vec<Ciphertext>, Error> {
        let mut ciphertexts = Vec::with_capacity(count);
        for part in in_groups(count, PER_MESSAGE) {
            let bytes = self.take(channel, part.len())?;
            let read = bytes.par_chunks(parameters.ciphertext_bytes());
            let read = read.map(|bytes| Ciphertext::from_bytes(parameters, bytes));
            ciphertexts.extend(read.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(ciphertexts)
    }
}

/// Gathers replies into messages.
pub(crate) struct Outbox<I> {
    due: I,
    pending: Vec<Vec<u8>>,
    /// Replies of the message that they are for.
    size: usize,
}

impl Outbox<()> {
    pub(crate) fn new(plan: &Plan) -> Outbox<impl Iterator<Item = Range<usize>> + use<>> {
        Outbox { due: messages(plan.output_ciphertexts()), pending: Vec::new(), size: 0 }
    }
}

impl<I: Iterator<Item = Range<usize>>> Outbox<I> {
    pub(crate) fn send(&mut self, channel: &mut Channel, reply: Vec<u8>) -> Result<(), Error> {
        if self.pending.is_empty() {
            self.size = self.due.next().map_or(1, |message| message.len());
        }
        self.pending.push(reply);
        if self.pending.len() == self.size {
            channel.send_parts(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }
}
