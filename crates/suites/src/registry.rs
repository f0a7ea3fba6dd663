//! The suites that there are: one line each.

use std::sync::Arc;

use privet_channel::Channel;
use privet_prg::Seed;
use serde_json::{Map, Value};

use crate::policy::{Guard, Mode, Policy, Security};
use crate::session::{Catalog, Dealer, Served, Server};
use crate::sharing::weights;
use crate::suite::{SuiteConfig, SuiteRegistry};
use crate::{Error, MaterialId, Store, StoreError, fss, gmw, malicious};

/// Every suite that makes material.
const SUITES: &[&dyn Suite] = &[&gmw::Gmw, &fss::Fss, &malicious::Malicious];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_what_peers_and_stores_know() {
        let mut known: Vec<String> =
            ["fss one-bit", "fss exact", "fss malicious one-bit", "fss malicious exact"].map(str::to_owned).into();
        for rounds in ["linear", "log", "blocks"] {
            for source in ["", " dealt", " one-shot"] {
                known.extend(["one-bit", "exact"].map(|truncation| format!("gmw {rounds} {truncation}{source}")));
            }
            known.push(format!("gmw {rounds} exact prime"));
        }
        known.sort();
        let mut labels: Vec<String> = configs().map(|config| config.label()).collect();
        labels.sort();
        assert_eq!(labels, known);
        for label in labels {
            assert_eq!(parse(&label).unwrap().label(), label);
        }
    }

    #[test]
    fn a_config_is_read_from_its_choices_alone() {
        for (json, label) in [
            (r#"{"suite": "gmw", "rounds": "log"}"#, "gmw log exact"),
            (r#"{"suite": "gmw", "rounds": "log", "correlations": "dealer"}"#, "gmw log exact dealt"),
            (r#"{"suite": "gmw", "security": "semi-honest", "field": "prime"}"#, "gmw linear exact prime"),
            (r#"{"suite": "fss", "truncation": "one-bit"}"#, "fss one-bit"),
            (r#"{"suite": "fss", "security": "malicious"}"#, "fss malicious exact"),
        ] {
            assert_eq!(read(json).unwrap().label(), label);
        }
        for json in [
            "gmw",
            "{}",
            r#"{"suite": "gmv"}"#,
            r#"{"suite": "gmw", "security": "malicious"}"#,
            r#"{"suite": "gmw", "depth": "log"}"#,
            r#"{"suite": "gmw", "field": "prime", "truncation": "one-bit"}"#,
            r#"{"suite": "fss", "rounds": "log"}"#,
        ] {
            assert!(matches!(read(json), Err(Error::Misuse(_))), "{json}");
        }
    }

    #[test]
    fn the_mode_of_a_config_is_that_of_its_choices() {
        let mode = |label: &str| serde_json::to_string(&parse(label).unwrap().mode()).unwrap();
        let gmw = r#"{"suite":"gmw","security":"semi-honest","truncation":"one-bit","correlations":"parties","linear":"online","field":"ring","scenario":null,"flooding":null}"#;
        assert_eq!(mode("gmw log one-bit one-shot"), gmw);
        let fss = r#"{"suite":"fss","security":"malicious","truncation":"exact","correlations":"dealer","linear":null,"field":null,"scenario":null,"flooding":null}"#;
        assert_eq!(mode("fss malicious exact"), fss);
    }
}
