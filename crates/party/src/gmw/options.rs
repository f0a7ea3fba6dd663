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
    pub const ALL: [Self; 4] = [
        Self { rounds: Rounds::Linear, truncation: Truncation::OneBit },
        Self { rounds: Rounds::Log, truncation: Truncation::OneBit },
        Self { rounds: Rounds::Linear, truncation: Truncation::Exact },
        Self { rounds: Rounds::Log, truncation: Truncation::Exact },
    ];

    /// The suite with its options, as control messages and stores name it.
    pub fn suite(self) -> &'static str {
        match (self.rounds, self.truncation) {
            (Rounds::Linear, Truncation::OneBit) => "gmw linear one-bit",
            (Rounds::Log, Truncation::OneBit) => "gmw log one-bit",
            (Rounds::Linear, Truncation::Exact) => "gmw linear exact",
            (Rounds::Log, Truncation::Exact) => "gmw log exact",
        }
    }
}

impl From<Rounds> for Options {
    /// Comparisons of this depth, and the free truncation.
    fn from(rounds: Rounds) -> Self {
        Self { rounds, truncation: Truncation::OneBit }
    }
}
