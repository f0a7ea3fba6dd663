//! 128 random base OTs over Ristretto, in one simultaneous message each way.
//!
//! Masny and Rindal, "Endemic Oblivious Transfer" (CCS 2019), the one-round protocol from Diffie-Hellman. For OT `i` the
//! receiver with choice `c` sends points `R_0, R_1` of which `R_{1-c}` is random and `R_c = a * G - H(c, R_{1-c})`; the
//! sender sends `B = b * G` once and keeps the keys of `b * (R_j + H(j, R_{1-j}))`; the receiver knows `a * B` only.
//! The two messages do not depend on each other. `H` hashes to the group with the OT's index, as reuse of `B` needs
//! (McQuoid, Rosulek and Roy, "Batching Base Oblivious Transfers", ASIACRYPT 2021), and so does the key derivation.
//!
//! Assumes that computational Diffie-Hellman is hard on Ristretto and that the hashes behave as random oracles.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use privet_prg::{Block, Prg};
use rayon::prelude::*;
use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use crate::{Error, Role};

/// Base OTs in one run: one for each bit of `delta`.
pub(crate) const COUNT: usize = 128;

/// Bytes of a point on the wire.
pub(crate) const POINT_BYTES: usize = 32;

/// Bytes of the receiver's message.
pub(crate) const RECEIVER_BYTES: usize = 2 * COUNT * POINT_BYTES;

type Point = [u8; POINT_BYTES];

/// The sender's secret; consumed by one run.
pub(crate) struct Sender {
    role: Role,
    secret: Zeroizing<Scalar>,
    message: Point,
}

impl Sender {
    /// `role`: which party sends in these OTs.
    pub(crate) fn new(role: Role, prg: &mut Prg) -> Self {
        let secret = scalar(prg);
        let message = RistrettoPoint::mul_base(&secret).compress().to_bytes();
        Self { role, secret, message }
    }

    /// The message for the receiver.
    pub(crate) fn message(&self) -> &Point {
        &self.message
    }

    /// Both keys of each OT, from the receiver's message of [`RECEIVER_BYTES`]. Fails with [`Error::PeerMisbehaved`] if
    /// a point is not the canonical encoding of a group element.
    pub(crate) fn keys(self, points: &[u8]) -> Result<Zeroizing<Vec<[Block; 2]>>, Error> {
        let run = Run::new(self.role, &self.message, points);
        let (points, _) = points.as_chunks::<POINT_BYTES>();
        let (pairs, _) = points.as_chunks::<2>();
        let keys: Result<Vec<_>, Error> = pairs
            .par_iter()
            .enumerate()
            .map(|(index, pair)| {
                let (zero, one) = (decompress(&pair[0])?, decompress(&pair[1])?);
                let shared_zero = *self.secret * (zero + hash_to_group(self.role, index, 0, &pair[1]));
                let shared_one = *self.secret * (one + hash_to_group(self.role, index, 1, &pair[0]));
                Ok([run.key(index, &shared_zero), run.key(index, &shared_one)])
            })
            .collect();
        Ok(Zeroizing::new(keys?))
    }
}

/// The receiver's secrets; consumed by one run.
pub(crate) struct Receiver {
    sender: Role,
    secrets: Zeroizing<Vec<Scalar>>,
    message: Vec<u8>,
}

impl Receiver {
    /// `sender`: which party sends in these OTs; OT `i` has choice bit `i` of `choices`.
    pub(crate) fn new(sender: Role, choices: Block, prg: &mut Prg) -> Self {
        let secrets = Zeroizing::new((0..COUNT).map(|_| *scalar(prg)).collect::<Vec<_>>());
        let uniform: Vec<[u8; 64]> = (0..COUNT).map(|_| uniform_bytes(prg)).collect();
        let pairs: Vec<[Point; 2]> = secrets
            .par_iter()
            .zip(uniform)
            .enumerate()
            .map(|(index, (secret, uniform))| {
                let choice = (choices >> index & 1) as u8;
                let other = RistrettoPoint::from_uniform_bytes(&uniform).compress().to_bytes();
                let chosen = RistrettoPoint::mul_base(secret) - hash_to_group(sender, index, choice, &other);
                let mut pair = [chosen.compress().to_bytes(), other];
                let (zero, one) = pair.split_at_mut(1);
                <Point>::conditional_swap(&mut zero[0], &mut one[0], Choice::from(choice));
                pair
            })
            .collect();
        Self { sender, secrets, message: pairs.as_flattened().as_flattened().to_vec() }
    }

    /// The message for the sender, [`RECEIVER_BYTES`] long.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// The key of each OT that its choice bit selects, from the sender's point. Fails with [`Error::PeerMisbehaved`] if
    /// the point is not the canonical encoding of a group element, or is the identity.
    pub(crate) fn keys(self, point: &Point) -> Result<Zeroizing<Vec<Block>>, Error> {
        let run = Run::new(self.sender, point, &self.message);
        let base = decompress(point)?;
        if base.is_identity() {
            return Err(Error::PeerMisbehaved { what: "the point of its base oblivious transfers is the identity" });
        }
        let keys =
            self.secrets.par_iter().enumerate().map(|(index, secret)| run.key(index, &(secret * base))).collect();
        Ok(Zeroizing::new(keys))
    }
}

/// What all keys of one run depend on.
struct Run([u8; 32]);

impl Run {
    fn new(sender: Role, point: &Point, points: &[u8]) -> Self {
        let hash = Sha256::new().chain_update(b"privet base OT transcript 1").chain_update([sender.code()]);
        Self(hash.chain_update(point).chain_update(points).finalize().into())
    }

    fn key(&self, index: usize, shared: &RistrettoPoint) -> Block {
        let hash = Sha256::new().chain_update(b"privet base OT key 1").chain_update(self.0);
        let hash =
            hash.chain_update((index as u64).to_le_bytes()).chain_update(shared.compress().as_bytes()).finalize();
        hash.iter().take(16).rev().fold(0, |key, &byte| key << 8 | Block::from(byte))
    }
}

fn hash_to_group(sender: Role, index: usize, slot: u8, other: &Point) -> RistrettoPoint {
    let hash = Sha512::new().chain_update(b"privet base OT point 1").chain_update([sender.code(), slot]);
    let hash = hash.chain_update((index as u64).to_le_bytes()).chain_update(other).finalize();
    RistrettoPoint::from_uniform_bytes(&hash.into())
}

fn decompress(point: &Point) -> Result<RistrettoPoint, Error> {
    let what = "a point of its base oblivious transfers is not a canonical Ristretto encoding";
    CompressedRistretto(*point).decompress().ok_or(Error::PeerMisbehaved { what })
}

fn scalar(prg: &mut Prg) -> Zeroizing<Scalar> {
    Zeroizing::new(Scalar::from_bytes_mod_order_wide(&Zeroizing::new(uniform_bytes(prg))))
}

fn uniform_bytes(prg: &mut Prg) -> [u8; 64] {
    let mut bytes = [0; 64];
    prg.fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use privet_prg::Seed;

    use super::*;

    fn prg(seed: u8) -> Prg {
        Prg::from_seed(&Seed::from_bytes([seed; 16]))
    }

    #[test]
    fn the_receiver_gets_the_key_it_chose_and_no_other() -> Result<(), Error> {
        let choices = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;
        let sender = Sender::new(Role::Server, &mut prg(1));
        let receiver = Receiver::new(Role::Server, choices, &mut prg(2));
        let (point, points) = (*sender.message(), receiver.message().to_vec());
        let both = sender.keys(&points)?;
        let chosen = receiver.keys(&point)?;
        for i in 0..COUNT {
            let choice = (choices >> i & 1) as usize;
            assert_eq!(chosen[i], both[i][choice]);
            assert_ne!(chosen[i], both[i][1 - choice]);
        }
        let mut distinct: Vec<_> = both.as_flattened().to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 2 * COUNT);
        Ok(())
    }

    #[test]
    fn no_point_or_secret_of_the_receiver_comes_twice() -> Result<(), Error> {
        // For each OT the sender can compute two points of which one is the receiver's secret times the base point. If
        // that came again in another OT, or were known, it would give the choice away.
        let mut seen = HashSet::new();
        for seed in [2, 3] {
            let message = Receiver::new(Role::Server, u128::MAX / 5, &mut prg(seed)).message().to_vec();
            let (pairs, _) = message.as_chunks::<POINT_BYTES>().0.as_chunks::<2>();
            for (index, pair) in pairs.iter().enumerate() {
                for (slot, point) in pair.iter().enumerate() {
                    let hash = hash_to_group(Role::Server, index, slot as u8, &pair[1 - slot]);
                    seen.extend([*point, (decompress(point)? + hash).compress().to_bytes()]);
                }
            }
        }
        assert_eq!(seen.len(), 8 * COUNT);
        Ok(())
    }

    #[test]
    fn keys_of_the_two_directions_differ() -> Result<(), Error> {
        let points = Receiver::new(Role::Server, 0, &mut prg(2)).message().to_vec();
        let server = Sender::new(Role::Server, &mut prg(1)).keys(&points)?;
        let client = Sender::new(Role::Client, &mut prg(1)).keys(&points)?;
        assert!(server.iter().zip(client.iter()).all(|(a, b)| a != b));
        Ok(())
    }

    #[test]
    fn points_that_are_none_are_refused() {
        // Non-canonical (the field's modulus), negative, and the identity where it gives the keys away.
        let mut modulus = [0xff; 32];
        (modulus[0], modulus[31]) = (0xed, 0x7f);
        let mut negative = [0; 32];
        negative[0] = 1;
        for bad in [modulus, negative, [0; 32]] {
            assert!(matches!(
                Receiver::new(Role::Client, 5, &mut prg(3)).keys(&bad),
                Err(Error::PeerMisbehaved { .. })
            ));
        }
        let good = Receiver::new(Role::Client, 5, &mut prg(3)).message().to_vec();
        for at in [0, 7, 2 * COUNT - 1] {
            let mut points = good.clone();
            points[at * POINT_BYTES..(at + 1) * POINT_BYTES].copy_from_slice(&modulus);
            assert!(matches!(Sender::new(Role::Client, &mut prg(4)).keys(&points), Err(Error::PeerMisbehaved { .. })));
        }
    }
}
