//! What client and server must choose alike before they make material.

use privet_gmw::{Rounds, Truncation};

/// Where correlations and shares of linear layers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correlations {
    /// The two parties make them by OT and BFV, with nobody else.
    #[default]
    Made,
    /// A dealer deals them, which must collude with neither party.
    Dealt,
}

/// The suite's options; both parties derive the same plan from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Depth of comparisons.
    pub rounds: Rounds,
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
    /// Where material comes from.
    pub correlations: Correlations,
}

impl Options {
    /// Every choice without a dealer.
    pub fn all() -> impl Iterator<Item = Self> {
        [Truncation::OneBit, Truncation::Exact].into_iter().flat_map(|truncation| {
            let depths = [Rounds::Linear, Rounds::Log, Rounds::Blocks];
            depths.map(|rounds| Self { rounds, truncation, correlations: Correlations::Made })
        })
    }

    /// The same choice with material from a dealer.
    #[must_use]
    pub fn dealt(self) -> Self {
        Self { correlations: Correlations::Dealt, ..self }
    }

    /// The suite with its options, as control messages and stores name it.
    pub fn suite(self) -> String {
        let rounds = match self.rounds {
            Rounds::Linear => "linear",
            Rounds::Log => "log",
            Rounds::Blocks => "blocks",
        };
        let truncation = match self.truncation {
            Truncation::OneBit => "one-bit",
            Truncation::Exact => "exact",
        };
        let correlations = match self.correlations {
            Correlations::Made => "",
            Correlations::Dealt => " dealt",
        };
        format!("gmw {rounds} {truncation}{correlations}")
    }

    /// The options of which [`Options::suite`] is `suite`.
    pub fn from_suite(suite: &str) -> Option<Self> {
        Self::all().flat_map(|options| [options, options.dealt()]).find(|options| options.suite() == suite)
    }
}

impl From<Rounds> for Options {
    /// Comparisons of this depth, the free truncation, and no dealer.
    fn from(rounds: Rounds) -> Self {
        Self { rounds, truncation: Truncation::OneBit, correlations: Correlations::Made }
    }
}
