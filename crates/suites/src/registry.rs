//! The suites that there are: one line each.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use privet_channel::Channel;
use privet_prg::Seed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::{self, Choice, Config, Mode, Security};
use crate::policy::{Guard, Policy};
use crate::session::{Catalog, Dealer, Served, Server};
use crate::sharing::weights;
use crate::suite::{SuiteConfig, SuiteRegistry};
use crate::{Error, MaterialId, Store, StoreError, ckks, fss, gmw, malicious, stream};

/// Every suite.
const SUITES: &[Suite] = &[
    Suite::of_sessions::<gmw::Config>(),
    Suite::of_sessions::<fss::Config>(),
    Suite::of_sessions::<malicious::Config>(),
    Suite::of::<ckks::Config>(),
    Suite::of::<stream::Config>(),
];

/// A suite by what its type of choices says.
struct Suite {
    name: &'static str,
    security: Security,
    modes: fn() -> Vec<Mode>,
    /// Every config that makes material.
    configs: fn() -> Vec<Box<dyn PolicyConfig>>,
    read: fn(Value) -> Result<Box<dyn PolicyConfig>, Error>,
}

impl Suite {
    /// A suite that has no material, or whose parties are elsewhere.
    const fn of<C: Config>() -> Self {
        Self {
            name: C::SUITE,
            security: C::SECURITY,
            modes: || C::all().iter().map(C::mode).collect(),
            configs: Vec::new,
            read: |_| Err(Error::Misuse(format!("suite {} makes no material for sessions", C::SUITE))),
        }
    }

    /// A suite that makes material, and uses it in sessions.
    const fn of_sessions<C: Config + SuiteConfig + Serialize + DeserializeOwned>() -> Self {
        Self {
            configs: || C::all().into_iter().map(|config| Box::new(config) as _).collect(),
            read: |choices| Ok(Box::new(of_choices::<C>(choices)?)),
            ..Self::of::<C>()
        }
    }
}

/// A config that a server's policy may forbid.
pub trait PolicyConfig: SuiteConfig {
    /// What of it changes what is promised.
    fn mode(&self) -> Mode;

    /// The config in JSON, as [`read`] takes it.
    fn json(&self) -> Value;
}

impl<C: Config + SuiteConfig + Serialize> PolicyConfig for C {
    fn mode(&self) -> Mode {
        Config::mode(self)
    }

    fn json(&self) -> Value {
        let mut json = serde_json::to_value(self).expect("a config is plain data");
        json["suite"] = C::SUITE.into();
        if C::SECURITY != Security::SemiHonest {
            json["security"] = C::SECURITY.name().into();
        }
        json
    }
}

/// Every config of every suite that makes material.
pub fn configs() -> impl Iterator<Item = Box<dyn PolicyConfig>> {
    SUITES.iter().flat_map(|suite| (suite.configs)())
}

/// The config of a label.
pub fn parse(label: &str) -> Option<Box<dyn PolicyConfig>> {
    configs().find(|config| config.label() == label)
}

/// The mode of every config of every suite.
pub fn modes() -> impl Iterator<Item = Mode> {
    SUITES.iter().flat_map(|suite| (suite.modes)())
}

/// Every value that a server may forbid, choice by choice.
pub fn values() -> &'static [config::Value] {
    static VALUES: LazyLock<Vec<config::Value>> = LazyLock::new(|| {
        let mut values: Vec<config::Value> = Vec::new();
        for value in modes().flat_map(|mode| mode.0) {
            if !values.contains(&value) {
                let behind = values.iter().rposition(|known| known.choice == value.choice);
                values.insert(behind.map_or(values.len(), |at| at + 1), value);
            }
        }
        values
    });
    &VALUES
}

/// The choices that a server may forbid.
pub fn choices() -> impl Iterator<Item = &'static str> {
    values().chunk_by(|one, next| one.choice == next.choice).map(|of_one| of_one[0].choice)
}

/// The value of this choice and name.
///
/// # Errors
/// [`Error::Misuse`] if there is none, with those that there are.
pub fn value(choice: &str, name: &str) -> Result<config::Value, Error> {
    let of_choice = || values().iter().filter(|value| value.choice == choice);
    of_choice().find(|value| value.name == name).copied().ok_or_else(|| {
        let possible: Vec<_> = of_choice().map(|value| value.name).collect();
        Error::Misuse(format!("there is no {choice} {name:?}: possible are {}", possible.join(", ")))
    })
}

/// The mode in JSON: a value for each choice, perhaps null where the suite does not have it.
///
/// # Errors
/// [`Error::Misuse`] if there are no such values, or the suite or the other party's abilities are left out.
pub fn mode(json: &str) -> Result<Mode, Error> {
    let malformed = |problem: String| Error::Misuse(format!("this is no mode: {problem}"));
    let options: BTreeMap<String, Option<String>> =
        serde_json::from_str(json).map_err(|error| malformed(error.to_string()))?;
    let named = options.iter().filter_map(|(choice, name)| name.as_ref().map(|name| value(choice, name)));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    for must in ["suite", "security"] {
        if named.iter().all(|value| value.choice != must) {
            return Err(malformed(format!("it has no {must}")));
        }
    }
    Ok(Mode(values().iter().filter(|value| named.contains(value)).copied().collect()))
}

/// The config in JSON: `suite`, `security` unless it is `semi-honest`, and the suite's own choices.
///
/// # Errors
/// [`Error::Misuse`] if there is none like this that makes material.
pub fn read(json: &str) -> Result<Box<dyn PolicyConfig>, Error> {
    let (suite, choices) = suite_of(json)?;
    (suite.read)(choices)
}

/// The same for a suite that is known.
///
/// # Errors
/// [`Error::Misuse`] if it is none of that suite.
pub fn read_as<C: Config + DeserializeOwned>(json: &str) -> Result<C, Error> {
    let (suite, choices) = suite_of(json)?;
    match (suite.name, suite.security) == (C::SUITE, C::SECURITY) {
        true => of_choices(choices),
        false => Err(Error::Misuse(format!("this is a config of suite {}, not of {}", suite.name, C::SUITE))),
    }
}

/// The suite that a config in JSON is of, and its own choices.
fn suite_of(json: &str) -> Result<(&'static Suite, Value), Error> {
    let malformed = |error: serde_json::Error| Error::Misuse(format!("this is no config of a suite: {error}"));
    let mut choices: Map<String, Value> = serde_json::from_str(json).map_err(malformed)?;
    let name = choices.remove("suite").unwrap_or_default();
    let security = choices.remove("security").unwrap_or_else(|| Security::SemiHonest.name().into());
    let is_meant = |suite: &&Suite| name == suite.name && security == suite.security.name();
    let suite = SUITES.iter().find(is_meant).ok_or_else(|| {
        let security = security.as_str().unwrap_or_default();
        Error::Misuse(format!("there is no suite {name} against {security} parties"))
    })?;
    Ok((suite, choices.into()))
}

/// A suite's own choices, which must go together.
fn of_choices<C: Config + DeserializeOwned>(choices: Value) -> Result<C, Error> {
    let named = |error| Error::Misuse(format!("suite {}: {error}", C::SUITE));
    let config: C = serde_json::from_value(choices).map_err(named)?;
    config.check().map(|()| config)
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
        let mut names: Vec<String> =
            ["fss one-bit tables", "fss exact tables", "fss malicious one-bit", "fss malicious exact"]
                .map(str::to_owned)
                .into();
        for (rounds, tables) in [("linear", " tables"), ("log", ""), ("blocks", " tables")] {
            for source in
                ["", " dealt", " one-shot", " kept-weights", " silent", " one-shot silent", " kept-weights silent"]
            {
                let name = |truncation| format!("gmw {rounds} {truncation}{source}{tables}");
                names.extend(["one-bit", "exact"].map(name));
            }
            names.push(format!("gmw {rounds} exact prime{tables}"));
        }
        names.sort();
        let mut labels: Vec<String> = configs().map(|config| config.label()).collect();
        labels.sort();
        assert_eq!(labels, names);
        for label in labels {
            let config = parse(&label).unwrap();
            assert_eq!(config.label(), label);
            assert_eq!(read(&config.json().to_string()).unwrap().label(), label);
        }
    }

    #[test]
    fn a_config_is_read_from_its_choices_alone() {
        for (json, label) in [
            (r#"{"suite": "gmw", "rounds": "log"}"#, "gmw log exact"),
            (r#"{"suite": "gmw", "rounds": "log", "correlations": "dealer"}"#, "gmw log exact dealt"),
            (r#"{"suite": "gmw", "security": "semi-honest", "field": "prime"}"#, "gmw linear exact prime tables"),
            (r#"{"suite": "fss", "truncation": "one-bit"}"#, "fss one-bit tables"),
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
            r#"{"suite": "stream"}"#,
        ] {
            assert!(matches!(read(json), Err(Error::Misuse(_))), "{json}");
        }
        assert_eq!(read_as::<stream::Config>(r#"{"suite": "stream"}"#).unwrap(), stream::Config::default());
        assert!(read_as::<stream::Config>(r#"{"suite": "gmw"}"#).is_err());
    }

    #[test]
    fn choices_are_known_by_the_names_in_policies() {
        let named = |choice| values().iter().filter(|value| value.choice == choice).map(|value| value.name).collect();
        let names: Vec<(&str, Vec<&str>)> = choices().map(|choice| (choice, named(choice))).collect();
        let expected = [
            ("suite", vec!["gmw", "fss", "ckks", "stream"]),
            ("security", vec!["semi-honest", "malicious"]),
            ("truncation", vec!["exact", "one-bit"]),
            ("correlations", vec!["parties", "dealer"]),
            ("linear", vec!["offline", "online"]),
            ("field", vec!["ring", "prime"]),
            ("encrypts", vec!["masks", "weights"]),
            ("scenario", vec!["encrypted-data", "encrypted-model", "collective"]),
            ("flooding", vec!["statistical", "light"]),
        ];
        assert_eq!(names, expected);
        for json in [r#"{"suite": "gmw"}"#, r#"{"suite": "gmv", "security": "malicious"}"#, "[]"] {
            assert!(matches!(mode(json), Err(Error::Misuse(_))), "{json}");
        }
    }

    #[test]
    fn the_mode_of_a_config_is_that_of_its_choices() {
        let mode = |label: &str| serde_json::to_string(&parse(label).unwrap().mode()).unwrap();
        let gmw = r#"{"suite":"gmw","security":"semi-honest","truncation":"one-bit","correlations":"parties","linear":"online","field":"ring","encrypts":"masks"}"#;
        assert_eq!(mode("gmw log one-bit one-shot"), gmw);
        let fss = r#"{"suite":"fss","security":"malicious","truncation":"exact","correlations":"dealer"}"#;
        assert_eq!(mode("fss malicious exact"), fss);
    }
}
