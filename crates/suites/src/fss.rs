//! Suite `fss`: function secret sharing with keys from a dealer (Orca, SIGMA).
//!
//! Threat model: semi-honest parties and a dealer that colludes with neither. See `docs/reference/protocols/fss.md`.

use privet_channel::Link;
use privet_gmw::Truncation;
use privet_program::Program;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::{self, Choice, Value, named, vary};
use crate::sharing::{Maker, Options, Plan};
use crate::suite::{SuiteConfig, SuitePlan};

/// Every choice of the suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What becomes of the carry that a truncation drops.
    #[serde(with = "named")]
    pub truncation: Truncation,
}

impl config::Config for Config {
    const SUITE: &'static str = "fss";

    fn all() -> Vec<Self> {
        vary(vec![Self::default()], |_, truncation| Self { truncation })
    }

    fn values(&self) -> Vec<Value> {
        vec![self.truncation.value(), Maker::Dealer.value()]
    }
}

impl SuiteConfig for Config {
    fn label(&self) -> String {
        Options::from(*self).name()
    }

    fn is_dealt(&self) -> bool {
        true
    }

    fn plan(&self, program: Program, link: Link) -> Result<Box<dyn SuitePlan>, Error> {
        Ok(Box::new(Plan::new(program, *self)?.over(link)))
    }
}

impl From<Config> for Options {
    fn from(config: Config) -> Self {
        Self::fss(config.truncation)
    }
}
