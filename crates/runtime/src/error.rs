//! What can go wrong in a job or a session, in three families: the peer, the caller, the world.

use privet_channel::AbortReason;

use crate::session::Refused;
use crate::store::StoreError;

/// A job or a session failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The link failed, or what came over it has the wrong form.
    #[error(transparent)]
    Channel(#[from] privet_channel::Error),
    /// The peer said something that makes no sense here.
    #[error("the peer broke the protocol: {0}")]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// A linear layer's offline half failed, other than through the link.
    #[error(transparent)]
    Linear(privet_linear::Error),
    /// Correlations could not be made or ran dry.
    #[error(transparent)]
    Correlations(privet_ot::Error),
    /// A run on authenticated values did not end well.
    #[error(transparent)]
    Authenticated(privet_shark::Error),
    /// Keys could not be made, stored or read.
    #[error(transparent)]
    Keys(privet_fss::Error),
    /// Paillier refused a key, a ciphertext or a number.
    #[error(transparent)]
    Encryption(privet_paillier::Error),
    /// The program or its weights are not usable.
    #[error(transparent)]
    Program(#[from] privet_program::Error),
    /// Material is missing, spent or damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A client asked for what this server's policy does not give.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No randomness from the operating system.
    #[error(transparent)]
    Randomness(#[from] privet_prg::Error),
    /// The caller asked for something impossible.
    #[error("{0}")]
    Misuse(String),
}

impl From<privet_linear::Error> for Error {
    fn from(error: privet_linear::Error) -> Self {
        use privet_linear::{Error as Linear, Misuse, PeerMisbehaved};
        match error {
            Linear::PeerMisbehaved(PeerMisbehaved::Message(error)) => Self::Channel(error.into()),
            Linear::Misuse(Misuse::Channel(error)) => Self::Channel(error.into()),
            Linear::Io(error) => Self::Channel(error.into()),
            other => Self::Linear(other),
        }
    }
}

impl From<privet_ot::Error> for Error {
    fn from(error: privet_ot::Error) -> Self {
        match error {
            privet_ot::Error::Channel(error) => Self::Channel(error),
            privet_ot::Error::Io(error) => Self::Randomness(error),
            other => Self::Correlations(other),
        }
    }
}

impl From<privet_gmw::Error> for Error {
    fn from(error: privet_gmw::Error) -> Self {
        match error {
            privet_gmw::Error::Channel(error) => Self::Channel(error),
            privet_gmw::Error::Correlations(error) => error.into(),
            privet_gmw::Error::PeerMisbehaved(error) => PeerMisbehaved::Message(error).into(),
        }
    }
}

impl From<privet_fss::Error> for Error {
    fn from(error: privet_fss::Error) -> Self {
        match error {
            privet_fss::Error::Channel(error) => Self::Channel(error),
            privet_fss::Error::PeerMisbehaved(error) => PeerMisbehaved::Message(error).into(),
            other => Self::Keys(other),
        }
    }
}

impl From<privet_shark::Error> for Error {
    fn from(error: privet_shark::Error) -> Self {
        match error {
            privet_shark::Error::Channel(error) => Self::Channel(error),
            privet_shark::Error::Key(error) => error.into(),
            privet_shark::Error::Entropy(error) => Self::Randomness(error),
            other => Self::Authenticated(other),
        }
    }
}

impl From<privet_paillier::Error> for Error {
    fn from(error: privet_paillier::Error) -> Self {
        match error {
            privet_paillier::Error::Io(error) => Self::Randomness(error),
            other => Self::Encryption(other),
        }
    }
}

/// What a peer did in a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// It does not greet as Privet does.
    #[error("it does not speak Privet's protocol: is another program listening there?")]
    NotPrivet,
    /// It speaks another version.
    #[error("it speaks version {theirs} of the protocol, this side version {ours}: install the same release on both")]
    Version {
        /// This side's version.
        ours: u16,
        /// The peer's version.
        theirs: u16,
    },
    /// A message cannot hold what it should.
    #[error("{0}")]
    Message(#[from] privet_ring::WrongLength),
    /// A control message is not what was due.
    #[error("a control message is not readable: {0}")]
    ControlMessage(String),
    /// It offers another program than the one that the client expects.
    #[error("it offers program {actual}, not {expected}: ask its operator which one is current")]
    OtherProgram {
        /// The hash that the client expects.
        expected: String,
        /// The hash of what it sent.
        actual: String,
    },
    /// The public half that it sent is no program.
    #[error("the program that it describes is not usable: {0}")]
    Program(String),
    /// A masked value that it sent is not a number of the program's ring.
    #[error("a value that it sent does not fit the ring")]
    Element,
    /// It asked for what this side does not grant.
    #[error("its request was refused: {0}")]
    Request(String),
}

impl Error {
    /// What to tell the peer before hanging up.
    pub fn abort_reason(&self) -> AbortReason {
        match self {
            Self::PeerMisbehaved(PeerMisbehaved::Version { .. }) => AbortReason::Version,
            Self::Refused(Refused::Outside(_)) => AbortReason::NotAllowed,
            Self::Refused(Refused::Exhausted { .. }) => AbortReason::Busy,
            _ if self.is_the_peers_fault() => AbortReason::Misbehaved,
            Self::Store(StoreError::Spent { .. } | StoreError::Held { .. } | StoreError::Missing { .. }) => {
                AbortReason::MaterialUnavailable
            }
            _ if self.is_given_up() => AbortReason::MaterialUnavailable,
            _ if self.is_timeout() => AbortReason::TimedOut,
            _ => AbortReason::Internal,
        }
    }

    /// Whether a wait on the link took longer than this side's timeout.
    fn is_timeout(&self) -> bool {
        use privet_channel::{Error::Io, Io::TimedOut};
        matches!(self.link(), Some(Io(TimedOut { .. })))
    }

    /// Whether what the peer sent is wrong, or it gave up.
    pub fn is_the_peers_fault(&self) -> bool {
        use privet_shark::Error::{CheckCut, PeerMisbehaved};
        matches!(
            self,
            Self::PeerMisbehaved(_)
                | Self::Refused(Refused::Outside(_) | Refused::Exhausted { .. })
                | Self::Channel(privet_channel::Error::PeerMisbehaved(_))
                | Self::Linear(privet_linear::Error::PeerMisbehaved(_))
                | Self::Correlations(privet_ot::Error::PeerMisbehaved { .. })
                | Self::Encryption(privet_paillier::Error::PeerMisbehaved(_))
                | Self::Authenticated(PeerMisbehaved(_) | CheckCut(privet_channel::Error::PeerMisbehaved(_)))
        )
    }

    /// Whether what authenticates values towards this peer may have become known in part.
    pub(crate) fn spoils_setup(&self) -> bool {
        matches!(self, Self::Authenticated(error) if error.spoils_setup())
    }

    /// How the link failed, if it did: in the middle of a check, too.
    pub fn link(&self) -> Option<&privet_channel::Error> {
        match self {
            Self::Channel(error) | Self::Authenticated(privet_shark::Error::CheckCut(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether what material was made with has been given up meanwhile.
    pub fn is_given_up(&self) -> bool {
        use privet_shark::Error::GivenUp;
        matches!(self, Self::Authenticated(GivenUp(_)) | Self::Store(StoreError::GivenUp { .. }))
    }

    /// Whether the peer refused what it was asked, before it did anything for it.
    pub(crate) fn is_refusal(&self) -> bool {
        use privet_channel::{Error as Link, PeerMisbehaved};
        let refusals = [AbortReason::NotAllowed, AbortReason::Busy];
        matches!(self.link(), Some(Link::PeerMisbehaved(PeerMisbehaved::Aborted { reason, .. })) if refusals.contains(reason))
    }

    /// Whether the peer gave up, so that there is nobody left to tell.
    pub fn is_abort(&self) -> bool {
        use privet_channel::{Error as Link, PeerMisbehaved};
        matches!(self.link(), Some(Link::PeerMisbehaved(PeerMisbehaved::Aborted { .. })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was an internal error to the peer, which then took this side for one that misbehaves.
    #[test]
    fn a_peer_is_told_of_a_wait_that_took_too_long() {
        let timeout = privet_channel::Io::TimedOut { seconds: 1.0, waiting_for: "a test" };
        assert_eq!(Error::Channel(timeout.into()).abort_reason(), AbortReason::TimedOut);
        assert_eq!(Error::Channel(privet_channel::Io::Disconnected.into()).abort_reason(), AbortReason::Internal);
    }
}
