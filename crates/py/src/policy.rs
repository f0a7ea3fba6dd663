//! `Policy` and `Guard`: what a server accepts; `Mode`s in JSON, as `privet_suites::registry` reads them.

use privet_suites::policy::{self, Admission, Caller, Refused};
use privet_suites::registry;
use pyo3::prelude::*;

use crate::errors::{Failure, misuse};

/// What a server accepts.
#[pyclass(frozen)]
pub(crate) struct Policy(pub(crate) policy::Policy);

#[pymethods]
impl Policy {
    /// `text`: a policy in JSON, with the default in place of what it leaves out. It accepts the weaknesses `allow` besides and
    /// gives `answers_per_hour`, if it is a number.
    #[new]
    #[pyo3(signature = (text="{}", allow=vec![], answers_per_hour=None))]
    fn new(text: &str, allow: Vec<String>, answers_per_hour: Option<u32>) -> Result<Self, Failure> {
        let mut policy: policy::Policy = serde_json::from_str(text).map_err(|error| {
            let error = error.to_string();
            // A place in `text` says nothing to whoever wrote the policy in TOML.
            let problem = error.rsplit_once(" at line ").map_or(&*error, |(problem, _)| problem);
            misuse(format!("this is no policy: {problem}"))
        })?;
        for name in allow {
            policy.accepts.allow(&name)?;
        }
        policy.answers_per_hour = answers_per_hour.or(policy.answers_per_hour);
        Ok(Self(policy))
    }

    /// The policy in JSON, nothing left out.
    fn text(&self) -> String {
        serde_json::to_string(&self.0).expect("a policy is plain data")
    }
}

/// Holds clients to a policy.
#[pyclass(frozen)]
pub(crate) struct Guard(pub(crate) policy::Guard);

#[pymethods]
impl Guard {
    /// Counts answers, if the policy limits them, in files below `folder`.
    #[new]
    fn new(policy: &Policy, folder: &str) -> Result<Self, Failure> {
        Ok(Self(policy::Guard::new(policy.0.clone(), folder)?))
    }

    /// Why a client, with the SHA-256 of its certificate in hexadecimal and the common name in it, may not ask in a mode (in
    /// JSON); `None` if it may.
    fn check(&self, fingerprint: String, name: Option<String>, text: &str) -> Result<Option<String>, Failure> {
        let refused = self.0.check(&Caller { fingerprint, name }, &registry::mode(text)?);
        Ok(refusal(refused)?.map(|(text, _)| text))
    }

    /// Counts so many answers to a client before they are given; if it may not have them, why, and in how many seconds it may
    /// (`None` for never).
    fn count(
        &self,
        py: Python<'_>,
        fingerprint: String,
        name: Option<String>,
        answers: u32,
    ) -> Result<Option<(String, Option<u64>)>, Failure> {
        refusal(py.detach(|| self.0.count(&Caller { fingerprint, name }, answers)))
    }
}

/// A refusal that the client may be told of; other errors are this side's.
fn refusal(result: Result<(), Refused>) -> Result<Option<(String, Option<u64>)>, Failure> {
    match result {
        Ok(()) => Ok(None),
        Err(Refused::Store(error)) => Err(error.into()),
        Err(refused) => {
            let seconds = match refused {
                Refused::Exhausted { seconds, .. } => Some(seconds),
                _ => None,
            };
            Ok(Some((refused.to_string(), seconds)))
        }
    }
}

/// Every config of the suites that make material, in JSON.
#[pyfunction]
pub(crate) fn configs() -> Vec<String> {
    registry::configs().map(|config| config.json().to_string()).collect()
}

/// How material of a config in JSON is labelled.
#[pyfunction]
pub(crate) fn label_of(config: &str) -> Result<String, Failure> {
    Ok(registry::read(config)?.label())
}

/// The mode in JSON of a suite with its options, as material is labelled.
#[pyfunction]
pub(crate) fn mode_of(label: &str) -> Result<String, Failure> {
    let config = registry::parse(label).ok_or_else(|| misuse(format!("there is no suite {label:?}")))?;
    Ok(serde_json::to_string(&config.mode()).expect("a mode is plain data"))
}

/// In which ways a mode (in JSON) promises less than the default: names and what they mean.
#[pyfunction]
pub(crate) fn weaknesses(text: &str) -> Result<Vec<(&'static str, &'static str)>, Failure> {
    Ok(registry::mode(text)?.weaknesses().into_iter().map(|weakness| (weakness.name, weakness.meaning)).collect())
}
