//! What can go wrong in a run.

/// A run that did not end well. Nothing may be revealed afterwards.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The link failed or the peer gave up, outside a check.
    #[error(transparent)]
    Channel(#[from] privet_channel::Error),
    /// The peer deviated from the protocol.
    #[error("the peer deviated from the protocol: {0}")]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// The link failed while a check was under way.
    #[error("the link failed during the check of all that was opened: {0}")]
    CheckCut(#[source] privet_channel::Error),
    /// A key could not be read or written.
    #[error(transparent)]
    Key(#[from] privet_fss::Error),
    /// An earlier step failed, and the caller went on.
    #[error("an earlier step of this run failed: start another run with fresh material")]
    Failed,
    /// The setup was given up while this run was under way, or its record cannot be kept.
    #[error("the setup was given up, so nothing of this run is accepted: {0}")]
    GivenUp(String),
    /// The operating system gave no entropy.
    #[error(transparent)]
    Entropy(#[from] privet_prg::Error),
}

/// How the peer deviated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// A message had the right frame but cannot hold what it should.
    #[error("its message does not hold what the protocol expects: {0}")]
    Length(#[from] privet_ring::WrongLength),
    /// Bits that fill a message up to a byte were not zero.
    #[error("unused bits of its message are set")]
    Padding,
    /// What it opened is not what it had committed to.
    #[error("it opened another value than it had committed to")]
    Commitment,
    /// An opened value does not agree with its authentication code, or the two sides opened different values.
    #[error("the check of all that was opened failed")]
    Check,
}

impl Error {
    /// Whether the keys that authenticate values may have become known in part.
    ///
    /// If so, this party must use the setup that it shares with this peer (keys and hidden weights) never again: a peer
    /// that could go on would learn a key bit by bit.
    pub fn spoils_setup(&self) -> bool {
        matches!(self, Self::CheckCut(_) | Self::PeerMisbehaved(PeerMisbehaved::Commitment | PeerMisbehaved::Check))
    }
}

impl From<privet_ring::WrongLength> for Error {
    fn from(error: privet_ring::WrongLength) -> Self {
        PeerMisbehaved::Length(error).into()
    }
}
