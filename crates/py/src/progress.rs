//! Progress reports to a Python callable.

use privet_suites::{Observer, Phase};
use pyo3::prelude::*;

/// Calls `callback(phase, done, total, next)`; what it raises is kept for the caller of the job.
pub(crate) struct Progress {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Progress {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, raised: None }
    }

    /// What the callback raised, if it did.
    pub(crate) fn finish(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}

impl Observer for Progress {
    fn progress(&mut self, phase: Phase, done: usize, total: usize, next: &str) {
        let Some(callback) = &self.callback else { return };
        let phase = match phase {
            Phase::Offline => "offline",
            Phase::Online => "online",
        };
        if let Err(error) = Python::attach(|py| callback.call1(py, (phase, done, total, next)).map(drop)) {
            self.raised.get_or_insert(error);
        }
    }
}
