//! Suite `gmw` as sessions know it.

use privet_channel::Link;
use privet_program::Program;
use serde_json::Value;

use super::Config;
use crate::policy::{Correlations, Mode, Security};
use crate::registry::{PolicyConfig, Suite, choices};
use crate::suite::{SuiteConfig, SuitePlan};
use crate::{Error, sharing};

/// The suite.
pub struct Gmw;

impl Suite for Gmw {
    fn name(&self) -> &'static str {
        "gmw"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn configs(&self) -> Vec<Box<dyn PolicyConfig>> {
        Config::all().map(|config| Box::new(config) as _).collect()
    }

    fn read(&self, fields: Value) -> Result<Box<dyn PolicyConfig>, Error> {
        let config: Config = choices(self.name(), fields)?;
        config.check()?;
        Ok(Box::new(config))
    }
}

impl SuiteConfig for Config {
    fn label(&self) -> String {
        Self::label(self)
    }

    fn is_dealt(&self) -> bool {
        self.correlations == Correlations::Dealer
    }

    fn plan(&self, program: Program, link: Link) -> Result<Box<dyn SuitePlan>, Error> {
        self.check()?;
        Ok(Box::new(sharing::Plan::new(program, *self)?.over(link)))
    }
}

impl PolicyConfig for Config {
    fn mode(&self) -> Mode {
        Self::mode(self)
    }
}
