//! Piecewise polynomials of degree two, in one round.
//!
//! Over Z_2^n, with pieces that start at `0 = p_0 < p_1 < ... < p_k` (unsigned), the value is the first piece's polynomial
//! plus, for each later knot, `[x >= p_i]` times the difference of two polynomials. With `x^ = x + r` opened and
//! `g(z) = [r <= z]`, `[x < p] = g(x^) - g(x^ - p) + [x^ < p]`, indices modulo 2^n and the last term public. A polynomial
//! of `x = x^ - r` is linear in `1, r, r^2`; so a comparison function with the values `(1, r, r^2)`, read at `x^` and at
//! each `x^ - p_i`, and shares of `r, r^2` give the result without another message.

use std::io::Write;

use privet_prg::{Block, Seed};
use privet_ring::Modulus;
use zeroize::Zeroizing;

use crate::compared;
use crate::group::{Vector, Words};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, dcf, secrets};

/// Keys that are made or read at once.
const CHUNK: usize = 512;

/// One piece: where it starts, and its coefficients, constant first, in Z_2^n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The smallest `x` of the piece, as an unsigned number.
    pub start: u64,
    /// `c_0 + c_1 x + c_2 x^2`.
    pub coefficients: [u64; 3],
}

/// A public piecewise polynomial over Z_2^n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spline {
    ring: Modulus,
    pieces: Vec<Piece>,
}

impl Spline {
    /// Over the ring of `bits` bits. Negative numbers are the upper half of the domain.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`, the first piece starts at 0 and the starts ascend within the ring.
    pub fn new(bits: u32, pieces: Vec<Piece>) -> Self {
        let ring = Modulus::new(bits);
        assert!(pieces.first().is_some_and(|piece| piece.start == 0), "the first piece starts at zero");
        assert!(pieces.is_sorted_by(|a, b| a.start < b.start), "pieces ascend");
        assert!(pieces.iter().all(|piece| piece.start <= ring.mask()), "pieces start within the ring");
        Self { ring, pieces }
    }

    /// Shares of the value at `x`; `x`: this party's shares. One round.
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
        let (splining, message) = self.start(party.role, seed, x);
        splining.finish(&party.channel.exchange(&message)?, body)
    }

    /// This party's first step. Returns the message for the other.
    pub fn start(&self, role: Role, seed: &Seed, x: &[u64]) -> (Splining<'_>, Vec<u8>) {
        let mut streams = Streams::new(role, seed);
        let own = self.ring.add(x, &Zeroizing::new(streams.masks(x.len(), self.ring)));
        let message = self.ring.pack(&own);
        (Splining { gate: self, role, streams, own }, message)
    }

    fn group(&self) -> Vector<3> {
        Vector(self.ring)
    }
}

/// A batch of [`Spline`] whose masked input is on its way.
pub struct Splining<'a> {
    gate: &'a Spline,
    role: Role,
    streams: Streams,
    own: Vec<u64>,
}

impl Splining<'_> {
    /// This party's shares of the results, `[n]`; reads the words, and for the server its corrections, from `body`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn finish(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let Spline { ring, pieces } = self.gate;
        let (group, opened) = (self.gate.group(), ring.add(&self.own, &ring.unpack(theirs, self.own.len())?));
        // For each knot shares of `[x < p] (1, r, r^2)` without the public part.
        let mut below = vec![Words::<3>::default(); opened.len() * (pieces.len() - 1)];
        let knots = pieces.len() - 1;
        let hashes = compared::hashes(body)?;
        for (chunk, x) in opened.chunks(CHUNK).enumerate() {
            let mut roots = Zeroizing::new(vec![0 as Block; x.len()]);
            self.streams.roots(&mut roots);
            let keys = body.pull(x.len() * dcf::key_bytes(ring.bits(), &group))?;
            let hashes = hashes.behind(chunk * CHUNK);
            let read = |x: &[u64]| dcf::at_most(&group, ring.bits(), self.role, &hashes, &roots, x, keys);
            let at_x = read(x);
            for (knot, piece) in pieces[1..].iter().enumerate() {
                let moved: Vec<u64> = x.iter().map(|x| ring.reduce(x.wrapping_sub(piece.start))).collect();
                for (i, at_knot) in read(&moved).into_iter().enumerate() {
                    let difference = std::array::from_fn(|k| at_x[i].0[k].wrapping_sub(at_knot.0[k]));
                    below[(chunk * CHUNK + i) * knots + knot] = Words(difference);
                }
            }
        }
        let role = self.role;
        secrets::fold(&[*ring; 2], opened.len(), role, &mut self.streams, body, |i, powers| {
            let (x, all) = (opened[i], [role.public(1), powers[0], powers[1]]);
            let mut sum = at(&pieces[knots].coefficients, x, &all);
            for knot in 0..knots {
                let [here, next] = [&pieces[knot], &pieces[knot + 1]];
                let step: [u64; 3] = std::array::from_fn(|k| here.coefficients[k].wrapping_sub(next.coefficients[k]));
                let wrapped = u64::from(x < next.start);
                let below = below[i * knots + knot].0;
                let shares = std::array::from_fn(|k| below[k].wrapping_add(wrapped.wrapping_mul(all[k])));
                sum = sum.wrapping_add(at(&step, x, &shares));
            }
            ring.reduce(sum)
        })
    }
}

/// `c_0 b + c_1 b (x - r) + c_2 b (x - r)^2` from shares of `b, b r, b r^2`.
fn at(coefficients: &[u64; 3], x: u64, shares: &[u64; 3]) -> u64 {
    let linear = x.wrapping_mul(shares[0]).wrapping_sub(shares[1]);
    let square = x.wrapping_mul(linear).wrapping_sub(x.wrapping_mul(shares[1])).wrapping_add(shares[2]);
    (coefficients[0].wrapping_mul(shares[0]))
        .wrapping_add(coefficients[1].wrapping_mul(linear))
        .wrapping_add(coefficients[2].wrapping_mul(square))
}

impl Gate for Spline {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes {
            words: compared::HASHES_BYTES + count * dcf::key_bytes(self.ring.bits(), &self.group()),
            corrections: secrets::bytes(&[self.ring; 2], count),
        }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![self.ring.packed_bytes(count)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let mut client = Streams::new(Role::Client, &seeds.client);
        let mut server = Streams::new(Role::Server, &seeds.server);
        let masks = [&mut client, &mut server].map(|streams| Zeroizing::new(streams.masks(count, self.ring)));
        let masks = Zeroizing::new(self.ring.add(&masks[0], &masks[1]));
        let hashes = compared::deal_hashes([&mut client, &mut server], words)?;
        for (chunk, points) in masks.chunks(CHUNK).enumerate() {
            let hashes = hashes.behind(chunk * CHUNK);
            let mut roots = Zeroizing::new([vec![0; points.len()], vec![0; points.len()]]);
            client.roots(&mut roots[0]);
            server.roots(&mut roots[1]);
            let values: Vec<Words<3>> =
                points.iter().map(|r| Words([1, *r, self.ring.reduce(r.wrapping_mul(*r))])).collect();
            let keys = dcf::plant(&self.group(), self.ring.bits(), &hashes, [&roots[0], &roots[1]], points, &values);
            words.write_all(&keys)?;
        }
        Ok(secrets::correct(&[self.ring; 2], count, &mut client, |i, out| {
            out.copy_from_slice(&[masks[i], masks[i].wrapping_mul(masks[i])]);
        }))
    }
}
