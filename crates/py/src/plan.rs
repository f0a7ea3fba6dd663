//! `Plan`: a program's public half, planned for a suite.

use privet_party::sharing::Keep;
use privet_party::{Options, authenticated, sharing};
use privet_program::Program;
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::link::Link;

/// A planned program.
#[pyclass(frozen)]
pub(crate) struct Plan(pub(crate) privet_party::Plan);

fn options(
    suite: &str,
    security: &str,
    rounds: &str,
    truncation: &str,
    correlations: &str,
    linear: &str,
) -> Result<Options, Failure> {
    let truncation = match truncation {
        "one-bit" => sharing::Truncation::OneBit,
        "exact" => sharing::Truncation::Exact,
        other => return Err(misuse(format!("truncation is \"one-bit\" or \"exact\", not {other:?}"))),
    };
    let suite = match (suite, security) {
        ("gmw", "semi-honest") => sharing::Suite::Gmw { rounds: depth(rounds)? },
        ("fss", "semi-honest") => return Ok(Options::Sharing(sharing::Options::fss(truncation))),
        ("fss", "malicious") => return Ok(Options::Authenticated(authenticated::Options { truncation })),
        (suite, security) => return Err(misuse(format!("there is no suite {suite:?} against {security} parties"))),
    };
    let (maker, arithmetic) = source(correlations)?;
    let linear = match linear {
        "offline" => sharing::Linear::Offline,
        "online" => sharing::Linear::Online,
        other => return Err(misuse(format!("linear layers run \"offline\" or \"online\", not {other:?}"))),
    };
    Ok(Options::Sharing(sharing::Options { suite, truncation, maker, linear, arithmetic }.check()?))
}

fn depth(rounds: &str) -> Result<sharing::Rounds, Failure> {
    Ok(match rounds {
        "linear" => sharing::Rounds::Linear,
        "log" => sharing::Rounds::Log,
        "blocks" => sharing::Rounds::Blocks,
        other => return Err(misuse(format!("rounds are \"linear\", \"log\" or \"blocks\", not {other:?}"))),
    })
}

/// Who makes material, and what linear layers compute modulo.
fn source(correlations: &str) -> Result<(sharing::Maker, sharing::Arithmetic), Failure> {
    use sharing::{Arithmetic, Maker};
    match correlations {
        "parties" => Ok((Maker::Parties, Arithmetic::Ring)),
        "dealer" => Ok((Maker::Dealer, Arithmetic::Ring)),
        "prime" => Ok((Maker::Parties, Arithmetic::Prime)),
        other => Err(misuse(format!("correlations come from \"parties\", \"dealer\" or \"prime\", not {other:?}"))),
    }
}

/// The form of weights with this name.
pub(crate) fn form(name: &str) -> Result<Keep, Failure> {
    Ok(match name {
        "prepared" => Keep::Transformed,
        "on-the-fly" => Keep::OnTheFly,
        "none" => Keep::Plain,
        other => return Err(misuse(format!("weights are \"prepared\", \"on-the-fly\" or \"none\", not {other:?}"))),
    })
}

fn misuse(problem: String) -> Failure {
    privet_party::Error::Misuse(problem).into()
}

#[pymethods]
impl Plan {
    /// `public`: the public half's bytes; `suite`: `gmw` or `fss`; `security`: against `semi-honest` or, in `fss`, `malicious`
    /// parties; `truncation`: `one-bit` or `exact`; `link`: what material
    /// is made over, else a local network. For `gmw` alone, `rounds`: `linear`, `log` or `blocks`; `correlations`: from the
    /// `parties` themselves or a `dealer`, or with linear layers modulo a `prime`; `linear`: layers `offline` or `online`.
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[new]
    #[pyo3(signature = (public, suite, security, rounds, truncation, correlations="parties", link=None, linear="offline"))]
    fn new(
        public: &[u8],
        suite: &str,
        security: &str,
        rounds: &str,
        truncation: &str,
        correlations: &str,
        link: Option<&Link>,
        linear: &str,
    ) -> Result<Self, Failure> {
        let options = options(suite, security, rounds, truncation, correlations, linear)?;
        let plan = privet_party::Plan::new(Program::parse(public)?, options)?;
        Ok(Self(match link {
            Some(link) => plan.over(link.0),
            None => plan,
        }))
    }

    /// Refuses if the client takes more than `limit` bytes of resident memory, this process included as it is now.
    fn check_client_memory(&self, limit: u64) -> Result<(), Failure> {
        let left = limit.saturating_sub(privet_party::resident_memory());
        Ok(self.0.check_client_memory(left, rayon::current_num_threads())?)
    }

    /// Most bytes of memory that a server needs beside its process with weights of linear layers in the form `keep`.
    fn server_memory(&self, keep: &str) -> Result<u64, Failure> {
        let keep = form(keep)?;
        let privet_party::Plan::Sharing(plan) = &self.0 else {
            return Ok(self.0.forecast().memory_bytes_server);
        };
        Ok(plan.server_memory(&plan.workspaces_keeping(keep), rayon::current_num_threads()).peak())
    }

    /// Width of the ring in which each value is made, in bits.
    fn widths(&self) -> Vec<u32> {
        self.0.by_ref().widths()
    }

    /// The program's name: SHA-256 of the public half, in hexadecimal.
    #[getter]
    fn program_hash(&self) -> String {
        self.0.by_ref().program().hash().to_string()
    }

    /// The suite with its options, as material of this plan is labelled.
    #[getter]
    fn suite(&self) -> String {
        self.0.by_ref().options().name()
    }

    /// Most bytes that a piece takes in the client's store.
    fn piece_bytes(&self) -> u64 {
        self.0.by_ref().piece_bytes().0
    }

    /// What it assumes and loses, as JSON: `privet_party::security::Security`.
    fn security(&self) -> String {
        serde_json::to_string(&self.0.security()).expect("a budget is plain data")
    }

    /// What one inference will take, as JSON: `privet_party::sharing::Forecast`.
    fn forecast(&self) -> String {
        serde_json::to_string(&self.0.forecast()).expect("a forecast is plain data")
    }
}
