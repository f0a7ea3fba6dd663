//! The check of all that was opened: two parties find out whether their transcripts agree.
//!
//! Each commits to its digest, then the client opens its commitment, and only if all is well the server opens its own.
//!
//! Commitments come first because a digest that is known can be repeated: who saw the other's would need no code of its
//! own. The client opens first so that a run that was altered on any message ends before the client has its output.
//!
//! There is no challenge. A random linear combination of all `sigma` (SPDZ2k, SHARK) needs coefficients that nobody knows
//! before the last share is sent, and that neither party chose alone; here two lists are compared in full, and a hash that
//! resists collisions needs no coin.

use privet_channel::Channel;
use privet_fss::Role;
use privet_prg::Prg;
use sha2::{Digest, Sha256};

use crate::{Error, PeerMisbehaved};

/// Bytes of a commitment.
const COMMITMENT: usize = 32;

/// Bytes of an opening: the digest and the salt.
const OPENING: usize = 64;

/// Bytes that each party sends in one check, in order of its messages.
pub const CHECK_BYTES: [usize; 2] = [COMMITMENT, OPENING];

/// Checks that the peer's digest is `digest`.
///
/// # Errors
/// [`PeerMisbehaved::Check`] if it is not, [`PeerMisbehaved::Commitment`] if the peer changed its mind,
/// [`Error::CheckCut`] if the link failed on the way.
pub(crate) fn agree(channel: &mut Channel, role: Role, session: &[u8], digest: &[u8; 32]) -> Result<(), Error> {
    let mut opening = [0; OPENING];
    opening[..32].copy_from_slice(digest);
    Prg::from_os()?.fill(&mut opening[32..]);
    let commitment = channel.exchange(&commit(role, session, &opening)).map_err(Error::CheckCut)?;
    match role {
        Role::Client => {
            channel.send(&opening).map_err(Error::CheckCut)?;
            accept(channel, Role::Server, session, &commitment, digest)
        }
        Role::Server => {
            accept(channel, Role::Client, session, &commitment, digest)?;
            channel.send(&opening).map_err(Error::CheckCut)?;
            channel.flush().map_err(Error::CheckCut)
        }
    }
}

/// Receives the opening of a commitment of `owner`.
fn accept(
    channel: &mut Channel,
    owner: Role,
    session: &[u8],
    commitment: &[u8],
    digest: &[u8; 32],
) -> Result<(), Error> {
    let mut opening = [0; OPENING];
    channel.recv_into(&mut opening).map_err(Error::CheckCut)?;
    if commit(owner, session, &opening)[..] != *commitment {
        return Err(PeerMisbehaved::Commitment.into());
    }
    if opening[..32] != *digest {
        return Err(PeerMisbehaved::Check.into());
    }
    Ok(())
}

/// The commitment of `owner` to a digest and a salt.
fn commit(owner: Role, session: &[u8], opening: &[u8; OPENING]) -> [u8; COMMITMENT] {
    let owner: &[u8] = match owner {
        Role::Client => b"client",
        Role::Server => b"server",
    };
    let mut hash = Sha256::new_with_prefix(b"privet shark commitment 1");
    for part in [owner, session, opening] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
