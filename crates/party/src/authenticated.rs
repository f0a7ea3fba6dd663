//! Suite `fss` against parties that deviate: programs on authenticated values ([`privet_shark`], after SHARK).
//!
//! Client and server keep a [setup](privet_shark::setup) for each program: keys that authenticate values, and the server's
//! weights behind a mask, authenticated. A dealer, which must be honest and collude with neither, makes it again for every
//! deal from a secret of its own, and the keys of one run. Online both take the [`Plan`]'s steps; the client looks at its
//! output when the check of everything that was opened has passed.
//!
//! Threat model: one of client and server may deviate in any message. See `docs/protocols/shark.md`.

mod deal;
mod forecast;
mod infer;
mod layers;
mod local;
mod plan;
mod prepare;
mod security;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use privet_fss::{KeyFile, Role};
use privet_gmw::Truncation;
use privet_prg::Seed;
use privet_shark::{Key, Setup, Weights};

use crate::{Error, MaterialId};

pub use infer::{infer_client, infer_server};
pub use plan::{Plan, Traffic};
pub use prepare::{SetupSeeds, deal, dealt_bytes};
pub(crate) use prepare::{begin, hide_weights, open_weights, prepare, take_weights};

/// The suite's options; both parties derive the same plan from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
}

impl Options {
    /// Every choice.
    pub fn all() -> impl Iterator<Item = Self> {
        [Truncation::OneBit, Truncation::Exact].into_iter().map(|truncation| Self { truncation })
    }

    /// The suite with its options, as control messages and stores name it.
    pub fn name(self) -> String {
        match self.truncation {
            Truncation::OneBit => "fss malicious one-bit".into(),
            Truncation::Exact => "fss malicious exact".into(),
        }
    }
}

/// One party's half of a run's material, and what it keeps of the setup that it was made for.
pub struct Material {
    key: Key,
    seed: Seed,
    /// What was made offline.
    prepared: KeyFile,
    body: KeyFile,
    session: MaterialId,
}

/// Bytes behind the keys in a stored piece: the setup's name and the seed of the keys.
const HEAD: usize = 32;

impl Material {
    /// The name of the setup that a stored piece was made for, and the seed of its keys.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is not this plan's material.
    pub(crate) fn read_head(stored: &mut File, plan: &Plan, role: Role) -> Result<(MaterialId, Seed), Error> {
        let mut head = Vec::new();
        let before = plan.prepared_bytes() + plan.body_bytes(role);
        let read = stored.seek(SeekFrom::Start(before)).and_then(|_| stored.read_to_end(&mut head));
        read.map_err(|error| Error::Misuse(format!("material cannot be read: {error}")))?;
        let (name, seed) = <&[u8; HEAD]>::try_from(head.as_slice())
            .map(|head| head.split_at(16))
            .map_err(|_| Error::Misuse("the stored material is of another program or damaged: prepare again".into()))?;
        Ok((MaterialId::new(array(name)), Seed::from_bytes(*array(seed))))
    }

    /// The material of a claimed piece, for the party with this setup.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it cannot be read.
    pub(crate) fn new(
        stored: File,
        plan: &Plan,
        seed: Seed,
        setup: &Setup,
        session: MaterialId,
    ) -> Result<Self, Error> {
        let prepared = stored.try_clone().map(KeyFile::new);
        let prepared = prepared.map_err(|error| Error::Misuse(format!("material cannot be read: {error}")))?;
        let body = KeyFile::behind(stored, plan.prepared_bytes());
        Ok(Self { key: setup.key().clone(), seed, prepared, body, session })
    }
}

fn array(bytes: &[u8]) -> &[u8; 16] {
    bytes.try_into().expect("16 bytes")
}

/// A party's setup for a program, as it uses it.
pub(crate) struct Opened {
    pub setup: Setup,
    pub weights: Vec<Weights>,
}
