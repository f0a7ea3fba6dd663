//! Who the two parties of a protocol are.

/// Which of the two parties one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Holds the input and learns the output.
    Client,
    /// Holds the weights, and adds public constants to shares.
    Server,
}

impl Role {
    /// The other party.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// `value` if this party is the one that adds public constants, else zero.
    pub fn public(self, value: u64) -> u64 {
        if self == Self::Server { value } else { 0 }
    }

    /// The byte that stands for the role in messages and stored correlations.
    pub fn code(self) -> u8 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    /// The role of a byte.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Client, Self::Server].into_iter().find(|role| role.code() == code)
    }
}
