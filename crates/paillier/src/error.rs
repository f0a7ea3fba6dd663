//! What can go wrong, by who is at fault.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

/// Every failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bytes that came from the peer are not what the protocol allows.
    #[error("the peer misbehaved: {0}")]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// The caller asked for something that cannot be done, or cannot be done safely.
    #[error("misuse: {0}")]
    Misuse(#[from] Misuse),
    /// The operating system failed.
    #[error(transparent)]
    Io(#[from] privet_prg::Error),
}

/// What is wrong with bytes that came from the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// A key or ciphertexts of the wrong length.
    #[error("{what} must be {expected} bytes long but {actual} came")]
    WrongLength { what: &'static str, expected: usize, actual: usize },
    /// A public key that nobody can have made honestly.
    #[error("the public key is refused: {reason}")]
    Key { reason: &'static str },
    /// A ciphertext that is not below `n^2`.
    #[error("ciphertext {index} is not below the square of the public key")]
    NotReduced { index: usize },
    /// A ciphertext that has a factor in common with the public key.
    #[error("ciphertext {index} is not invertible")]
    NotInvertible { index: usize },
}

/// What the caller did wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A number beyond half the public key.
    #[error("plaintext {index} is not below half the public key")]
    PlaintextTooLarge { index: usize },
    /// More slots, or larger values, than a plaintext holds; a slot's bits are with its sign.
    #[error("{slots} slots of {slot_bits} bits do not fit a plaintext of {plaintext_bits} bits")]
    SlotsDoNotFit { slots: usize, slot_bits: usize, plaintext_bits: usize },
    /// A bound on values that is zero or too large for results in 64 bits.
    #[error("values must be bounded by 1 to 2^62, not by {bound}")]
    Bound { bound: u128 },
    /// A value beyond the bound that its packing was proved for.
    #[error("value {index} exceeds the bound {bound} of its packing")]
    ValueTooLarge { index: usize, bound: u64 },
    /// Weights of a width that is not supported.
    #[error("weights of {bits} bits are not supported: 2 to 32 bits, with the sign")]
    WeightWidth { bits: usize },
    /// A weight, counted row by row, that is wider than all were said to be.
    #[error("weight {index} does not fit {bits} bits")]
    WeightTooLarge { index: usize, bits: usize },
    /// A vector of the wrong length.
    #[error("{what} must have length {expected} but has {actual}")]
    WrongLength { what: &'static str, expected: usize, actual: usize },
    /// A window that reads a ciphertext which is not there.
    #[error("there is no ciphertext {index}, only {count}")]
    NoSuchInput { index: usize, count: usize },
    /// Ciphertexts or noise of another public key.
    #[error("ciphertexts and noise of different public keys cannot be combined")]
    KeysDiffer,
    /// A private key's bytes that were not written by this crate, or were damaged.
    #[error("these bytes are not a private key")]
    NotAPrivateKey,
}
