//! Suite `fss` as sessions know it.

use privet_channel::Link;
use privet_program::Program;
use serde_json::Value;

use super::Config;
use crate::policy::{Mode, Security};
use crate::registry::{PolicyConfig, Suite, choices};
use crate::suite::{SuiteConfig, SuitePlan};
use crate::{Error, sharing};

/// The suite.
pub struct Fss;

impl Suite for Fss {
    fn name(&self) -> &'static str {
        "fss"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn configs(&self) -> Vec<Box<dyn PolicyConfig>> {
        Config::all().map(|config| Box::new(config) as _).collect()
    }

    fn read(&self, fields: Value) -> Result<Box<dyn PolicyConfig>, Error> {
        Ok(Box::new(choices::<Config>(self.name(), fields)?))
    }
}

impl SuiteConfig for Config {
    fn label(&self) -> String {
        Self::label(self)
    }

    fn is_dealt(&self) -> bool {
        true
    }

    fn plan(&self, program: Program, link: Link) -> Result<Box<dyn SuitePlan>, Error> {
        Ok(Box::new(sharing::Plan::new(program, *self)?.over(link)))
    }
}

impl PolicyConfig for Config {
    fn mode(&self) -> Mode {
        Self::mode(self)
    }
}
