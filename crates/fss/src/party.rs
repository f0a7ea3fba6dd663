//! A party to the online protocols.

use privet_channel::Channel;

/// Which of the two parties this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Expands its part of a key from a seed and the words alone.
    Client,
    /// Has corrections besides, and adds public constants to shares.
    Server,
}

/// One party's side: who it is and its link to the other.
pub struct Party<'a> {
    /// Client or server.
    pub role: Role,
    /// The link to the other party.
    pub channel: &'a mut Channel,
}

impl Role {
    /// `value` if this party is the one that adds public constants, else zero.
    pub(crate) fn public(self, value: u64) -> u64 {
        if self == Self::Server { value } else { 0 }
    }
}
