//! Suite `gmw`: Boolean sharing between two parties, with linear layers under BFV or from a dealer (SecONNds).
//!
//! Threat model: semi-honest parties; a dealer, if there is one, colludes with neither. See `docs/reference/protocols/gmw.md`.

use privet_channel::Link;
use privet_gmw::{Rounds, Truncation};
use privet_linear::Saving;
use privet_ot::Extension;
use privet_program::Program;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::{self, Choice, Value, named, vary};
use crate::sharing::{Arithmetic, Encrypts, Linear, Maker, Options, Plan};
use crate::suite::{SuiteConfig, SuitePlan};

/// Every choice of the suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Depth of comparisons.
    #[serde(with = "named")]
    pub rounds: Rounds,
    /// What becomes of the carry that a truncation drops.
    #[serde(with = "named")]
    pub truncation: Truncation,
    /// Who makes correlations.
    #[serde(with = "named")]
    pub correlations: Maker,
    /// When linear layers run under encryption: online only if the parties make correlations.
    #[serde(with = "named")]
    pub linear: Linear,
    /// What linear layers are shared in: a prime field only offline, without a dealer, with exact truncations.
    #[serde(with = "named")]
    pub field: Arithmetic,
    /// What is encrypted for linear layers that run offline, in the ring: masks each time, or weights once, which the client keeps.
    #[serde(with = "named")]
    pub encrypts: Encrypts,
    /// Which OT extension makes correlations. Who asks for silent OT wants encryption to save bytes, too.
    #[serde(with = "named")]
    pub transfers: Transfers,
    /// Seconds that a gigabyte less is worth where `transfers` leaves an extension open.
    pub byte_price: u32,
}

/// Which OT extension may make correlations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfers {
    /// Whichever is quickest over the link, with bytes at their price.
    #[default]
    Auto,
    /// SoftSpokenOT, which assumes nothing of noisy codes.
    SoftSpoken,
    /// Silent OT, which sends least; with bytes at the price of a link of 100 Mbit/s at least.
    Silent,
}

/// Seconds that a gigabyte less is worth to whoever asks for silent OT: as many as a link of 100 Mbit/s takes for it.
const SILENT_PRICE: u32 = 80;

impl Transfers {
    /// The price of bytes, of which at least `asked` was asked for.
    fn price(self, asked: u32) -> u32 {
        if self == Self::Silent { asked.max(SILENT_PRICE) } else { asked }
    }

    fn allows(self, extension: Extension) -> bool {
        match self {
            Self::Auto => true,
            Self::SoftSpoken => matches!(extension, Extension::SoftSpoken(_)),
            Self::Silent => matches!(extension, Extension::Silent(_)),
        }
    }
}

impl Choice for Transfers {
    const NAME: &'static str = "transfers";
    const VALUES: &'static [(Self, &'static str)] =
        &[(Self::Auto, "auto"), (Self::SoftSpoken, "soft-spoken"), (Self::Silent, "silent")];
}

impl config::Config for Config {
    const SUITE: &'static str = "gmw";

    fn all() -> Vec<Self> {
        let all = vary(vec![Self::default()], |config, rounds| Self { rounds, ..config });
        let all = vary(all, |config, truncation| Self { truncation, ..config });
        let all = vary(all, |config, correlations| Self { correlations, ..config });
        let all = vary(all, |config, linear| Self { linear, ..config });
        let all = vary(all, |config, field| Self { field, ..config });
        let all = vary(all, |config, encrypts| Self { encrypts, ..config });
        // SoftSpokenOT has no label of its own.
        let all = all
            .into_iter()
            .flat_map(|config| [Transfers::Auto, Transfers::Silent].map(|transfers| Self { transfers, ..config }));
        let differs =
            |config: &Self| config.transfers == Transfers::Auto || Options::from(*config).saving == Saving::Bytes;
        all.filter(|config| differs(config) && config.check().is_ok()).collect()
    }

    fn check(&self) -> Result<(), Error> {
        Options::from(*self).check().map(drop)
    }

    fn values(&self) -> Vec<Value> {
        vec![
            self.truncation.value(),
            self.correlations.value(),
            self.linear.value(),
            self.field.value(),
            self.encrypts.value(),
        ]
    }
}

impl SuiteConfig for Config {
    fn label(&self) -> String {
        Options::from(*self).name()
    }

    fn is_dealt(&self) -> bool {
        self.correlations == Maker::Dealer
    }

    fn plan(&self, program: Program, link: Link) -> Result<Box<dyn SuitePlan>, Error> {
        let extensions = Extension::ALL.into_iter().filter(|extension| self.transfers.allows(*extension));
        let plan = Plan::new(program, *self)?.over(link).extending(extensions.collect());
        Ok(Box::new(plan.pricing(self.transfers.price(self.byte_price))))
    }
}

impl Config {
    /// Whether encryption is planned to save bytes, beside silent OT; else material is the same whichever extension makes it.
    pub fn saves_bytes(&self) -> bool {
        self.transfers == Transfers::Silent && self.correlations == Maker::Parties && self.field == Arithmetic::Ring
    }
}

impl From<Config> for Options {
    fn from(config: Config) -> Self {
        let Config { rounds, truncation, correlations: maker, linear, field: arithmetic, encrypts, .. } = config;
        let saving = if config.saves_bytes() { Saving::Bytes } else { Saving::Work };
        Self { maker, linear, arithmetic, encrypts, saving, ..Self::gmw(rounds, truncation) }
    }
}

#[cfg(test)]
mod tests {
    use config::Config as _;

    use super::*;

    #[test]
    fn a_config_comes_back_from_json_and_has_the_default_of_what_is_left_out() {
        for config in Config::all() {
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        }
        assert_eq!(serde_json::from_str::<Config>("{}").unwrap().label(), "gmw linear exact tables");
        let one = r#"{"rounds": "blocks", "truncation": "one-bit", "linear": "online"}"#;
        assert_eq!(serde_json::from_str::<Config>(one).unwrap().label(), "gmw blocks one-bit one-shot tables");
        let refusal = serde_json::from_str::<Config>(r#"{"rounds": "logs"}"#).unwrap_err().to_string();
        assert!(refusal.starts_with("rounds \"logs\": possible are linear, log, blocks"), "{refusal}");
    }

    #[test]
    fn whoever_asks_for_silent_transfers_pays_for_bytes() {
        let prices = [Transfers::Auto, Transfers::SoftSpoken, Transfers::Silent]
            .map(|transfers| [transfers.price(0), transfers.price(500)]);
        assert_eq!(prices, [[0, 500], [0, 500], [SILENT_PRICE, 500]]);
    }

    #[test]
    fn choices_that_do_not_go_together_are_refused() {
        let online = Config { linear: Linear::Online, ..Config::default() };
        let prime = Config { field: Arithmetic::Prime, ..Config::default() };
        let refused = [
            Config { correlations: Maker::Dealer, ..online },
            Config { field: Arithmetic::Prime, ..online },
            Config { correlations: Maker::Dealer, ..prime },
            Config { truncation: Truncation::OneBit, ..prime },
            Config { encrypts: Encrypts::Weights, ..online },
            Config { encrypts: Encrypts::Weights, ..prime },
            Config { encrypts: Encrypts::Weights, correlations: Maker::Dealer, ..Config::default() },
        ];
        assert!(refused.iter().all(|config| config.check().is_err()));
        assert!([online, prime].iter().all(|config| config.check().is_ok()));
        assert!(serde_json::from_str::<Config>(r#"{"round": "log"}"#).is_err());
    }
}
