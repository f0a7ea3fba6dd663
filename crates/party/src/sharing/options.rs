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
    /// The two parties make correlations by OT; linear layers run under BFV online, on the client's share of their input
    /// (one-shot).
    OneShot,
    /// As `Made`, but linear layers are modulo a prime, in slots; truncations are exact.
    Prime,
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
        let exact = |options: &Self| options.truncation == Truncation::Exact;
        Self::gmw(Correlations::Made).chain(Self::gmw(Correlations::Prime).filter(exact))
    }

    /// Every choice with linear layers online.
    pub fn one_shot() -> impl Iterator<Item = Self> {
        Self::gmw(Correlations::OneShot)
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

    /// Whether linear layers run under BFV online.
    pub fn is_one_shot(self) -> bool {
        matches!(self.suite, Suite::Gmw { correlations: Correlations::OneShot, .. })
    }

    /// Whether linear layers are modulo a prime.
    pub fn is_prime(self) -> bool {
        matches!(self.suite, Suite::Gmw { correlations: Correlations::Prime, .. })
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
            Correlations::OneShot => " one-shot",
            Correlations::Prime => " prime",
        };
        format!("gmw {rounds} {truncation}{correlations}")
    }

    /// The options of which [`Options::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::made().chain(Self::dealt()).chain(Self::one_shot()).find(|options| options.name() == name)
    }

    /// Bits that results of linear layers carry below their last place, so that the unit that BFV may be off by is
    /// rounded away: in the exact mode without a dealer.
    pub fn guard_bits(self) -> u32 {
        match (self.suite, self.truncation) {
            (Suite::Gmw { correlations: Correlations::Made | Correlations::OneShot, .. }, Truncation::Exact) => {
                GUARD_BITS
            }
            _ => 0,
        }
    }
}

/// Four times a result, off by one and raised by two, is off from a multiple of four by 1 to 3: its floor is exact.
const GUARD_BITS: u32 = 2;

const TRUNCATIONS: [Truncation; 2] = [Truncation::OneBit, Truncation::Exact];

impl From<Rounds> for Options {
    /// Suite `gmw` with comparisons of this depth, exact truncations, and no dealer.
    fn from(rounds: Rounds) -> Self {
        Self { suite: Suite::Gmw { rounds, correlations: Correlations::Made }, truncation: Truncation::Exact }
    }
}
