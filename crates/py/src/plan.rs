//! `Plan`: a program's public half, planned for suite `gmw`.

use privet_party::gmw;
use privet_program::Program;
use pyo3::prelude::*;

use crate::errors::Failure;

/// A planned program.
#[pyclass(frozen)]
pub(crate) struct Plan(pub(crate) gmw::Plan);

pub(crate) fn rounds(name: &str) -> Result<gmw::Rounds, Failure> {
    match name {
        "linear" => Ok(gmw::Rounds::Linear),
        "log" => Ok(gmw::Rounds::Log),
        other => Err(privet_party::Error::Misuse(format!("rounds are \"linear\" or \"log\", not {other:?}")).into()),
    }
}

#[pymethods]
impl Plan {
    /// `public`: the public half's bytes; `rounds`: `linear` or `log`.
    #[new]
    #[pyo3(signature = (public, rounds))]
    fn new(public: &[u8], rounds: &str) -> Result<Self, Failure> {
        Ok(Self(gmw::Plan::new(Program::parse(public)?, self::rounds(rounds)?)?))
    }

    /// The program's name: SHA-256 of the public half, in hexadecimal.
    #[getter]
    fn program_hash(&self) -> String {
        self.0.program().hash().to_string()
    }

    /// What one inference will take, as JSON: `privet_party::gmw::Forecast`.
    fn forecast(&self) -> String {
        serde_json::to_string(&self.0.forecast()).expect("a forecast is plain data")
    }
}
