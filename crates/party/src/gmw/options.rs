//! What client and server must choose alike before they make material.

use privet_gmw::{Rounds, Truncation};

/// The suite's options; both parties derive the same plan from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Depth of comparisons.
    pub rounds: Rounds,
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
}

impl Options {
    /// Every choice.
    pub fn all() -> impl Iterator<Item = Self> {
        [Truncation::OneBit, Truncation::Exact]
            .into_iter()
            .flat_map(|truncation| [Rounds::Linear, Rounds::Log].map(|rounds| Self { rounds, truncation }))
    }

    /// The suite with its options, as control messages and stores name it.
    pub fn suite(self) -> String {
        let rounds = match self.rounds {
            Rounds::Linear => "linear",
            Rounds::Log => "log",
        };
        let truncation = match self.truncation {
            Truncation::OneBit => "one-bit",
            Truncation::Exact => "exact",
        };
        format!("gmw {rounds} {truncation}")
    }

    /// The options of which [`Options::suite`] is `suite`.
    pub fn from_suite(suite: &str) -> Option<Self> {
        Self::all().find(|options| options.suite() == suite)
    }
}

impl From<Rounds> for Options {
    /// Comparisons of this depth, and the free truncation.
    fn from(rounds: Rounds) -> Self {
        Self { rounds, truncation: Truncation::OneBit }
    }
}
