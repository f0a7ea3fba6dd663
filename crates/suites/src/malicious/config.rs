//! Every choice of suite `fss` against parties that deviate, with its default.

use serde::{Deserialize, Serialize};

use crate::policy::{Correlations, Mode, Security, Suite, Truncation};

/// What client and server must choose alike before they make material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What becomes of the carry that a truncation drops.
    pub truncation: Truncation,
}

impl Default for Config {
    fn default() -> Self {
        Self { truncation: Truncation::Exact }
    }
}

impl Config {
    /// Every config.
    pub fn all() -> impl Iterator<Item = Self> {
        Truncation::ALL.iter().map(|&truncation| Self { truncation })
    }

    /// As control messages and stores name it.
    pub fn label(&self) -> String {
        super::Options::from(*self).name()
    }

    /// What a policy may forbid.
    pub fn mode(&self) -> Mode {
        Mode {
            security: Security::Malicious,
            truncation: Some(self.truncation),
            correlations: Some(Correlations::Dealer),
            ..Mode::of(Suite::Fss)
        }
    }
}

impl From<Config> for super::Options {
    fn from(config: Config) -> Self {
        Self { truncation: config.truncation.into() }
    }
}
