//! `Plan`: a program's public half, planned for a suite.

use privet_program::Program;
use privet_suites::registry;
use privet_suites::sharing::Keep;
use privet_suites::suite::SuitePlan;
use pyo3::prelude::*;

use crate::errors::{Failure, misuse};
use crate::link::Link;

/// A planned program.
#[pyclass(frozen)]
pub(crate) struct Plan(pub(crate) Box<dyn SuitePlan>);

/// The form of weights with this name.
pub(crate) fn form(name: &str) -> Result<Keep, Failure> {
    Ok(match name {
        "prepared" => Keep::Transformed,
        "none" => Keep::Plain,
        other => return Err(misuse(format!("weights are \"prepared\" or \"none\", not {other:?}")).into()),
    })
}

#[pymethods]
impl Plan {
    /// `public`: the public half's bytes; `config`: a suite's config in JSON (`privet_suites::registry::read`); `link`: what
    /// material is made over, else a local network.
    #[new]
    #[pyo3(signature = (public, config, link=None))]
    fn new(public: &[u8], config: &str, link: Option<&Link>) -> Result<Self, Failure> {
        let link = link.map_or(privet_channel::Link::LAN, |link| link.0);
        Ok(Self(registry::read(config)?.plan(Program::parse(public)?, link)?))
    }

    /// Refuses if the client takes more than `limit` bytes of resident memory, this process included as it is now.
    fn check_client_memory(&self, limit: u64) -> Result<(), Failure> {
        let left = limit.saturating_sub(privet_suites::resident_memory());
        Ok(self.0.check_client_memory(left, rayon::current_num_threads())?)
    }

    /// Most bytes of memory that a server needs beside its process with weights of linear layers in the form `keep`.
    fn server_memory(&self, keep: &str) -> Result<u64, Failure> {
        Ok(self.0.server_memory_keeping(form(keep)?, rayon::current_num_threads()).peak())
    }

    /// Width of the ring in which each value is made, in bits.
    fn widths(&self) -> Vec<u32> {
        self.0.widths()
    }

    /// The program's name: SHA-256 of the public half, in hexadecimal.
    #[getter]
    fn program_hash(&self) -> String {
        self.0.program().hash().to_string()
    }

    /// The suite with its options, as material of this plan is labelled.
    #[getter]
    fn suite(&self) -> String {
        self.0.label()
    }

    /// Most bytes that an entry takes in the client's store.
    fn entry_bytes(&self) -> u64 {
        self.0.entry_bytes().0
    }

    /// What it assumes and loses, as JSON: `privet_runtime::security::Security`.
    fn security(&self) -> String {
        serde_json::to_string(&self.0.security()).expect("a budget is plain data")
    }

    /// What one inference will take, as JSON: `privet_runtime::forecast::Forecast`.
    fn forecast(&self) -> String {
        serde_json::to_string(&self.0.forecast()).expect("a forecast is plain data")
    }
}
