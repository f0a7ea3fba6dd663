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
        /// Most bits of a value that a ReLU compares, from the top; all of them if there is none.
        relu_bits: Option<u32>,
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
    /// Every choice without a dealer, with full comparisons.
    pub fn made() -> impl Iterator<Item = Self> {
        let exact = |options: &Self| options.truncation == Truncation::Exact;
        Self::gmw(Correlations::Made).chain(Self::gmw(Correlations::Prime).filter(exact))
    }

    /// Every choice with linear layers online, with full comparisons.
    pub fn one_shot() -> impl Iterator<Item = Self> {
        Self::gmw(Correlations::OneShot)
    }

    /// Every choice with a dealer, with full comparisons.
    pub fn dealt() -> impl Iterator<Item = Self> {
        let fss = TRUNCATIONS.map(|truncation| Self { suite: Suite::Fss, truncation });
        Self::gmw(Correlations::Dealt).chain(fss)
    }

    fn gmw(correlations: Correlations) -> impl Iterator<Item = Self> {
        TRUNCATIONS.into_iter().flat_map(move |truncation| {
            let depths = [Rounds::Linear, Rounds::Log, Rounds::Blocks];
            depths.map(|rounds| Self { suite: Suite::Gmw { rounds, correlations, relu_bits: None }, truncation })
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
        let Suite::Gmw { rounds, correlations, relu_bits } = self.suite else {
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
        let relu = relu_bits.map_or(String::new(), |bits| format!(" {RELU}{bits}"));
        format!("gmw {rounds} {truncation}{correlations}{relu}")
    }

    /// The options of which [`Options::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let every = || Self::made().chain(Self::dealt()).chain(Self::one_shot());
        if let Some(options) = every().find(|options| options.name() == name) {
            return Some(options);
        }
        let (rest, word) = name.rsplit_once(' ')?;
        let bits = word.strip_prefix(RELU)?.parse().ok()?;
        let options = every().find(|options| options.name() == rest)?.with_relu_bits(bits)?;
        (options.name() == name).then_some(options)
    }

    /// The same with ReLUs that compare the top `bits` bits of a value; `None` but for suite `gmw` in a ring and
    /// 2 to 63 bits.
    #[must_use]
    pub fn with_relu_bits(self, bits: u32) -> Option<Self> {
        let Suite::Gmw { rounds, correlations, .. } = self.suite else {
            return None;
        };
        let suite = Suite::Gmw { rounds, correlations, relu_bits: Some(bits) };
        (RELU_BITS.contains(&bits) && !self.is_prime()).then_some(Self { suite, ..self })
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

/// Widths that a ReLU can compare: with fewer bits, a value that lost its carry has no sign.
pub const RELU_BITS: std::ops::RangeInclusive<u32> = 2..=63;

/// What the name of a width begins with.
const RELU: &str = "relu";

const TRUNCATIONS: [Truncation; 2] = [Truncation::OneBit, Truncation::Exact];

impl From<Rounds> for Options {
    /// Suite `gmw` with comparisons of this depth, exact truncations, and no dealer.
    fn from(rounds: Rounds) -> Self {
        Self {
            suite: Suite::Gmw { rounds, correlations: Correlations::Made, relu_bits: None },
            truncation: Truncation::Exact,
        }
    }
}
