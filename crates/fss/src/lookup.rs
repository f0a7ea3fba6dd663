//! Public tables of at most 4096 entries, in two rounds.
//!
//! With `x^ = x + r` opened and bits `e` of a point function at `r` over the whole domain, a party adds up `T(x^ - j)` over
//! all `j` where its bit is 1. The two sums cancel but for `j = r`, where one party alone has the bit: the client's sum less
//! the server's is `s T(x)`, with a sign `s` that the dealer knows. The parties open `w^ = s T(x) + q`, and
//! `T(x) = s w^ - s q` is linear in shares of `s` and `s q`.

use std::io::Write;

use privet_prg::{Block, KEYS_A_PART, Seed};
use privet_ring::Modulus;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::compared;
use crate::point::{self, Table};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, secrets};

/// Keys that are made or read at once.
const CHUNK: usize = 2048;

/// The largest table has 2 to this power entries.
pub const MOST_BITS: u32 = 12;

/// `T(x)` from Z_2^n into Z_2^m.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    input: Modulus,
    output: Modulus,
    table: Vec<u64>,
}

impl Lookup {
    /// A table of `2^n` entries, each reduced to `wide` bits.
    ///
    /// # Panics
    /// Unless the number of entries is a power of two from 2 to 4096 and `1 <= wide <= 64`.
    pub fn new(wide: u32, mut table: Vec<u64>) -> Self {
        let bits = table.len().max(1).ilog2();
        assert!(table.len().is_power_of_two() && (1..=MOST_BITS).contains(&bits), "2 to 4096 entries, a power of two");
        let output = Modulus::new(wide);
        output.reduce_all(&mut table);
        Self { input: Modulus::new(bits), output, table }
    }

    /// Shares in Z_2^m of `T(x)`; `x`: this party's shares in Z_2^n. Two rounds.
    ///
    /// # Errors
    /// If the link or the key fails.
    pub fn evaluate(
        &self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (looking, message) = self.start(party.role, seed, x);
        let (reading, message) = looking.look(&party.channel.exchange(&message)?, body)?;
        reading.finish(&party.channel.exchange(&message)?, body)
    }

    /// This party's first step. Returns the message for the other.
    pub fn start(&self, role: Role, seed: &Seed, x: &[u64]) -> (Looking<'_>, Vec<u8>) {
        let mut streams = Streams::new(role, seed);
        let own = self.input.add(x, &Zeroizing::new(streams.masks(x.len(), self.input)));
        let message = self.input.pack(&own);
        (Looking { gate: self, role, streams, own }, message)
    }

    /// The sum of the entries at `x - j` for all `j` whose bit is set in `leaves`.
    fn sum(&self, x: u64, leaves: &[Block]) -> u64 {
        let mask = self.table.len() - 1;
        let mut sum = 0_u64;
        for (first, leaf) in (0..self.table.len()).step_by(128).zip(leaves) {
            for j in 0..self.table.len().min(128) {
                let entry = self.table[(x as usize).wrapping_sub(first + j) & mask];
                sum = sum.wrapping_add(entry & ((leaf >> j) as u64 & 1).wrapping_neg());
            }
        }
        sum
    }
}

/// A batch of [`Lookup`] whose masked input is on its way.
pub struct Looking<'a> {
    gate: &'a Lookup,
    role: Role,
    streams: Streams,
    own: Vec<u64>,
}

impl<'a> Looking<'a> {
    /// Looks up, given the other party's message; reads the words from `body`. Returns the next message.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn look(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<(Reading<'a>, Vec<u8>), Error> {
        let Lookup { input, output, .. } = self.gate;
        let opened = input.add(&self.own, &input.unpack(theirs, self.own.len())?);
        let mut sums = Vec::with_capacity(opened.len());
        let hashes = compared::hashes(body)?;
        for (chunk, opened) in opened.chunks(CHUNK).enumerate() {
            let hashes = hashes.behind(chunk * CHUNK).parts(opened.len());
            let mut roots = Zeroizing::new(vec![0; opened.len()]);
            self.streams.roots(&mut roots);
            let bytes = body.pull(opened.len() * point::words(input.bits()) * 16)?;
            let words = bytes.as_chunks::<16>().0;
            let look = |i: usize| {
                let own = point::words_of(i, opened.len(), input.bits(), words);
                self.gate.sum(opened[i], &point::everywhere(input.bits(), &hashes[i / KEYS_A_PART], roots[i], &own))
            };
            sums.par_extend((0..opened.len()).into_par_iter().map(look));
        }
        if self.role == Role::Server {
            sums.iter_mut().for_each(|sum| *sum = sum.wrapping_neg());
        }
        let own = output.add(&sums, &Zeroizing::new(self.streams.masks(sums.len(), *output)));
        let message = output.pack(&own);
        Ok((Reading { gate: self.gate, role: self.role, streams: self.streams, own }, message))
    }
}

/// A batch of [`Lookup`] whose signed entry is on its way.
pub struct Reading<'a> {
    gate: &'a Lookup,
    role: Role,
    streams: Streams,
    own: Vec<u64>,
}

impl Reading<'_> {
    /// This party's shares of the entries, `[n]`; the server reads its corrections from `body`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn finish(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let ring = self.gate.output;
        let opened = ring.add(&self.own, &ring.unpack(theirs, self.own.len())?);
        secrets::fold(&[ring; 2], opened.len(), self.role, &mut self.streams, body, |i, secrets| {
            ring.reduce(secrets[0].wrapping_mul(opened[i]).wrapping_sub(secrets[1]))
        })
    }
}

impl Gate for Lookup {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes {
            words: compared::word_bytes(self.input.bits(), count),
            corrections: secrets::bytes(&[self.output; 2], count),
        }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![self.input.packed_bytes(count), self.output.packed_bytes(count)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let bits = self.input.bits();
        let mut client = Streams::new(Role::Client, &seeds.client);
        let mut server = Streams::new(Role::Server, &seeds.server);
        let masks = [&mut client, &mut server].map(|streams| Zeroizing::new(streams.masks(count, self.input)));
        let masks = Zeroizing::new(self.input.add(&masks[0], &masks[1]));
        let mut at_point = Zeroizing::new(vec![0; count]);
        let hashes = compared::deal_hashes([&mut client, &mut server], words)?;
        for (chunk, (points, at_point)) in masks.chunks(CHUNK).zip(at_point.chunks_mut(CHUNK)).enumerate() {
            let hashes = hashes.behind(chunk * CHUNK);
            let mut roots = Zeroizing::new([vec![0; points.len()], vec![0; points.len()]]);
            client.roots(&mut roots[0]);
            server.roots(&mut roots[1]);
            let planted = point::plant(Table::Point, bits, &hashes, [&roots[0], &roots[1]], points);
            point::equal(bits, &hashes, &mut roots[0], points, &planted, at_point);
            words.write_all(planted.as_flattened())?;
        }
        let hidden = [&mut client, &mut server].map(|streams| Zeroizing::new(streams.masks(count, self.output)));
        Ok(secrets::correct(&[self.output; 2], count, &mut client, |i, out| {
            // 1 if the client has the bit at the point, else -1.
            let sign = at_point[i].wrapping_mul(2).wrapping_sub(1);
            let mask = hidden[0][i].wrapping_add(hidden[1][i]);
            out.copy_from_slice(&[sign, sign.wrapping_mul(mask)]);
        }))
    }
}
