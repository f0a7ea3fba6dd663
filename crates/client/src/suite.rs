//! How an inference is to be computed.

use std::sync::Arc;

use privet_suites::config::Choice;
use privet_suites::registry::PolicyConfig;
use privet_suites::sharing::{Encrypts, Linear, Rounds};
use privet_suites::{fss, gmw, malicious};
use serde_json::{Map, Value};

use crate::Error;

/// A suite with its choices; the default is suite `gmw` with the depth of comparisons that suits the network.
///
/// What it leaves open is what material is ready for, or else what the network delays least.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    choices: Choices,
    is_unprepared: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Choices {
    /// With any depth of comparisons, if that is left open.
    Gmw {
        config: gmw::Config,
        any_depth: bool,
    },
    Fss(fss::Config),
    Malicious(malicious::Config),
}

impl Suite {
    /// Boolean sharing between the two parties alone.
    pub fn gmw() -> Self {
        Choices::Gmw { config: gmw::Config::default(), any_depth: true }.into()
    }

    /// Function secret sharing with keys from the service's dealer, which must collude with neither party.
    pub fn fss() -> Self {
        fss::Config::default().into()
    }

    /// The same against a service that deviates from the protocol: it is caught before there is an output.
    pub fn fss_malicious() -> Self {
        malicious::Config::default().into()
    }

    /// The suite without preparation: material is made as the inference goes. Of suite `gmw`, whose linear layers then
    /// run online; the others are refused when they are used.
    #[must_use]
    pub fn unprepared(self) -> Self {
        let choices = match self.choices {
            Choices::Gmw { config, any_depth } => {
                Choices::Gmw { config: gmw::Config { linear: Linear::Online, ..config }, any_depth }
            }
            other => other,
        };
        Self { choices, is_unprepared: true }
    }

    /// What it leaves to choose from, every choice made. Fails with [`Error::Misuse`] if its choices do not go
    /// together.
    pub(crate) fn alternatives(&self) -> Result<Vec<Resolved>, Error> {
        let suites = match self.choices {
            Choices::Gmw { config, any_depth: false } => vec![gmw_resolved(config)?],
            Choices::Gmw { config, any_depth: true } => {
                let depths = Rounds::VALUES.iter();
                depths
                    .map(|(rounds, _)| gmw_resolved(gmw::Config { rounds: *rounds, ..config }))
                    .collect::<Result<_, _>>()?
            }
            Choices::Fss(config) => vec![Resolved::new(config)],
            Choices::Malicious(config) => vec![Resolved::new(config)],
        };
        if self.is_unprepared && !matches!(self.choices, Choices::Gmw { .. }) {
            return Err(Error::Misuse("only suite gmw infers without prepared material".into()));
        }
        Ok(suites.into_iter().map(|resolved| Resolved { is_unprepared: self.is_unprepared, ..resolved }).collect())
    }
}

impl Default for Suite {
    fn default() -> Self {
        Self::gmw()
    }
}

impl From<Choices> for Suite {
    fn from(choices: Choices) -> Self {
        Self { choices, is_unprepared: false }
    }
}

impl From<gmw::Config> for Suite {
    /// Every choice of suite `gmw` as it is there.
    fn from(config: gmw::Config) -> Self {
        Choices::Gmw { config, any_depth: false }.into()
    }
}

impl From<fss::Config> for Suite {
    fn from(config: fss::Config) -> Self {
        Choices::Fss(config).into()
    }
}

impl From<malicious::Config> for Suite {
    fn from(config: malicious::Config) -> Self {
        Choices::Malicious(config).into()
    }
}

/// A suite with every choice made.
#[derive(Clone)]
pub(crate) struct Resolved {
    pub(crate) config: Arc<dyn PolicyConfig>,
    /// What the service must know of it.
    pub(crate) facts: Map<String, Value>,
    pub(crate) is_unprepared: bool,
}

impl Resolved {
    fn new(config: impl PolicyConfig + 'static) -> Self {
        let mode = PolicyConfig::mode(&config);
        let facts = mode.0.iter().map(|value| (value.choice.to_owned(), value.name.into())).collect();
        Self { config: Arc::new(config), facts, is_unprepared: false }
    }

    /// What the service knows it by.
    pub(crate) fn fact(&self, name: &str) -> &str {
        self.facts.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

fn gmw_resolved(config: gmw::Config) -> Result<Resolved, Error> {
    privet_suites::config::Config::check(&config)?;
    if config.encrypts == Encrypts::Weights {
        return Err(Error::Misuse("this client keeps no weights of services: leave `encrypts` at masks".into()));
    }
    let mut resolved = Resolved::new(config);
    resolved.facts.insert(Rounds::NAME.into(), config.rounds.name().into());
    resolved.facts.insert("transfers".into(), if config.saves_bytes() { "silent" } else { "auto" }.into());
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use privet_suites::sharing::Arithmetic;

    use super::*;

    fn facts_of(suite: impl Into<Suite>) -> Vec<String> {
        let resolved = suite.into().alternatives().unwrap();
        resolved.iter().map(|suite| Value::from(suite.facts.clone()).to_string()).collect()
    }

    #[test]
    fn the_service_is_told_every_choice_by_its_own_words() {
        let log = gmw::Config { rounds: Rounds::Log, ..Default::default() };
        let [one] = &facts_of(log)[..] else { panic!("one way") };
        assert_eq!(
            one,
            r#"{"correlations":"parties","encrypts":"masks","field":"ring","linear":"offline","rounds":"log","security":"semi-honest","suite":"gmw","transfers":"auto","truncation":"exact"}"#
        );
        let silent = gmw::Config { transfers: gmw::Transfers::Silent, ..log };
        assert!(facts_of(silent)[0].contains(r#""transfers":"silent""#));
        assert!(facts_of(gmw::Config { field: Arithmetic::Prime, ..silent })[0].contains(r#""transfers":"auto""#));
        let prime = gmw::Config { field: Arithmetic::Prime, ..log };
        assert!(facts_of(prime)[0].contains(r#""correlations":"parties","encrypts":"masks","field":"prime""#));
        assert!(facts_of(Suite::fss())[0].contains(r#""correlations":"dealer""#));
        assert!(facts_of(Suite::fss_malicious())[0].contains(r#""security":"malicious""#));
    }

    #[test]
    fn the_default_leaves_the_depth_open() {
        assert_eq!(Suite::default(), Suite::gmw());
        let labels: Vec<_> = Suite::gmw()
            .unprepared()
            .alternatives()
            .unwrap()
            .iter()
            .map(|alternative| alternative.config.label())
            .collect();
        assert_eq!(
            labels,
            ["gmw linear exact one-shot tables", "gmw log exact one-shot", "gmw blocks exact one-shot tables"]
        );
    }

    #[test]
    fn impossible_choices_are_refused() {
        let both = gmw::Config { field: Arithmetic::Prime, linear: Linear::Online, ..Default::default() };
        let config = gmw::Config { encrypts: Encrypts::Weights, ..Default::default() };
        for suite in [Suite::from(both), Suite::from(config), Suite::fss().unprepared()] {
            assert!(matches!(suite.alternatives(), Err(Error::Misuse(_))), "{suite:?}");
        }
    }
}
