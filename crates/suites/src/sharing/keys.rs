//! The keys of suite `fss`, in batches: their sizes, and how they are dealt and used up.

use std::io::{self, Write};

use privet_channel::HEADER_BYTES;
use privet_fss::{Gate, KeyBytes, KeyFile, Role, Seeds, Source};
use privet_gmw::cost::Cost;
use privet_prg::{Prg, Seed};
use privet_seal::Stored;

use crate::Error;
use crate::bodies::Body;

/// A gate and how many elements it is evaluated on at once: one key.
pub(super) struct Batch {
    gate: Box<dyn Gate + Send + Sync>,
    count: usize,
    key_bytes: KeyBytes,
    /// Whether its messages travel with those of the batch before.
    joins: bool,
}

impl Batch {
    pub(super) fn new(gate: impl Gate + Send + Sync + 'static, count: usize) -> Self {
        Self { key_bytes: gate.key_bytes(count), gate: Box::new(gate), count, joins: false }
    }

    /// The same, whose messages travel with those of the batch before.
    pub(super) fn joining(self) -> Self {
        Self { joins: true, ..self }
    }

    /// Hashes on the path of one of its trees; none without trees.
    pub(super) fn tree_hashes(&self) -> Option<usize> {
        let per_key = self.key_bytes.words / self.count.max(1) / 16;
        (per_key > 0).then_some(per_key)
    }

    /// Seeds that its key draws for its parts.
    pub(super) fn parts(&self) -> usize {
        self.gate.parts(self.count)
    }

    /// Traffic online, without correlations.
    fn cost(&self) -> Cost {
        let messages = self.gate.message_bytes(self.count);
        let bytes = messages.iter().map(|bytes| (bytes + HEADER_BYTES) as u64).sum();
        let rounds = if self.joins { 0 } else { messages.len() as u64 };
        Cost { client_bytes: bytes, server_bytes: bytes, rounds, ..Cost::default() }
    }
}

/// Online traffic of batches.
pub(super) fn cost(batches: &[Batch]) -> Cost {
    batches.iter().map(Batch::cost).sum()
}

/// Bytes of the bodies of these batches' keys at one party.
pub(super) fn body_bytes(batches: &[Batch], role: Role) -> u64 {
    batches.iter().map(|batch| batch.key_bytes.of(role) as u64).sum()
}

/// The dealer's side of one step: makes the keys of `batches`, one after the other, from both parties' generators.
pub(super) fn deal(batches: &[Batch], bodies: &mut [Body; 2], generators: &mut [Prg; 2]) -> Result<(), Error> {
    for batch in batches {
        let [client, server] = generators.each_mut().map(Prg::seed);
        let corrections = batch.gate.deal(batch.count, &Seeds { client, server }, &mut Both(bodies))?;
        bodies[1].write_all(&corrections).map_err(privet_fss::Error::from)?;
    }
    bodies.iter_mut().try_for_each(Write::flush).map_err(|error| privet_fss::Error::from(error).into())
}

/// Writes the same to both bodies.
struct Both<'a>(&'a mut [Body; 2]);

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.iter_mut().try_for_each(|body| body.write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A party's keys while they are used up: the seed, and the bodies of all batches in order.
pub struct Keys {
    seed: Seed,
    bodies: Option<Stored>,
}

impl Keys {
    /// Keys whose bodies lie elsewhere, in the store.
    pub(super) fn put_aside(seed: Seed) -> Self {
        Self { seed, bodies: None }
    }

    /// Keys whose bodies begin the file `stored`.
    pub(super) fn new(seed: Seed, stored: Stored) -> Self {
        Self { seed, bodies: Some(stored) }
    }

    /// The seed that is stored beside the bodies.
    pub(super) fn seed(&self) -> &Seed {
        &self.seed
    }

    /// What evaluates gates: the seeds of all batches, and their bodies. Fails with [`Error::Misuse`] if the bodies lie
    /// elsewhere.
    pub(super) fn open(self) -> Result<(Prg, impl Source), Error> {
        let bodies = self.bodies.ok_or_else(|| Error::Misuse("the keys lie in the store: claim them there".into()))?;
        Ok((Prg::from_seed(&self.seed), KeyFile::new(bodies)))
    }
}
