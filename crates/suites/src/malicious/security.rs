//! The security budget of a plan on authenticated shares; see [`crate::security`].

use super::Plan;
use crate::security::{Assumption, Growth, Loss, Security, seeds, trees};

/// Chance that a changed value or bit passes all checks of a setup, in bits: whatever the number of openings and runs.
const CHECK_BITS: i32 = 63;

/// Generators that grow from a party's seed of a run or a setup, with the seed itself.
const STREAMS: u64 = 6;

impl Plan {
    /// What the plan assumes and loses.
    pub fn security(&self) -> Security {
        // A comparison has a hash for the tree and one for the value at each level.
        let hashes = 2 * self.ring().bits() as usize;
        let assumptions = vec![
            seeds(2 * 2 * STREAMS),
            trees(hashes),
            Assumption::new("transcripts and commitments", "collisions of SHA-256", 128.0, 2),
        ];
        let passing = 2_f64.powi(-CHECK_BITS);
        let losses = vec![Loss::new("checks", "setup in which a change passes", 1, passing, Growth::Whole, 1)];
        let notes = vec!["the dealer knows every mask: it must collude with neither party"];
        Security::new(assumptions, losses, "setup of a client, a server and a program", None, notes)
    }
}
