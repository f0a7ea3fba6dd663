//! What client and server must choose alike before they make material.

use privet_gmw::{Rounds, Truncation};

/// Where correlations and shares of linear layers come from in suite `gmw`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correlations {
    /// The two parties make them by OT and BFV, with nobody else.
    #[default]
    Made,
    /// A dealer deals them, which must collude with neither party.
    Dealt,
}

/// What non-linear steps run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Boolean sharing.
    Gmw {
        /// Depth of comparisons.
        rounds: Rounds,
        /// Where material comes from.
        correlations: Correlations,
    },
    /// Function secret sharing, with keys from a dealer.
    Fss,
}

/// A suite with its options; both parties derive the same plan from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What non-linear steps run on.
    pub suite: Suite,
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
}

impl Options {
    /// Every choice without a dealer.
    pub fn made() -> impl Iterator<Item = Self> {
        Self::gmw(Correlations::Made)
    }

    /// Every choice with a dealer.
    pub fn dealt() -> impl Iterator<Item = Self> {
        let fss = TRUNCATIONS.map(|truncation| Self { suite: Suite::Fss, truncation });
        Self::gmw(Correlations::Dealt).chain(fss)
    }

    fn gmw(correlations: Correlations) -> impl Iterator<Item = Self> {
        TRUNCATIONS.into_iter().flat_map(move |truncation| {
            let depths = [Rounds::Linear, Rounds::Log, Rounds::Blocks];
            depths.map(|rounds| Self { suite: Suite::Gmw { rounds, correlations }, truncation })
        })
    }

    /// Whether a dealer makes the material.
    pub fn is_dealt(self) -> bool {
        matches!(self.suite, Suite::Fss | Suite::Gmw { correlations: Correlations::Dealt, .. })
    }

    /// The suite with its options, as control messages and stores name it.
    pub fn name(self) -> String {
        let truncation = match self.truncation {
            Truncation::OneBit => "one-bit",
            Truncation::Exact => "exact",
        };
        let Suite::Gmw { rounds, correlations } = self.suite else {
            return format!("fss {truncation}");
        };
        let rounds = match rounds {
            Rounds::Linear => "linear",
            Rounds::Log => "log",
            Rounds::Blocks => "blocks",
        };
        let correlations = match correlations {
            Correlations::Made => "",
            Correlations::Dealt => " dealt",
        };
        format!("gmw {rounds} {truncation}{correlations}")
    }

    /// The options of which [`Options::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::made().chain(Self::dealt()).find(|options| options.name() == name)
    }
}

const TRUNCATIONS: [Truncation; 2] = [Truncation::OneBit, Truncation::Exact];

impl From<Rounds> for Options {
    /// Suite `gmw` with comparisons of this depth, the free truncation, and no dealer.
    fn from(rounds: Rounds) -> Self {
        Self { suite: Suite::Gmw { rounds, correlations: Correlations::Made }, truncation: Truncation::OneBit }
    }
}
