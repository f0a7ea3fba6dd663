//! What can go wrong, by who is at fault.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

/// Every failure of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Bytes that came from the peer are not what the protocol allows.
    #[error("the peer misbehaved: {0}")]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// The caller asked for something that cannot be done, or cannot be done safely.
    #[error("misuse: {0}")]
    Misuse(#[from] Misuse),
}

/// What is wrong with bytes that came from the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// A key, ciphertext or reply of the wrong length.
    #[error("a {what} must be {expected} bytes long but {actual} came")]
    WrongLength { what: &'static str, expected: usize, actual: usize },
    /// A coefficient that is not reduced modulo its prime.
    #[error("coefficient {index} of a {what} is not below the prime {prime}")]
    NotReduced { what: &'static str, index: usize, prime: u64 },
    /// Bits after the last coefficient that are not zero.
    #[error("the unused bits at the end of a {what} are not zero")]
    DirtyPadding { what: &'static str },
}

/// What the caller did wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Misuse {
    /// No row of the security table has this ring degree.
    #[error("ring degree {degree} is not in the security table (1024, 2048, 4096, 8192)")]
    UnknownDegree { degree: usize },
    /// The modulus is too large for 128-bit security at this degree.
    #[error("a modulus of {modulus_bits} bits at degree {degree} is insecure: at most {limit} bits")]
    Insecure { degree: usize, modulus_bits: u32, limit: u32 },
    /// More results than a key may serve.
    #[error("a key serves {inferences} inferences, after which the client must make another: open a new session")]
    KeyWornOut { inferences: u64 },
    /// There is no prime of this width that suits the transform, or the width is out of range.
    #[error("no two transform primes of {bits:?} bits at degree {degree} (widths of 20 to 60 bits, the wider first)")]
    NoPrime { degree: usize, bits: [u32; 2] },
    /// The plaintext ring is too small or too large.
    #[error("a ring of {ring_bits} bits is not supported: 8 to 50 bits")]
    RingWidth { ring_bits: u32 },
    /// The plaintext ring is too large for exact resharing.
    #[error("exact resharing of a ring of {ring_bits} bits is not supported: {limit} bits at most")]
    ExactRingWidth { ring_bits: u32, limit: u32 },
    /// Weights of this size would drown the result in noise, under this modulus or the largest secure one.
    #[error(
        "noise of up to 2^{noise_bits:.1} does not fit a {ring_bits}-bit ring under a modulus of {modulus_bits:.1} bits"
    )]
    NoiseTooLarge { noise_bits: f64, ring_bits: u32, modulus_bits: f64 },
    /// A vector of the wrong length.
    #[error("{what} must have length {expected} but has {actual}")]
    WrongLength { what: &'static str, expected: usize, actual: usize },
    /// A position that is not a coefficient, or is not above the one before it.
    #[error("position {position} is out of order or not below the degree {degree}")]
    Position { position: usize, degree: usize },
    /// A plaintext modulus without slots.
    #[error("{prime} is no prime of 17 to 45 bits that is 1 modulo twice the degree")]
    PlainPrime { prime: u64 },
    /// The client gave no key for this rotation.
    #[error("there is no key for this rotation")]
    NoRotation,
    /// More replies to be merged into one than there are keys for.
    #[error("2^{levels} replies cannot be merged into one under parameters for 2^{most}")]
    NoMerging { levels: u32, most: u32 },
    /// Another sum for a reply that is full.
    #[error("{most} sums are merged into this reply already")]
    MergeFull { most: usize },
    /// Two objects made under different parameters.
    #[error("keys, ciphertexts and weights of different parameters cannot be combined")]
    ParametersDiffer,
}

impl Misuse {
    /// Refuses an argument whose length is not the one that it must have.
    pub(crate) fn check_length(what: &'static str, expected: usize, actual: usize) -> Result<(), Self> {
        if actual == expected { Ok(()) } else { Err(Self::WrongLength { what, expected, actual }) }
    }

    /// Refuses an argument that is longer than it may be.
    pub(crate) fn check_most(what: &'static str, most: usize, actual: usize) -> Result<(), Self> {
        if actual <= most { Ok(()) } else { Err(Self::WrongLength { what, expected: most, actual }) }
    }

    /// Refuses objects of different parameters: all agree or not.
    pub(crate) fn check_parameters(agree: bool) -> Result<(), Self> {
        if agree { Ok(()) } else { Err(Self::ParametersDiffer) }
    }
}
