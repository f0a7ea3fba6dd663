//! What can go wrong with keys and gates.

/// A key could not be made or read, or a gate not be finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The link failed or the peer sent something wrong.
    #[error(transparent)]
    Channel(#[from] privet_channel::Error),
    /// A message had the right frame but cannot hold what it should.
    #[error("the peer's message does not hold what the protocol expects: {0}")]
    PeerMisbehaved(#[from] privet_ring::WrongLength),
    /// A key ended before the gate was through: it was made for another gate or fewer elements.
    #[error("the key has {actual} bytes left where the gate needs {expected}")]
    KeyTooShort {
        /// Bytes that the gate reads next.
        expected: usize,
        /// Bytes that were left.
        actual: usize,
    },
    /// A key could not be read or written.
    #[error("a key could not be moved: {0}")]
    Io(#[from] std::io::Error),
}
