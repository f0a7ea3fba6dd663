//! The dealer's side of a run: it takes the same steps as the two parties, and writes what their seeds do not give them.
//!
//! Of every authenticated secret the client has both shares from its seed. The server has the value's share from its seed if
//! the secret is random, and its share of the code is what the dealer sends: 16 bytes. A secret that the dealer chooses
//! takes 32.

use std::io::Write;

use privet_fss::{Error, Role, Seeds};
use privet_prg::{Seed, TreeHashes};
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::streams::Streams;
use crate::{Keys, compare};

/// Bytes that the server gets for an authenticated mask.
pub const MASK_BYTES: usize = 16;

/// Bytes that the server gets for an authenticated secret of the dealer's choice.
pub const SECRET_BYTES: usize = 32;

/// Bytes that the server gets for an authenticated bit.
pub const FLIP_BYTES: usize = 8;

/// Comparisons that are made or read at once: some megabytes of keys.
pub(crate) const CHUNK: usize = 2048;

/// Secret masks, one for each element, in the clear; wiped on drop.
pub type Masks = Zeroizing<Vec<u128>>;

/// Deals the material of one run, step by step.
pub struct Dealer<'a> {
    keys: Keys,
    streams: [Streams; 2],
    bodies: [&'a mut dyn Write; 2],
}

impl<'a> Dealer<'a> {
    /// For parties with these keys, and seeds that are fresh for each run. `client` and `server` take their bodies.
    pub fn new(keys: &Keys, seeds: &Seeds, client: &'a mut dyn Write, server: &'a mut dyn Write) -> Self {
        let stream = |role, seed: &Seed| Streams::new(role, seed);
        let streams = [stream(Role::Client, &seeds.client), stream(Role::Server, &seeds.server)];
        Self { keys: keys.clone(), streams, bodies: [client, server] }
    }

    /// Masks that neither party knows, uniform modulo 2^128.
    ///
    /// # Errors
    /// [`Error::Io`] if a body cannot be written; so for all functions below.
    pub fn masks(&mut self, count: usize) -> Result<Masks, Error> {
        let [client, server] = self.streams.each_mut().map(|streams| Zeroizing::new(streams.shares(count)));
        let masks = sum(&client, &server);
        self.authenticate(&masks)?;
        Ok(masks)
    }

    /// Masks that the client knows.
    pub fn input_masks(&mut self, count: usize) -> Result<Masks, Error> {
        let masks = Zeroizing::new(self.streams[0].shares(count));
        self.authenticate(&masks)?;
        Ok(masks)
    }

    /// Masks of which the client knows the low bits, those of `ring`, and neither party the bits above.
    pub fn output_masks(&mut self, ring: Modulus, count: usize) -> Result<(), Error> {
        let [client, mut server] = self.streams.each_mut().map(|streams| Zeroizing::new(streams.shares(count)));
        server.iter_mut().for_each(|share| *share <<= ring.bits());
        self.authenticate(&sum(&client, &server))
    }

    /// Shares these values and their codes.
    pub fn secrets(&mut self, values: &[u128]) -> Result<(), Error> {
        let client = Zeroizing::new(self.streams[0].shares(values.len()));
        let server = difference(values, &client);
        self.send(&server)?;
        self.authenticate(values)
    }

    /// Random bits that neither party knows, in the clear.
    pub fn flips(&mut self, count: usize) -> Result<Bits, Error> {
        let [client, server] = self.streams.each_mut().map(|streams| Zeroizing::new(streams.flips(count)));
        let flips = Bits::from_lowest(client.iter().zip(server.iter()).map(|(client, server)| client ^ server));
        let delta = self.keys.bits;
        let words =
            client.iter().zip(flips.iter()).map(|(client, flip)| client ^ delta & u64::from(flip).wrapping_neg());
        let words: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.bodies[1].write_all(&words)?;
        Ok(flips)
    }

    /// Keys of comparisons of `bits` bits with these points.
    pub fn comparisons(&mut self, bits: u32, points: &[u64]) -> Result<(), Error> {
        let [client, server] = self.streams.each_mut().map(Streams::hashes);
        let seed = Seed::from_block(client ^ server);
        self.bodies.iter_mut().try_for_each(|body| body.write_all(seed.as_bytes()))?;
        let hashes = TreeHashes::new(&seed);
        for (chunk, points) in points.chunks(CHUNK).enumerate() {
            let [client, server] = self.streams.each_mut().map(|streams| Zeroizing::new(streams.roots(points.len())));
            let keys = compare::plant(bits, &hashes.behind(chunk * CHUNK), [&client, &server], points, self.keys.bits);
            self.bodies.iter_mut().try_for_each(|body| body.write_all(&keys))?;
        }
        Ok(())
    }

    /// Sends the server its shares of the codes of `values`.
    fn authenticate(&mut self, values: &[u128]) -> Result<(), Error> {
        let client = Zeroizing::new(self.streams[0].codes(values.len()));
        let codes = Zeroizing::new(values.iter().map(|x| self.keys.values.wrapping_mul(*x)).collect::<Vec<_>>());
        self.send(&difference(&codes, &client))
    }

    fn send(&mut self, shares: &[u128]) -> Result<(), Error> {
        let bytes: Vec<u128> = shares.iter().copied().map(u128::to_le).collect();
        Ok(self.bodies[1].write_all(bytemuck::must_cast_slice(&bytes))?)
    }
}

fn sum(a: &[u128], b: &[u128]) -> Masks {
    Zeroizing::new(a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect())
}

fn difference(a: &[u128], b: &[u128]) -> Masks {
    Zeroizing::new(a.iter().zip(b).map(|(a, b)| a.wrapping_sub(*b)).collect())
}
