//! `Link`: a network link that a connection is shaped to.

use pyo3::prelude::*;

use crate::errors::Failure;

/// A latency and a bandwidth.
#[pyclass(frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Link(pub(crate) privet_channel::Link);

#[pymethods]
impl Link {
    /// `text`: `lan`, `wan`, or `RTT,BANDWIDTH` such as `20ms,100Mbit`.
    #[new]
    fn new(text: &str) -> Result<Self, Failure> {
        let link = text.parse().map_err(privet_channel::Error::Misuse)?;
        Ok(Self(link))
    }

    /// Seconds there and back.
    #[getter]
    fn rtt(&self) -> f64 {
        self.0.rtt().as_secs_f64()
    }

    /// Bandwidth of each direction.
    #[getter]
    fn bits_per_second(&self) -> u64 {
        self.0.bits_per_second()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}
