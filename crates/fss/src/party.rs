//! A party to the online protocols.

use privet_channel::{Channel, Role};

/// One party's side: who it is and its link to the other.
pub struct Party<'a> {
    /// Client or server.
    pub role: Role,
    /// The link to the other party.
    pub channel: &'a mut Channel,
}
