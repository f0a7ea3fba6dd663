//! Every choice of suite `fss` against parties that deviate, with its default.

use privet_channel::Link;
use privet_gmw::Truncation;
use privet_program::Program;
use serde::{Deserialize, Serialize};

use super::Plan;
use crate::Error;
use crate::config::{self, Choice, Security, Value, named, vary};
use crate::sharing::Maker;
use crate::suite::{SuiteConfig, SuitePlan};

/// Both parties derive the same plan from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What becomes of the carry that a truncation drops.
    #[serde(with = "named")]
    pub truncation: Truncation,
}

impl config::Config for Config {
    const SUITE: &'static str = "fss";
    const SECURITY: Security = Security::Malicious;

    fn all() -> Vec<Self> {
        vary(vec![Self::default()], |_, truncation| Self { truncation })
    }

    fn values(&self) -> Vec<Value> {
        vec![self.truncation.value(), Maker::Dealer.value()]
    }
}

impl SuiteConfig for Config {
    fn label(&self) -> String {
        format!("fss malicious {}", self.truncation.name())
    }

    fn is_dealt(&self) -> bool {
        true
    }

    fn plan(&self, program: Program, _link: Link) -> Result<Box<dyn SuitePlan>, Error> {
        Ok(Box::new(Plan::new(program, *self)?))
    }
}
