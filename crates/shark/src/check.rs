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
//!
//! What a failed check tells the peer, it tells before this party has given up the setup. A party with several runs under way
//! on one setup must therefore let one of them check at a time, and none after a failure: [`Turns`].

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

/// Lets the runs of a party on one setup check one at a time, whatever threads or processes they are in.
pub trait Turns {
    /// Calls `check` once, while no other run of this setup is in such a call, and gives its result back. An error of which
    /// [`Error::spoils_setup`] is true must be on record before the next call; so must a call that never returned.
    ///
    /// # Errors
    /// What `check` returns; [`Error::GivenUp`], without a call, if the setup was given up.
    fn take(&self, check: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error>;
}

/// For a party whose runs on a setup follow one after the other.
pub(crate) struct OneByOne;

impl Turns for OneByOne {
    fn take(&self, check: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
        check()
    }
}

/// Checks that the peer's digest is `digest`.
///
/// The client takes its turn before it opens anything. The server waits for the client first, so that its own turn
/// waits for nobody: parties with runs that wait for each other's turns would stand still. Fails with
/// [`PeerMisbehaved::Check`] if it is not, [`PeerMisbehaved::Commitment`] if the peer changed its mind,
/// [`Error::CheckCut`] if the link failed on the way, [`Error::GivenUp`] from `turns`.
pub(crate) fn agree(
    channel: &mut Channel,
    turns: &dyn Turns,
    role: Role,
    session: &[u8],
    digest: &[u8; 32],
) -> Result<(), Error> {
    let mut opening = [0; OPENING];
    opening[..32].copy_from_slice(digest);
    Prg::from_os()?.fill(&mut opening[32..]);
    let commitment = channel.exchange(&commit(role, session, &opening)).map_err(Error::CheckCut)?;
    match role {
        Role::Client => turns.take(&mut || {
            channel.send(&opening).map_err(Error::CheckCut)?;
            accept(&receive(channel)?, Role::Server, session, &commitment, digest)
        }),
        Role::Server => {
            let peer_opening = receive(channel)?;
            turns.take(&mut || accept(&peer_opening, Role::Client, session, &commitment, digest))?;
            channel.send(&opening).map_err(Error::CheckCut)?;
            channel.flush().map_err(Error::CheckCut)
        }
    }
}

fn receive(channel: &mut Channel) -> Result<[u8; OPENING], Error> {
    let mut opening = [0; OPENING];
    channel.recv_into(&mut opening).map_err(Error::CheckCut)?;
    Ok(opening)
}

/// Looks at the opening of a commitment of `owner`.
fn accept(
    opening: &[u8; OPENING],
    owner: Role,
    session: &[u8],
    commitment: &[u8],
    digest: &[u8; 32],
) -> Result<(), Error> {
    if commit(owner, session, opening)[..] != *commitment {
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
