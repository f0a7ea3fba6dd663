//! All that was opened so far, and what its codes say of it, as one digest that two honest parties share.
//!
//! Of an opened value `x^` each party keeps `sigma = m - Delta_i x^`, with `m` its share of the code. The two `sigma` add up to
//! zero; if `x^` is off by `e`, to `-Delta e`. So the client's `sigma` and the server's `-sigma` are the same numbers, and a
//! party that caused the error would have to guess `Delta e` to know what the other one has. For bits the words are the same
//! as they are. Both parties hash these numbers, which is what the check rests on.
//!
//! An error in high bits alone, which changes no value, can leave the numbers as they are. Opened bits and, chunk by chunk,
//! the sums of opened values are hashed too, so that a message that was damaged on the way is noticed for certain.
//!
//! Long vectors are hashed in chunks, which may go to several threads, and the chunks' digests are hashed in order.

use privet_fss::Role;
use privet_ring::Bits;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::{Key, TaggedBits};

/// Elements of a chunk. Part of the protocol: both parties cut alike.
const CHUNK: usize = 4096;

/// Values that are hashed by the same thread: waking another one takes longer.
const FEW: usize = CHUNK;

/// Elements that are laid out for the hash at once.
const BLOCK: usize = 128;

/// A running digest.
#[derive(Clone)]
pub(crate) struct Transcript {
    hash: Sha256,
}

impl Transcript {
    /// That of the session with this name.
    pub(crate) fn new(session: &[u8]) -> Self {
        let mut transcript = Self { hash: Sha256::new_with_prefix(b"privet shark transcript 1") };
        transcript.state(b"session", session);
        transcript
    }

    /// Takes in something that both parties know and must agree on.
    pub(crate) fn state(&mut self, label: &[u8], statement: &[u8]) {
        for part in [label, statement] {
            self.hash.update((part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    /// Takes in opened values. `codes`: this party's shares of their codes.
    pub(crate) fn values(&mut self, key: &Key, codes: &[u128], opened: &[u128]) {
        let [_, code] = key.units();
        let negative = key.role() == Role::Server;
        let digest = |(chunk, opened): (usize, &[u128])| {
            let mut hash = Sha256::new();
            let (mut block, mut sum) = ([0; BLOCK], 0u128);
            let codes = &codes[chunk * CHUNK..][..opened.len()];
            for (opened, codes) in opened.chunks(BLOCK).zip(codes.chunks(BLOCK)) {
                for (word, (x, m)) in block.iter_mut().zip(opened.iter().zip(codes)) {
                    let sigma = m.wrapping_sub(code.wrapping_mul(*x));
                    sum = sum.wrapping_add(*x);
                    *word = if negative { sigma.wrapping_neg() } else { sigma }.to_le();
                }
                hash.update(bytemuck::must_cast_slice(&block[..opened.len()]));
            }
            hash.chain_update(sum.to_le_bytes()).finalize().into()
        };
        let digests: Vec<[u8; 32]> = match opened.len() <= FEW {
            true => opened.chunks(CHUNK).enumerate().map(digest).collect(),
            false => opened.par_chunks(CHUNK).enumerate().map(digest).collect(),
        };
        self.list(b"values", opened.len(), digests);
    }

    /// Takes in opened bits. `masked`: this party's half of them.
    pub(crate) fn bits(&mut self, key: &Key, masked: &TaggedBits, opened: &Bits) {
        self.state(b"opened bits", &opened.to_bytes());
        let residues = masked.residues(key, opened);
        let digest = |residues: &[u64]| -> [u8; 32] {
            let residues: Vec<u64> = residues.iter().copied().map(u64::to_le).collect();
            Sha256::digest(bytemuck::must_cast_slice(&residues)).into()
        };
        let digests: Vec<[u8; 32]> = match opened.len() <= 4 * FEW {
            true => residues.chunks(CHUNK).map(digest).collect(),
            false => residues.par_chunks(CHUNK).map(digest).collect(),
        };
        self.list(b"bits", opened.len(), digests);
    }

    /// Digests of the chunks of `count` elements.
    fn list(&mut self, label: &[u8], count: usize, digests: Vec<[u8; 32]>) {
        self.state(label, &(count as u64).to_le_bytes());
        self.hash.update(digests.as_flattened());
    }

    /// The digest of everything so far.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}
