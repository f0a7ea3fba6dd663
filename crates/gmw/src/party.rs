//! A party to the online protocols.

use privet_channel::Channel;
use privet_ot::{Role, Stock};

use crate::Rounds;

/// One party's side: who it is, its link to the other, and the correlations it may still use.
pub struct Party<'a> {
    /// Client or server.
    pub role: Role,
    /// The link to the other party.
    pub channel: &'a mut Channel,
    /// Correlations, each handed out once.
    pub stock: &'a mut Stock,
    /// Depth of comparisons; both parties must choose alike.
    pub rounds: Rounds,
}

impl Party<'_> {
    /// Whether this party is the server; it is the one that adds public constants to shares.
    pub fn is_server(&self) -> bool {
        self.role == Role::Server
    }
}
