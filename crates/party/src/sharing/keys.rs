//! The keys of suite `fss`: which gates a plan needs, in batches, and how a dealer's keys get to a party.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use privet_channel::Channel;
use privet_fss::{ExtendBounded, Gate, KeyBytes, KeyFile, Relu, Role, Seeds, Select, Sign, Source, Truncate};
use privet_gmw::cost::Cost;
use privet_prg::{Prg, Seed};
use privet_program::{Operation, Operator, Program};
use privet_ring::tournament::matches;

use super::layers::pooling_stages;
use crate::Error;

/// Bytes of keys in one message.
const MESSAGE_BYTES: usize = 1 << 20;

/// What a channel adds to a message.
const FRAME_BYTES: usize = 5;

/// A gate and how many elements it is evaluated on at once: one key.
pub(super) struct Batch {
    gate: Box<dyn Gate + Send + Sync>,
    count: usize,
    /// Whether its messages travel with those of the batch before.
    joins: bool,
}

impl Batch {
    fn new(gate: impl Gate + Send + Sync + 'static, count: usize) -> Self {
        Self { gate: Box::new(gate), count, joins: false }
    }

    fn key_bytes(&self) -> KeyBytes {
        self.gate.key_bytes(self.count)
    }

    /// Traffic online, without correlations.
    fn cost(&self) -> Cost {
        let messages = self.gate.message_bytes(self.count);
        let bytes = messages.iter().map(|bytes| (bytes + FRAME_BYTES) as u64).sum();
        let rounds = if self.joins { 0 } else { messages.len() as u64 };
        Cost { client_bytes: bytes, server_bytes: bytes, rounds, ..Cost::default() }
    }
}

/// The batch of an extension of `count` values that leave a bit of their ring unused.
pub(super) fn extend(count: usize, from: u32, to: u32) -> Batch {
    Batch::new(ExtendBounded::signed(from, to), count)
}

/// The batches of an operation from a ring of `from` bits to one of `to` bits; `exact`: truncations compute the carry.
pub(super) fn of_operation(program: &Program, operation: &Operation, [from, to]: [u32; 2], exact: bool) -> Vec<Batch> {
    let count = program.value(operation.inputs[0]).len();
    match &operation.operator {
        Operator::Relu => vec![Batch::new(Relu::new(from, to), count)],
        Operator::Truncate { bits } if exact && *bits > 0 => vec![Batch::new(Truncate::new(from, *bits), count)],
        Operator::MaxPool2d { window } => {
            let stages = pooling_stages(program, operation, window);
            let levels = stages.iter().flat_map(|groups| matches(groups.sizes()));
            levels.map(|count| Batch::new(Relu::new(from, from), count)).collect()
        }
        Operator::Argmax { .. } => {
            let groups = program.value(operation.output).len();
            let level = |count| {
                let positions = Batch { joins: true, ..Batch::new(Select::new(to), count) };
                [Batch::new(Sign::new(from), count), Batch::new(Select::new(from), count), positions]
            };
            matches(std::iter::repeat_n(count / groups, groups)).into_iter().flat_map(level).collect()
        }
        _ => Vec::new(),
    }
}

/// Online traffic of batches.
pub(super) fn cost(batches: &[Batch]) -> Cost {
    batches.iter().map(Batch::cost).sum()
}

/// Bytes of the bodies of these batches' keys at one party.
pub(super) fn body_bytes(batches: &[Batch], role: Role) -> u64 {
    batches.iter().map(|batch| batch.key_bytes().of(role) as u64).sum()
}

/// Bytes on the wire for these batches' keys, from the dealer to one party.
pub(super) fn wire_bytes(batches: &[Batch], role: Role) -> u64 {
    let messages = batches.iter().flat_map(|batch| parts(batch.key_bytes(), role));
    messages.map(|bytes| (bytes + FRAME_BYTES) as u64).sum()
}

/// Lengths of the messages that carry one batch's key: words, then the server's corrections.
fn parts(bytes: KeyBytes, role: Role) -> Vec<usize> {
    let corrections = if role == Role::Server { bytes.corrections } else { 0 };
    let mut parts = Vec::new();
    for mut left in [bytes.words, corrections] {
        while left > 0 {
            parts.push(left.min(MESSAGE_BYTES));
            left -= left.min(MESSAGE_BYTES);
        }
    }
    parts
}

/// Messages that wait for a party that is slower than the dealer, at most.
const QUEUE: usize = 8;

/// A message of keys: words go to both parties.
type Message = Arc<Vec<u8>>;

/// The dealer's side: makes the keys of all batches, one after the other, from both parties' generators, while a thread for
/// each party sends what is made.
pub(super) fn deal<'a>(
    batches: impl Iterator<Item = &'a Batch>,
    [client, server]: [&mut Channel; 2],
    mut generators: [Prg; 2],
) -> Result<(), Error> {
    let (to_client, for_client) = sync_channel(QUEUE);
    let (to_server, for_server) = sync_channel(QUEUE);
    thread::scope(|scope| {
        let sending = [(client, for_client), (server, for_server)]
            .map(|(channel, messages)| scope.spawn(move || send_all(channel, &messages)));
        let mut words = Words { queues: [to_client, to_server], gathered: Vec::new() };
        let mut dealt = Ok(());
        for batch in batches {
            let [client, server] = generators.each_mut().map(Prg::seed);
            dealt = words.deal(batch, &Seeds { client, server });
            if dealt.is_err() {
                break;
            }
        }
        drop(words);
        // A link that failed is why dealing did.
        let [client, server] = sending.map(|thread| thread.join().expect("sending does not panic"));
        client.and(server)?;
        Ok(dealt.map_err(privet_fss::Error::from)?)
    })
}

fn send_all(channel: &mut Channel, messages: &Receiver<Message>) -> Result<(), privet_channel::Error> {
    messages.iter().try_for_each(|message| channel.send(&message))
}

/// Hands what is written to both parties, in messages of [`MESSAGE_BYTES`].
struct Words {
    queues: [SyncSender<Message>; 2],
    gathered: Vec<u8>,
}

impl Words {
    /// Deals one batch to the end.
    fn deal(&mut self, batch: &Batch, seeds: &Seeds) -> io::Result<()> {
        let corrections = batch.gate.deal(batch.count, seeds, self).map_err(io::Error::other)?;
        self.hand_out()?;
        let [_, server] = &self.queues;
        corrections.chunks(MESSAGE_BYTES).try_for_each(|part| put(server, Arc::new(part.to_vec())))
    }

    fn hand_out(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let message = Arc::new(std::mem::replace(&mut self.gathered, Vec::with_capacity(MESSAGE_BYTES)));
        self.queues.iter().try_for_each(|queue| put(queue, Arc::clone(&message)))
    }
}

fn put(queue: &SyncSender<Message>, message: Message) -> io::Result<()> {
    queue.send(message).map_err(|_| io::Error::other("a link to a party failed"))
}

impl Write for Words {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MESSAGE_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        if self.gathered.len() == MESSAGE_BYTES {
            self.hand_out()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A party's side of [`deal`]: writes the bodies of the keys of `batches` to `keys`.
pub(super) fn receive(
    batches: &[Batch],
    role: Role,
    dealer: &mut Channel,
    keys: &mut dyn Write,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    for bytes in batches.iter().flat_map(|batch| parts(batch.key_bytes(), role)) {
        buffer.resize(bytes, 0);
        dealer.recv_into(buffer)?;
        keys.write_all(buffer).map_err(privet_fss::Error::from)?;
    }
    Ok(())
}

/// A party's keys while they are used up: the seed, and the bodies of all batches in order.
pub struct Keys {
    seed: Seed,
    bodies: Option<File>,
}

impl Keys {
    /// Keys whose bodies lie elsewhere, in the store.
    pub(super) fn put_aside(seed: Seed) -> Self {
        Self { seed, bodies: None }
    }

    /// Keys whose bodies begin the file `stored`.
    pub(super) fn new(seed: Seed, stored: File) -> Self {
        Self { seed, bodies: Some(stored) }
    }

    /// The seed that is stored beside the bodies.
    pub(super) fn seed(&self) -> &Seed {
        &self.seed
    }

    /// What evaluates gates: the seeds of all batches, and their bodies.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the bodies lie elsewhere.
    pub(super) fn open(self) -> Result<(Prg, impl Source), Error> {
        let bodies = self.bodies.ok_or_else(|| Error::Misuse("the keys lie in the store: claim them there".into()))?;
        Ok((Prg::from_seed(&self.seed), KeyFile::new(bodies)))
    }
}
