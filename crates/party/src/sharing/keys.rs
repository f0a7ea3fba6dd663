//! The keys of suite `fss`: which gates a plan needs, in batches, and how a dealer's keys get to a party.

use std::fs::File;
use std::io::Write;

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
            let levels = stages.iter().flat_map(|groups| matches(groups.iter().map(Vec::len)));
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

/// The dealer's side: makes the keys of `batches`, one after the other, from both parties' generators.
pub(super) fn deal(
    batches: &[Batch],
    [client, server]: [&mut Channel; 2],
    [for_client, for_server]: [&mut Prg; 2],
) -> Result<(), Error> {
    for batch in batches {
        let seeds = Seeds { client: for_client.seed(), server: for_server.seed() };
        let mut words = Words { channels: [&mut *client, &mut *server], gathered: Vec::new(), failure: None };
        let dealt = batch.gate.deal(batch.count, &seeds, &mut words).map_err(Error::from);
        let corrections = words.finish().and(dealt)?;
        for part in corrections.chunks(MESSAGE_BYTES) {
            server.send(part)?;
        }
    }
    Ok(())
}

/// Sends what is written to both parties, in messages of [`MESSAGE_BYTES`].
struct Words<'a> {
    channels: [&'a mut Channel; 2],
    gathered: Vec<u8>,
    failure: Option<privet_channel::Error>,
}

impl Words<'_> {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        for channel in &mut self.channels {
            if let Err(error) = channel.send(bytes) {
                self.failure = Some(error);
                return Err(std::io::Error::other("a link to a party failed"));
            }
        }
        Ok(())
    }

    /// Sends the rest, and tells how the links failed if one did.
    fn finish(mut self) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.gathered);
        if self.failure.is_none() && !rest.is_empty() {
            // The failure is noted.
            let _ = self.send(&rest);
        }
        self.failure.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl Write for Words<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(MESSAGE_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        if self.gathered.len() == MESSAGE_BYTES {
            let full = std::mem::take(&mut self.gathered);
            self.send(&full)?;
            self.gathered = full;
            self.gathered.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
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
