//! Gates that open their input behind a mask, compare it with the mask, and open the result behind a bit.
//!
//! With `x^ = x + r` and `e` the comparison's shared bit `[s(r) <= p(x^)]`, the parties open `o = e ^ u` and each makes its
//! share of the gate's value from `x^`, `o` and its shares of a few secrets that depend on `r` and `u` alone. Gates differ
//! in the two functions `p` and `s` and in the secrets; everything else is here.
//!
//! Both parts of `r` and `u` come from the parties' seeds. Of each secret the client's share comes from its seed, and the
//! server's is what the dealer sends: the corrections.

use std::io::Write;
use std::ops::Range;

use privet_prg::{Block, KEYS_A_PART, Seed, TreeHashes};
use privet_ring::{Bits, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::point;
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, secrets};

/// Keys that are made at once: some megabytes of words.
const CHUNK: usize = 2048;

/// Keys that one thread reads at once: what fits its cache, and shares a hash.
const PART: usize = KEYS_A_PART;

/// Bytes of the public seed of a batch's tree hashes, which its words follow.
pub(crate) const HASHES_BYTES: usize = 16;

/// What makes one of these gates.
pub trait Compared: Copy {
    /// The input's ring.
    fn input(&self) -> Modulus;
    /// Width of the comparison.
    fn compared_bits(&self) -> u32;
    /// What of the opened input is compared.
    fn public_point(&self, opened: u64) -> u64;
    /// What of the mask it is compared with.
    fn secret_point(&self, mask: u64) -> u64;
    /// The rings of the secrets.
    fn secret_rings(&self) -> Vec<Modulus>;
    /// The secrets: from both parts of the mask and from the flip `u`.
    fn secrets(&self, masks: [u64; 2], flip: bool, out: &mut [u64]);
    /// This party's share of the result: from its part of the mask, `x^`, `o` and its shares of the secrets.
    fn choose(&self, role: Role, mask: u64, opened: u64, bit: bool, secrets: &[u64]) -> u64;
    /// The ring of the result.
    fn output(&self) -> Modulus;

    /// This party's first step; see [`Opening`].
    fn start(self, role: Role, seed: &Seed, x: &[u64]) -> (Opening<Self>, Vec<u8>) {
        let mut streams = Streams::new(role, seed);
        let masks = Zeroizing::new(streams.masks(x.len(), self.input()));
        let own = self.input().add(x, &masks);
        let message = self.input().pack(&own);
        (Opening { gate: self, role, streams, masks, own }, message)
    }

    /// Shares of the gate's value in its output ring; `x`: this party's shares in the input ring. All steps over a channel: two
    /// rounds.
    ///
    /// # Errors
    /// If the link or the key fails.
    fn evaluate(self, party: &mut Party<'_>, seed: &Seed, body: &mut dyn Source, x: &[u64]) -> Result<Vec<u64>, Error> {
        let (opening, message) = self.start(party.role, seed, x);
        let (choosing, message) = opening.compare(&party.channel.exchange(&message)?, body)?;
        choosing.finish(&party.channel.exchange(&message)?, body)
    }
}

/// Bytes of the words of `count` comparisons or point functions, with the seed of their hashes.
pub(crate) fn word_bytes(bits: u32, count: usize) -> usize {
    HASHES_BYTES + 16 * count * point::words(bits)
}

/// Draws the hashes of a batch from both parties' streams and writes their seed.
fn deal_hashes(streams: [&mut Streams; 2], words: &mut dyn Write) -> Result<TreeHashes, Error> {
    let [client, server] = streams.map(Streams::hashes);
    let seed = Seed::from_block(client ^ server);
    words.write_all(seed.as_bytes())?;
    Ok(TreeHashes::new(&seed))
}

/// Reads the hashes of a batch.
pub(crate) fn hashes(body: &mut dyn Source) -> Result<TreeHashes, Error> {
    let mut seed = [0; HASHES_BYTES];
    body.pull_into(&mut seed)?;
    Ok(TreeHashes::new(&Seed::from_bytes(seed)))
}

/// Makes the words of comparisons with `points`.
pub(crate) fn deal_comparisons(
    bits: u32,
    points: &[u64],
    streams: [&mut Streams; 2],
    words: &mut dyn Write,
) -> Result<(), Error> {
    deal_trees(points, streams, words, |hashes, roots, _, points| point::plant(bits, hashes, roots, points))
}

/// Makes the words of trees with `points`, chunk by chunk: by `plant`, from the hashes and roots of a chunk, where it is among all
/// points, and its points.
pub(crate) fn deal_trees(
    points: &[u64],
    streams: [&mut Streams; 2],
    words: &mut dyn Write,
    mut plant: impl FnMut(&TreeHashes, [&[Block]; 2], Range<usize>, &[u64]) -> Vec<[u8; 16]>,
) -> Result<(), Error> {
    let [client, server] = streams;
    let hashes = deal_hashes([&mut *client, &mut *server], words)?;
    for (chunk, points) in points.chunks(CHUNK).enumerate() {
        let mut roots = Zeroizing::new([vec![0; points.len()], vec![0; points.len()]]);
        client.roots(&mut roots[0]);
        server.roots(&mut roots[1]);
        let first = chunk * CHUNK;
        let planted = plant(&hashes.behind(first), [&roots[0], &roots[1]], first..first + points.len(), points);
        words.write_all(planted.as_flattened())?;
    }
    Ok(())
}

/// This party's bits of comparisons at `points`. Each thread reads the words of its own keys.
pub(crate) fn compare(bits: u32, points: &[u64], streams: &mut Streams, body: &mut dyn Source) -> Result<Bits, Error> {
    let key_bytes = 16 * point::words(bits);
    let hashes = hashes(body)?;
    let region = body.region(points.len() * key_bytes)?;
    let mut nodes = Zeroizing::new(vec![0 as Block; points.len()]);
    streams.roots(&mut nodes);
    let mut bit = vec![0; points.len()];
    let parts = nodes.par_chunks_mut(PART).zip(points.par_chunks(PART)).zip(bit.par_chunks_mut(PART)).enumerate();
    parts.try_for_each_init(Vec::new, |buffer, (part, ((nodes, points), bit))| {
        let words = region.read(part * PART * key_bytes, points.len() * key_bytes, buffer)?;
        point::at_most(bits, &hashes.behind(part * PART), nodes, points, words.as_chunks().0, bit);
        Ok::<_, Error>(())
    })?;
    let packed = bit.chunks(64).map(|bits| bits.iter().enumerate().fold(0, |word, (i, bit)| word | bit << i)).collect();
    Ok(Bits::from_words(packed, points.len())?)
}

/// A batch whose masked input is on its way; made by [`Compared::start`].
pub struct Opening<G> {
    pub(crate) gate: G,
    pub(crate) role: Role,
    pub(crate) streams: Streams,
    pub(crate) masks: Zeroizing<Vec<u64>>,
    own: Vec<u64>,
}

impl<G: Compared> Opening<G> {
    /// The opened inputs.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length.
    pub(crate) fn open(&self, theirs: &[u8]) -> Result<Vec<u64>, Error> {
        let ring = self.gate.input();
        Ok(ring.add(&self.own, &ring.unpack(theirs, self.own.len())?))
    }

    /// Compares, given the other party's message; reads the words from `body`. Returns the next message.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn compare(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<(Choosing<G>, Vec<u8>), Error> {
        let opened = self.open(theirs)?;
        let points: Vec<u64> = opened.iter().map(|x| self.gate.public_point(*x)).collect();
        let mut own = compare(self.gate.compared_bits(), &points, &mut self.streams, body)?;
        own.xor_assign(&self.streams.flips(opened.len()));
        let message = own.to_bytes();
        let Self { gate, role, streams, masks, .. } = self;
        Ok((Choosing { gate, role, streams, masks, opened, own }, message))
    }
}

/// A batch whose comparison is on its way.
pub struct Choosing<G> {
    gate: G,
    role: Role,
    streams: Streams,
    masks: Zeroizing<Vec<u64>>,
    opened: Vec<u64>,
    own: Bits,
}

impl<G: Compared> Choosing<G> {
    /// This party's shares of the results, `[n]` in the gate's output ring; the server reads its corrections from `body`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn finish(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let count = self.opened.len();
        let bits = self.own.xor(&Bits::from_bytes(theirs, count)?);
        let Self { gate, role, streams, masks, opened, .. } = &mut self;
        let output = gate.output();
        secrets::fold(&gate.secret_rings(), count, *role, streams, body, |i, secrets| {
            output.reduce(gate.choose(*role, masks[i], opened[i], bits.get(i), secrets))
        })
    }
}

impl<G: Compared> Gate for G {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = word_bytes(self.compared_bits(), count);
        KeyBytes { words, corrections: secrets::bytes(&self.secret_rings(), count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![self.input().packed_bytes(count), count.div_ceil(8)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let mut client = Streams::new(Role::Client, &seeds.client);
        let mut server = Streams::new(Role::Server, &seeds.server);
        let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, self.input())));
        let sum = |i: usize| self.input().reduce(masks[0][i].wrapping_add(masks[1][i]));
        let points = Zeroizing::new((0..count).map(|i| self.secret_point(sum(i))).collect::<Vec<_>>());
        deal_comparisons(self.compared_bits(), &points, [&mut client, &mut server], words)?;
        let flips = client.flips(count).xor(&server.flips(count));
        Ok(secrets::correct(&self.secret_rings(), count, &mut client, |i, out| {
            self.secrets([masks[0][i], masks[1][i]], flips.get(i), out);
        }))
    }
}
