//! What client and server must choose alike before they make material.
//!
//! Who makes material, when linear layers run and what they compute modulo are three choices of their own;
//! [`Options::check`] refuses what does not go together, and nothing else does.

use privet_gmw::{Rounds, Truncation};
use privet_linear::{Layer, Saving};

use crate::Error;
use crate::config::{Choice, Weakness, vary};

/// What non-linear steps run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Boolean sharing.
    Gmw {
        /// Depth of comparisons.
        rounds: Rounds,
    },
    /// Function secret sharing, with keys from a dealer.
    Fss,
}

/// Who makes the material.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maker {
    /// The two parties by OT and BFV, with nobody else.
    #[default]
    Parties,
    /// A dealer, which must collude with neither party.
    Dealer,
}

impl Choice for Maker {
    const NAME: &'static str = "correlations";
    const VALUES: &'static [(Self, &'static str)] = &[(Self::Parties, "parties"), (Self::Dealer, "dealer")];

    fn weakness(self) -> Option<Weakness> {
        (self == Self::Dealer).then_some(Weakness {
            name: "dealer",
            meaning: "dealer: whoever makes the material must collude with neither party",
        })
    }
}

/// When linear layers run under BFV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linear {
    /// Ahead of time, on random masks.
    #[default]
    Offline,
    /// When there is an input, on the client's share of it (one-shot).
    Online,
}

impl Choice for Linear {
    const NAME: &'static str = "linear";
    const VALUES: &'static [(Self, &'static str)] = &[(Self::Offline, "offline"), (Self::Online, "online")];
}

/// What linear layers compute modulo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// A power of two.
    #[default]
    Ring,
    /// A prime, in slots; truncations are exact.
    Prime,
}

impl Choice for Arithmetic {
    const NAME: &'static str = "field";
    const VALUES: &'static [(Self, &'static str)] = &[(Self::Ring, "ring"), (Self::Prime, "prime")];
}

/// What crosses the link encrypted under BFV, for linear layers that are paid offline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encrypts {
    /// The client's masks, each time; the server multiplies.
    #[default]
    Masks,
    /// The server's weights, once, which the client keeps and multiplies, wherever that is cheaper.
    Weights,
}

impl Choice for Encrypts {
    const NAME: &'static str = "encrypts";
    const VALUES: &'static [(Self, &'static str)] = &[(Self::Masks, "masks"), (Self::Weights, "weights")];

    fn weakness(self) -> Option<Weakness> {
        (self == Self::Weights).then_some(Weakness {
            name: "kept-weights",
            meaning: "encrypted weights at the client: one that deviates from the protocol can learn the key from what \
                      answers become, and with it all weights",
        })
    }
}

/// A suite with its options; both parties derive the same plan from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What non-linear steps run on.
    pub suite: Suite,
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
    /// Who makes the material.
    pub maker: Maker,
    /// When linear layers run.
    pub linear: Linear,
    /// What they compute modulo.
    pub arithmetic: Arithmetic,
    /// What is encrypted for them.
    pub encrypts: Encrypts,
    /// What encryption saves first: work, or bytes.
    pub saving: Saving,
}

impl Options {
    /// Suite `gmw`, whose parties make the material ahead of time, in the ring.
    pub const fn gmw(rounds: Rounds, truncation: Truncation) -> Self {
        Self {
            suite: Suite::Gmw { rounds },
            truncation,
            maker: Maker::Parties,
            linear: Linear::Offline,
            arithmetic: Arithmetic::Ring,
            encrypts: Encrypts::Masks,
            saving: Saving::Work,
        }
    }

    /// Suite `fss`, which has a dealer.
    pub const fn fss(truncation: Truncation) -> Self {
        Self { suite: Suite::Fss, maker: Maker::Dealer, ..Self::gmw(Rounds::Linear, truncation) }
    }

    /// Refuses choices that do not go together.
    ///
    /// # Errors
    /// [`Error::Misuse`], which says why.
    pub fn check(self) -> Result<Self, Error> {
        let refusals = [
            (self.suite == Suite::Fss && !self.is_dealt(), "the keys of suite fss come from a dealer"),
            (self.is_dealt() && self.is_one_shot(), "a dealer pays linear layers ahead of time: let them run offline"),
            (
                self.is_dealt() && self.is_prime(),
                "a dealer works in a ring: choose it, or let the parties make material",
            ),
            (self.is_one_shot() && self.is_prime(), "linear layers that run online are in a ring: choose it"),
            (
                self.keeps_weights() && (self.is_dealt() || self.is_one_shot() || self.is_prime()),
                "a client keeps encrypted weights where the parties make material ahead of time, in a ring",
            ),
            (self.is_prime() && self.truncation != Truncation::Exact, "in a prime field truncations are exact"),
        ];
        match refusals.into_iter().find(|(refused, _)| *refused) {
            None => Ok(self),
            Some((_, why)) => Err(Error::Misuse(why.into())),
        }
    }

    /// Every choice, but that encryption saves work.
    pub fn all() -> impl Iterator<Item = Self> {
        let suites = [Rounds::Linear, Rounds::Log, Rounds::Blocks].map(|rounds| Suite::Gmw { rounds });
        let suites = move || suites.into_iter().chain([Suite::Fss]);
        let all = vary(vec![Self::gmw(Rounds::Linear, Truncation::OneBit)], |options, maker| Self { maker, ..options });
        let all = vary(all, |options, linear| Self { linear, ..options });
        let all = vary(all, |options, arithmetic| Self { arithmetic, ..options }).into_iter();
        let all = all.flat_map(|options| {
            [Truncation::OneBit, Truncation::Exact].map(|truncation| Self { truncation, ..options })
        });
        let all = all.flat_map(move |options| suites().map(move |suite| Self { suite, ..options }));
        let all = vary(all.collect(), |options, encrypts| Self { encrypts, ..options });
        all.into_iter().filter(|options| options.check().is_ok())
    }

    /// Every choice without a dealer and with linear layers ahead of time, on encrypted masks.
    pub fn made() -> impl Iterator<Item = Self> {
        Self::all().filter(|options| !options.is_dealt() && !options.is_one_shot() && !options.keeps_weights())
    }

    /// Every choice with linear layers online.
    pub fn one_shot() -> impl Iterator<Item = Self> {
        Self::all().filter(|options| options.is_one_shot())
    }

    /// Every choice with a dealer.
    pub fn dealt() -> impl Iterator<Item = Self> {
        Self::all().filter(|options| options.is_dealt())
    }

    /// Whether a dealer makes the material.
    pub fn is_dealt(self) -> bool {
        self.maker == Maker::Dealer
    }

    /// Whether linear layers run under BFV online.
    pub fn is_one_shot(self) -> bool {
        self.linear == Linear::Online
    }

    /// Whether linear layers are modulo a prime.
    pub fn is_prime(self) -> bool {
        self.arithmetic == Arithmetic::Prime
    }

    /// Whether a linear layer is made by OT ahead of time and not under BFV, in the ring: elements by a factor each, without a dealer.
    pub(super) fn chooses(self, layer: &Layer) -> bool {
        !self.is_dealt() && !self.is_one_shot() && !self.is_prime() && matches!(layer, Layer::Diagonal(_))
    }

    /// Whether the client keeps encrypted weights.
    pub fn keeps_weights(self) -> bool {
        self.encrypts == Encrypts::Weights
    }

    /// The suite with its options, as control messages and stores name it. Where the material holds tables it says so: that of
    /// version 0.2 was other material under the bare name.
    pub fn name(self) -> String {
        let truncation = self.truncation.name();
        let Suite::Gmw { rounds } = self.suite else {
            return format!("fss {truncation} tables");
        };
        let mut name = format!("gmw {} {truncation}", rounds.name());
        for (is_said, word) in [
            (self.is_dealt(), " dealt"),
            (self.is_one_shot(), " one-shot"),
            (self.is_prime(), " prime"),
            (self.keeps_weights(), " kept-weights"),
            (self.saving == Saving::Bytes, " silent"),
            (rounds != Rounds::Log, " tables"),
        ] {
            name.push_str(if is_said { word } else { "" });
        }
        name
    }

    /// Bits that results of linear layers carry below their last place, so that the unit that BFV may be off by in the ring is
    /// rounded away: in the exact mode without a dealer.
    pub fn guard_bits(self) -> u32 {
        let may_be_off = !self.is_dealt() && !self.is_prime();
        if may_be_off && self.truncation == Truncation::Exact { GUARD_BITS } else { 0 }
    }
}

/// Four times a result, off by one and raised by two, is off from a multiple of four by 1 to 3: its floor is exact.
const GUARD_BITS: u32 = 2;

impl From<Rounds> for Options {
    /// Suite `gmw` with comparisons of this depth, exact truncations, and no dealer.
    fn from(rounds: Rounds) -> Self {
        Self::gmw(rounds, Truncation::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_go_together_is_refused() {
        let exact = Options::gmw(Rounds::Log, Truncation::Exact);
        let refused = [
            Options { maker: Maker::Parties, ..Options::fss(Truncation::Exact) },
            Options { maker: Maker::Dealer, linear: Linear::Online, ..exact },
            Options { maker: Maker::Dealer, arithmetic: Arithmetic::Prime, ..exact },
            Options { linear: Linear::Online, arithmetic: Arithmetic::Prime, ..exact },
            Options { arithmetic: Arithmetic::Prime, truncation: Truncation::OneBit, ..exact },
        ];
        for options in refused {
            assert!(matches!(options.check(), Err(Error::Misuse(_))), "{options:?}");
        }
        assert!(exact.check().is_ok());
    }
}
