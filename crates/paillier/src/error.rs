//! What can go wrong, by who is at fault.

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
    WrongLength {
        /// What was being read.
        what: &'static str,
        /// The bytes that the key's size asks for.
        expected: usize,
        /// The bytes that came.
        actual: usize,
    },
    /// A public key that nobody can have made honestly.
    #[error("the public key is refused: {reason}")]
    Key {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A ciphertext that is not below `n^2`.
    #[error("ciphertext {index} is not below the square of the public key")]
    NotReduced {
        /// Which one.
        index: usize,
    },
    /// A ciphertext that has a factor in common with the public key.
    #[error("ciphertext {index} is not invertible")]
    NotInvertible {
        /// Which one.
        index: usize,
    },
}

/// What the caller did wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A number beyond half the public key.
    #[error("plaintext {index} is not below half the public key")]
    PlaintextTooLarge {
        /// Which one.
        index: usize,
    },
    /// More slots, or larger values, than a plaintext holds.
    #[error("{slots} slots of {slot_bits} bits do not fit a plaintext of {plaintext_bits} bits")]
    SlotsDoNotFit {
        /// Slots that were asked for.
        slots: usize,
        /// Bits of a slot, with its sign.
        slot_bits: usize,
        /// Bits that a plaintext has.
        plaintext_bits: usize,
    },
    /// A bound on values that is zero or too large for results in 64 bits.
    #[error("values must be bounded by 1 to 2^62, not by {bound}")]
    Bound {
        /// The bound that was asked for.
        bound: u128,
    },
    /// A value beyond the bound that its packing was proved for.
    #[error("value {index} exceeds the bound {bound} of its packing")]
    ValueTooLarge {
        /// Which value.
        index: usize,
        /// The bound.
        bound: u64,
    },
    /// Weights of a width that is not supported.
    #[error("weights of {bits} bits are not supported: 2 to 32 bits, with the sign")]
    WeightWidth {
        /// The width that was asked for.
        bits: usize,
    },
    /// A weight that is wider than all were said to be.
    #[error("weight {index} does not fit {bits} bits")]
    WeightTooLarge {
        /// Which weight, row by row.
        index: usize,
        /// Bits of a weight, with the sign.
        bits: usize,
    },
    /// A vector of the wrong length.
    #[error("{what} must have length {expected} but has {actual}")]
    WrongLength {
        /// Which argument.
        what: &'static str,
        /// The length it must have.
        expected: usize,
        /// The length it has.
        actual: usize,
    },
    /// A window that reads a ciphertext which is not there.
    #[error("there is no ciphertext {index}, only {count}")]
    NoSuchInput {
        /// The ciphertext.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// Ciphertexts or noise of another public key.
    #[error("ciphertexts and noise of different public keys cannot be combined")]
    KeysDiffer,
    /// A private key's bytes that were not written by this crate, or were damaged.
    #[error("these bytes are not a private key")]
    NotAPrivateKey,
}
