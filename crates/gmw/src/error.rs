//! What can go wrong in an online protocol.

/// A protocol could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The link failed or the peer sent something wrong.
    #[error(transparent)]
    Channel(#[from] privet_channel::Error),
    /// The stock of correlations failed or ran out.
    #[error(transparent)]
    Correlations(#[from] privet_ot::Error),
    /// A message had the right frame but cannot hold what it should.
    #[error("the peer's message does not hold what the protocol expects: {0}")]
    PeerMisbehaved(#[from] privet_ring::WrongLength),
}
