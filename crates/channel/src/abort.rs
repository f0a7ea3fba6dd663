//! Why a party gives up: the code that an abort frame carries.

use std::fmt;

/// Why a party ended the conversation; sent to the peer as one byte that never changes meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbortReason {
    /// The two sides speak different versions of the protocol (code 1).
    Version,
    /// The program asked for is not served here (code 2).
    UnknownProgram,
    /// The session or its material is no longer known, for example after a restart (code 3).
    StaleSession,
    /// There is no preprocessed material left for this request (code 4).
    MaterialUnavailable,
    /// The request is well formed but cannot be granted (code 5).
    BadRequest,
    /// An error inside the aborting party (code 6).
    Internal,
    /// The aborting party saw the peer break the protocol (code 7).
    Misbehaved,
    /// Too many requests at once; trying later may help (code 8).
    Busy,
    /// The aborting party is being stopped (code 9).
    ShuttingDown,
    /// The peer's certificate is valid but not allowed to do this (code 10).
    NotAllowed,
    /// The aborting party waited for longer than its timeout (code 11).
    TimedOut,
    /// A code this version does not know, from a newer peer.
    Other(u8),
}

impl AbortReason {
    /// The byte on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::Version => 1,
            Self::UnknownProgram => 2,
            Self::StaleSession => 3,
            Self::MaterialUnavailable => 4,
            Self::BadRequest => 5,
            Self::Internal => 6,
            Self::Misbehaved => 7,
            Self::Busy => 8,
            Self::ShuttingDown => 9,
            Self::NotAllowed => 10,
            Self::TimedOut => 11,
            Self::Other(code) => code,
        }
    }

    /// The reason for a byte from the wire; an unknown one becomes [`AbortReason::Other`].
    pub fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::UnknownProgram,
            3 => Self::StaleSession,
            4 => Self::MaterialUnavailable,
            5 => Self::BadRequest,
            6 => Self::Internal,
            7 => Self::Misbehaved,
            8 => Self::Busy,
            9 => Self::ShuttingDown,
            10 => Self::NotAllowed,
            11 => Self::TimedOut,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for AbortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("it speaks another version of the protocol"),
            Self::UnknownProgram => f.write_str("it does not serve this program"),
            Self::StaleSession => f.write_str("it no longer knows this session"),
            Self::MaterialUnavailable => f.write_str("no preprocessed material is left"),
            Self::BadRequest => f.write_str("it cannot grant this request"),
            Self::Internal => f.write_str("it had an internal error"),
            Self::Misbehaved => f.write_str("it saw this side break the protocol"),
            Self::Busy => f.write_str("it is too busy; try again later"),
            Self::ShuttingDown => f.write_str("it is shutting down"),
            Self::NotAllowed => f.write_str("this side's certificate is not allowed to do this"),
            Self::TimedOut => f.write_str("a wait of it took longer than its timeout; a longer one can be set there"),
            Self::Other(code) => write!(f, "of a reason this version does not know (code {code})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AbortReason;

    #[test]
    fn every_code_comes_back() {
        for code in 0..=u8::MAX {
            assert_eq!(AbortReason::from_code(code).code(), code);
        }
        assert_eq!(AbortReason::from_code(200), AbortReason::Other(200));
        assert_eq!(AbortReason::from_code(3), AbortReason::StaleSession);
    }
}
