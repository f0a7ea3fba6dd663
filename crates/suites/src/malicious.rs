//! Suite `fss` against parties that deviate: programs on authenticated values ([`privet_shark`], after SHARK).
//!
//! Client and server keep a [setup](privet_shark::setup) for each program: keys that authenticate values, and the server's
//! weights behind a mask, authenticated. A dealer, which must be honest and collude with neither, makes it again for every
//! deal from a secret of its own and the setup's name, and the keys of one run. Online both take the [`Plan`]'s steps; the client looks at its
//! output when the check of everything that was opened has passed.
//!
//! Threat model: one of client and server may deviate in any message. See `docs/reference/protocols/shark.md`.

mod config;
mod deal;
mod forecast;
mod gate;
mod infer;
mod masking;
mod ops;
mod plan;
mod planner;
mod prepare;
mod security;
mod suite;

#[cfg(test)]
mod equivocation;

use std::io::{Read, Seek, SeekFrom};

use privet_fss::{KeyFile, Role};
use privet_prg::Seed;
use privet_seal::Stored;
use privet_shark::{Key, Setup, Weights};
use sha2::{Digest, Sha256};

use crate::{Error, MaterialId, StoreError};

pub use config::Config;
pub use infer::{infer_client, infer_server};
pub use plan::{Plan, Traffic};
pub use prepare::{deal, dealt_bytes};

/// One party's half of a run's material, and what it keeps of the setup that it was made for.
pub struct Material {
    key: Key,
    seed: Seed,
    /// What was made offline.
    prepared: KeyFile,
    body: KeyFile,
    session: MaterialId,
}

/// What stands behind the keys in a stored entry.
pub(crate) struct Head {
    /// The setup that it was made with.
    pub setup: MaterialId,
    /// Of the keys.
    seed: Seed,
    /// Of the server's weights behind their masks, as they were then.
    digest: [u8; 32],
}

/// Bytes of a [`Head`].
const HEAD: usize = 64;

impl Head {
    /// That of a stored entry. Fails with [`Error::Misuse`] if it is not this plan's material.
    pub(crate) fn read(stored: &mut Stored, plan: &Plan, role: Role) -> Result<Self, Error> {
        let mut head = Vec::new();
        let before = plan.prepared_bytes() + plan.body_bytes(role);
        let read = stored.seek(SeekFrom::Start(before)).and_then(|_| stored.read_to_end(&mut head));
        read.map_err(|error| Error::Misuse(format!("material cannot be read: {error}")))?;
        let head = <&[u8; HEAD]>::try_from(head.as_slice());
        let head = head
            .map_err(|_| Error::Misuse("the stored material is of another program or damaged: prepare again".into()))?;
        let digest = *head.last_chunk().expect("32 of 64 bytes");
        Ok(Self { setup: MaterialId::new(array(&head[..16])), seed: Seed::from_bytes(*array(&head[16..32])), digest })
    }
}

impl Material {
    /// The material of a claimed entry with this head, for the party with this setup. Fails with
    /// [`StoreError::OtherWeights`] if what was made offline was made with other weights than the setup has: together
    /// they would give an output that belongs to neither; with [`Error::Misuse`] if it cannot be read.
    pub(crate) fn new(
        stored: Stored,
        plan: &Plan,
        head: &Head,
        opened: &Opened,
        session: MaterialId,
    ) -> Result<Self, Error> {
        if head.digest != opened.digest {
            return Err(StoreError::OtherWeights { id: session }.into());
        }
        let prepared = KeyFile::new(stored.clone());
        let body = KeyFile::behind(stored, plan.prepared_bytes());
        let (key, seed) = (opened.setup.key().clone(), Seed::from_bytes(*head.seed.as_bytes()));
        Ok(Self { key, seed, prepared, body, session })
    }
}

fn array(bytes: &[u8]) -> &[u8; 16] {
    bytes.try_into().expect("16 bytes")
}

/// A party's setup for a program, as it uses it.
pub(crate) struct Opened {
    setup: Setup,
    pub weights: Vec<Weights>,
    /// Of the weights behind their masks, the same at both parties.
    pub digest: [u8; 32],
}

impl Opened {
    fn new(setup: Setup, weights: Vec<Weights>) -> Self {
        let digest = Sha256::new_with_prefix(b"privet hidden weights");
        let digest = weights.iter().fold(digest, |digest, weights| digest.chain_update(weights.digest()));
        Self { setup, weights, digest: digest.finalize().into() }
    }
}
