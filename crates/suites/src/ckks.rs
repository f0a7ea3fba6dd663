//! Suite `ckks` as a server's policy knows it. What computes it is the program `privet-ckks` (`ckks/`).

use crate::Error;
use crate::config::{self, Choice, Value, Weakness, vary};

/// What is encrypted under whose key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scenario {
    /// The client's data under its own key.
    #[default]
    EncryptedData,
    /// The model under its owner's key.
    EncryptedModel,
    /// Both under a key that a cohort shares.
    Collective,
}

impl Choice for Scenario {
    const NAME: &'static str = "scenario";
    const VALUES: &'static [(Self, &'static str)] = &[
        (Self::EncryptedData, "encrypted-data"),
        (Self::EncryptedModel, "encrypted-model"),
        (Self::Collective, "collective"),
    ];
}

/// Noise on results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flooding {
    /// Enough to hide all else.
    #[default]
    Statistical,
    /// About as much as encryption leaves.
    Light,
}

impl Choice for Flooding {
    const NAME: &'static str = "flooding";
    const VALUES: &'static [(Self, &'static str)] = &[(Self::Statistical, "statistical"), (Self::Light, "light")];

    fn weakness(self) -> Option<Weakness> {
        (self == Self::Light).then_some(Weakness {
            name: "light-flooding",
            meaning: "light flooding: no statistical proof that results hide the rest of the weights",
        })
    }
}

/// The suite's choices that a server may forbid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// What is encrypted under whose key.
    pub scenario: Scenario,
    /// Noise on results: more than light with an encrypted model, whose key a client could compute otherwise.
    pub flooding: Flooding,
}

impl config::Config for Config {
    const SUITE: &'static str = "ckks";

    fn all() -> Vec<Self> {
        let all = vary(vec![Self::default()], |config, scenario| Self { scenario, ..config });
        let all = vary(all, |config, flooding| Self { flooding, ..config });
        all.into_iter().filter(|config| config.check().is_ok()).collect()
    }

    fn check(&self) -> Result<(), Error> {
        match (self.scenario, self.flooding) {
            (Scenario::EncryptedModel, Flooding::Light) => Err(Error::Misuse(
                "a client could compute the key of an encrypted model under light noise: choose statistical".into(),
            )),
            _ => Ok(()),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![self.scenario.value(), self.flooding.value()]
    }
}
