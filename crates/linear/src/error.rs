//! What can go wrong, by who is at fault.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

/// Every failure of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// What came over the wire is wrong, or the peer gave up.
    #[error("{0}")]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// The caller asked for something that cannot be done, or cannot be done safely.
    #[error("{0}")]
    Misuse(#[from] Misuse),
    /// The network or the operating system failed.
    #[error("{0}")]
    Io(#[from] privet_channel::Io),
}

/// What the peer did.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// A message of the wrong length, an abort, or a broken frame.
    #[error("{0}")]
    Message(#[from] privet_channel::PeerMisbehaved),
    /// A key, ciphertext or reply that is not well-formed.
    #[error("{0}")]
    Ciphertext(#[from] privet_bfv::PeerMisbehaved),
}

/// What the caller did wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Misuse {
    /// A dimension, stride or dilation of zero.
    #[error("{what} of a layer is zero")]
    Zero { what: &'static str },
    /// The kernel reaches beyond the padded image.
    #[error("a kernel that spans {span} does not fit a padded image of {padded}")]
    KernelBeyondImage { span: usize, padded: usize },
    /// The channels do not divide into the groups.
    #[error("{channels} channels do not divide into {groups} groups")]
    Groups { channels: usize, groups: usize },
    /// A layer of more elements than this crate handles.
    #[error("the {what} of this layer have more than 2^40 elements")]
    TooLarge { what: &'static str },
    /// A layer of more results than the bound on the probability of failure covers.
    #[error("a layer of {outputs} results is too large: it may have 2^24")]
    TooManyResults { outputs: usize },
    /// The receptive field of one result is larger than a polynomial.
    #[error("a kernel that needs {elements} elements of the image at once exceeds a ciphertext of {degree}")]
    KernelTooLarge { elements: usize, degree: usize },
    /// Weights of more bits than this crate stores.
    #[error("weights of {weight_bits} bits are not supported: 1 to 50 bits")]
    WeightWidth { weight_bits: u32 },
    /// A weight as large as `2^weight_bits` or larger.
    #[error("weight {index} is not below 2^{weight_bits} in absolute value")]
    WeightTooLarge { index: usize, weight_bits: u32 },
    /// A vector of the wrong length.
    #[error("{what} must have length {expected} but has {actual}")]
    WrongLength { what: &'static str, expected: usize, actual: usize },
    /// Transformed weights, keys and plan were not made for each other.
    #[error("these {what} were made for another plan")]
    PlansDiffer { what: &'static str },
    /// No plan was asked for.
    #[error("a program without linear layers needs no parameters")]
    NoLayers,
    /// The cryptosystem refuses.
    #[error("{0}")]
    Bfv(#[from] privet_bfv::Misuse),
    /// The channel refuses.
    #[error("{0}")]
    Channel(#[from] privet_channel::Misuse),
}

impl Misuse {
    /// Refuses an argument whose length is not the one that it must have.
    pub(crate) fn check_length(what: &'static str, expected: usize, actual: usize) -> Result<(), Self> {
        if actual == expected { Ok(()) } else { Err(Self::WrongLength { what, expected, actual }) }
    }

    /// Refuses weights or keys of another plan: they agree or not.
    pub(crate) fn check_plans(what: &'static str, agree: bool) -> Result<(), Self> {
        if agree { Ok(()) } else { Err(Self::PlansDiffer { what }) }
    }
}

impl From<privet_channel::Error> for Error {
    fn from(error: privet_channel::Error) -> Self {
        match error {
            privet_channel::Error::PeerMisbehaved(error) => PeerMisbehaved::from(error).into(),
            privet_channel::Error::Misuse(error) => Misuse::from(error).into(),
            privet_channel::Error::Io(error) => error.into(),
        }
    }
}

impl From<privet_bfv::Error> for Error {
    fn from(error: privet_bfv::Error) -> Self {
        match error {
            privet_bfv::Error::PeerMisbehaved(error) => PeerMisbehaved::from(error).into(),
            privet_bfv::Error::Misuse(error) => Misuse::from(error).into(),
        }
    }
}
