//! The suites that there are: one line each.

use std::sync::Arc;

use privet_channel::Channel;
use privet_prg::Seed;
use serde_json::{Map, Value};

use crate::policy::{Guard, Mode, Policy, Security};
use crate::session::{Catalog, Dealer, Served, Server};
use crate::sharing::weights;
use crate::suite::{SuiteConfig, SuiteRegistry};
use crate::{Error, MaterialId, Store, StoreError, authenticated, fss, gmw};

/// Every suite that makes material.
const SUITES: &[&dyn Suite] = &[&gmw::Gmw, &fss::Fss, &authenticated::Malicious];

/// A suite, with its configs.
pub trait Suite: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Against whom it protects.
    fn security(&self) -> Security;

    /// Every config.
    fn configs(&self) -> Vec<Box<dyn PolicyConfig>>;

    /// The config with these choices, and the defaults of others.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no such choice, or choices do not go together.
    fn read(&self, choices: Value) -> Result<Box<dyn PolicyConfig>, Error>;
}

/// A config that a server's policy may forbid.
pub trait PolicyConfig: SuiteConfig {
    /// What of it changes what is promised.
    fn mode(&self) -> Mode;
}

/// Every config of every suite.
pub fn configs() -> impl Iterator<Item = Box<dyn PolicyConfig>> {
    SUITES.iter().flat_map(|suite| suite.configs())
}

/// The config of a label.
pub fn parse(label: &str) -> Option<Box<dyn PolicyConfig>> {
    configs().find(|config| config.label() == label)
}

/// The config in JSON: `suite`, `security` unless it is `semi-honest`, and the suite's own choices.
///
/// # Errors
/// [`Error::Misuse`] if there is none like this.
pub fn read(json: &str) -> Result<Box<dyn PolicyConfig>, Error> {
    let malformed = |error: serde_json::Error| Error::Misuse(format!("this is no config of a suite: {error}"));
    let mut choices: Map<String, Value> = serde_json::from_str(json).map_err(malformed)?;
    let name = choices.remove("suite").unwrap_or_default();
    let security = choices.remove("security").unwrap_or_else(|| Security::SemiHonest.name().into());
    let is_meant = |suite: &&&dyn Suite| name == suite.name() && security == suite.security().name();
    let suite = SUITES.iter().find(is_meant).ok_or_else(|| {
        let security = security.as_str().unwrap_or_default();
        Error::Misuse(format!("there is no suite {name} against {security} parties"))
    })?;
    suite.read(choices.into())
}

/// Reads a suite's own choices.
///
/// # Errors
/// [`Error::Misuse`] if there is no such choice.
pub(crate) fn choices<C: serde::de::DeserializeOwned>(suite: &str, choices: Value) -> Result<C, Error> {
    serde_json::from_value(choices).map_err(|error| Error::Misuse(format!("suite {suite}: {error}")))
}

/// All suites, as sessions take them.
#[derive(Clone, Copy, Debug)]
pub struct Suites;

impl SuiteRegistry for Suites {
    fn config(&self, label: &str) -> Option<Box<dyn SuiteConfig>> {
        parse(label).map(|config| config as _)
    }

    fn mask_name(&self, program: &str, secret: &Seed) -> MaterialId {
        weights::mask_name(program, secret)
    }

    fn send_hidden_weights(&self, served: &Served, secret: &Seed, channel: &mut Channel) -> Result<(), Error> {
        weights::send_hidden(served, secret, channel)
    }
}

/// A server of all suites that holds clients to `policy`. Answers are counted in the store, for all processes that share it.
///
/// # Errors
/// [`StoreError::Io`].
pub fn server(catalog: Catalog, store: Store, policy: Policy) -> Result<Server, StoreError> {
    let guard = Guard::new(policy, store.below("answers"))?;
    Ok(Server::new(&Suites, catalog, store, Arc::new(guard)))
}

/// A dealer for all suites; see [`Dealer::new`].
///
/// # Errors
/// As there.
pub fn dealer(most_bytes: u64, patience: std::time::Duration) -> Result<Dealer, Error> {
    Dealer::new(&Suites, most_bytes, patience)
}
