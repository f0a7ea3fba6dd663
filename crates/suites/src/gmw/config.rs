//! Every choice of suite `gmw`, with its default.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::policy::{Correlations, Field, Linear, Mode, Suite, Truncation, choice};
use crate::sharing::{self, Arithmetic, Maker, Options};

choice! {
    /// Depth of comparisons.
    Rounds {
        /// The fewest bytes.
        Linear = "linear",
        /// Between the two.
        Log = "log",
        /// The fewest rounds.
        Blocks = "blocks",
    }
}

/// What client and server must choose alike before they make material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Depth of comparisons.
    pub rounds: Rounds,
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
    /// Who makes correlations.
    pub correlations: Correlations,
    /// When linear layers run under encryption: online only if the parties make correlations.
    pub linear: Linear,
    /// What linear layers are shared in: a prime field only offline, without a dealer, with exact truncations.
    pub field: Field,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rounds: Rounds::Linear,
            truncation: Truncation::Exact,
            correlations: Correlations::Parties,
            linear: Linear::Offline,
            field: Field::Ring,
        }
    }
}

impl Config {
    /// Every config.
    pub fn all() -> impl Iterator<Item = Self> {
        let whole = Self::default();
        let rounds = Rounds::ALL.iter().map(move |&rounds| Self { rounds, ..whole });
        let truncated =
            rounds.flat_map(|one| Truncation::ALL.iter().map(move |&truncation| Self { truncation, ..one }));
        let made =
            truncated.flat_map(|one| Correlations::ALL.iter().map(move |&correlations| Self { correlations, ..one }));
        let timed = made.flat_map(|one| Linear::ALL.iter().map(move |&linear| Self { linear, ..one }));
        let all = timed.flat_map(|one| Field::ALL.iter().map(move |&field| Self { field, ..one }));
        all.filter(|config| config.check().is_ok())
    }

    /// # Errors
    /// [`Error::Misuse`] if choices do not go together.
    pub fn check(&self) -> Result<(), Error> {
        Options::from(*self).check().map(drop)
    }

    /// As control messages and stores name it.
    pub fn label(&self) -> String {
        Options::from(*self).name()
    }

    /// What a policy may forbid.
    pub fn mode(&self) -> Mode {
        Mode {
            truncation: Some(self.truncation),
            correlations: Some(self.correlations),
            linear: Some(self.linear),
            field: Some(self.field),
            ..Mode::of(Suite::Gmw)
        }
    }
}

impl From<Config> for Options {
    fn from(config: Config) -> Self {
        let rounds = match config.rounds {
            Rounds::Linear => sharing::Rounds::Linear,
            Rounds::Log => sharing::Rounds::Log,
            Rounds::Blocks => sharing::Rounds::Blocks,
        };
        let maker = match config.correlations {
            Correlations::Parties => Maker::Parties,
            Correlations::Dealer => Maker::Dealer,
        };
        let linear = match config.linear {
            Linear::Offline => sharing::Linear::Offline,
            Linear::Online => sharing::Linear::Online,
        };
        let arithmetic = match config.field {
            Field::Ring => Arithmetic::Ring,
            Field::Prime => Arithmetic::Prime,
        };
        Self { maker, linear, arithmetic, ..Self::gmw(rounds, config.truncation.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_comes_back_from_json_and_has_the_default_of_what_is_left_out() {
        for config in Config::all() {
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        }
        assert_eq!(serde_json::from_str::<Config>("{}").unwrap().label(), "gmw linear exact");
        let one = r#"{"rounds": "blocks", "truncation": "one-bit", "linear": "online"}"#;
        assert_eq!(serde_json::from_str::<Config>(one).unwrap().label(), "gmw blocks one-bit one-shot");
    }

    #[test]
    fn choices_that_do_not_go_together_are_refused() {
        let online = Config { linear: Linear::Online, ..Config::default() };
        let prime = Config { field: Field::Prime, ..Config::default() };
        let refused = [
            Config { correlations: Correlations::Dealer, ..online },
            Config { field: Field::Prime, ..online },
            Config { correlations: Correlations::Dealer, ..prime },
            Config { truncation: Truncation::OneBit, ..prime },
        ];
        assert!(refused.iter().all(|config| config.check().is_err()));
        assert!([online, prime].iter().all(|config| config.check().is_ok()));
        assert!(serde_json::from_str::<Config>(r#"{"round": "log"}"#).is_err());
    }
}
