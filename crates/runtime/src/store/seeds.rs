//! What a dealer derives setups from, so that it keeps none of them.

use privet_fss::Seeds;
use privet_prg::Seed;
use sha2::{Digest, Sha256};

use super::MaterialId;

/// Both parties' seeds of a setup, and its name.
pub struct SetupSeeds {
    /// The setup's name.
    pub name: MaterialId,
    /// The seed of each party.
    pub seeds: Seeds,
}

impl SetupSeeds {
    /// That of this name, of a client and a server for a program: the same whenever the dealer with this `secret` is asked.
    pub fn derive(secret: &Seed, parties: [&str; 2], program: &str, name: &MaterialId) -> Self {
        let part = |label: &[u8]| {
            let mut hash = Sha256::new_with_prefix(b"privet setup");
            let [client, server] = parties.map(str::as_bytes);
            for part in [secret.as_bytes(), label, client, server, program.as_bytes(), &name.bytes()] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            Seed::from_bytes(first_half(&hash.finalize().into()))
        };
        let [client, server] = [b"client", b"server"].map(|label| part(label));
        Self { name: name.clone(), seeds: Seeds { client, server } }
    }
}

/// What a party shows the dealer of its seed of a setup, to prove that it keeps that setup as this dealer deals it.
pub fn setup_proof(seed: &Seed) -> [u8; 16] {
    first_half(&Sha256::new_with_prefix(b"privet setup kept").chain_update(seed.as_bytes()).finalize().into())
}

fn first_half(digest: &[u8; 32]) -> [u8; 16] {
    *digest.first_chunk().expect("16 of 32 bytes")
}
