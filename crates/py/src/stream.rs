//! `StreamPlan`, `StreamServer` and `StreamClient`: suite `stream`.

use privet_program::Program;
use privet_suites::stream::{Client, Config, Event, ModelMaterial, Ordered, Plan, Server};
use privet_suites::{Silent, registry};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::{json, to_python, vectors};
use crate::connection::Connection;
use crate::errors::Failure;
use crate::held::Held;
use crate::policy::Guard;
use crate::server::{ask, on_threads};
use crate::stages::indices;

/// Shares by their values, and for each round the element at each place sent (all bits set for none), what is added to
/// it, the place of each element returned, and what is added to that; tensors as rows.
type Ordering<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type Served<'py> = (Vec<(usize, Bound<'py, PyBytes>)>, Vec<Ordering<'py>>);

/// Masks of the inputs, and for each round of what comes and of what goes back, as rows.
type Asked<'py> = (Vec<Bound<'py, PyBytes>>, Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>);

/// A program planned for a cipher.
#[pyclass(frozen)]
pub(crate) struct StreamPlan(Plan);

#[pymethods]
impl StreamPlan {
    /// `public`: the public half's bytes; `config`: the suite's config in JSON; `samples` share the plaintexts of Paillier.
    #[new]
    #[pyo3(signature = (public, config, samples=1))]
    fn new(public: &[u8], config: &str, samples: usize) -> Result<Self, Failure> {
        let program = Program::parse(public).map_err(privet_suites::Error::from)?;
        Ok(Self(Plan::new(program, registry::read_as::<Config>(config)?.cipher)?.packed(samples)?))
    }

    /// What it assumes and loses, as JSON: `privet_runtime::security::Security`.
    fn security(&self) -> String {
        serde_json::to_string(&self.0.security()).expect("a budget is plain data")
    }

    /// What one inference takes, as JSON.
    fn forecast(&self) -> String {
        serde_json::to_string(&self.0.forecast()).expect("a forecast is plain data")
    }
}

/// A model provider.
#[pyclass(frozen)]
pub(crate) struct StreamServer(Box<Server>);

#[pymethods]
impl StreamServer {
    /// Serves a program, given both halves, to clients that `guard` admits.
    #[new]
    fn new(py: Python<'_>, public: Vec<u8>, weights: &[u8], guard: &Guard) -> Result<Self, Failure> {
        Ok(Self(Box::new(py.detach(|| Server::new(public, weights))?.under(guard.0.clone()))))
    }

    /// Serves one client to the end of its session, with the choices of a config in JSON alone; calls
    /// `on_event(kind, report)` after each request, with the kind `described`, `prepared` or `inferred`;
    /// `on_entry(name, entry, report)` for a request that goes another way. `gate` and `threads` are those of `Server.serve`.
    #[pyo3(signature = (connection, config, on_event, on_entry=None, gate=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "by name in Python")]
    fn serve(
        &self,
        py: Python<'_>,
        connection: &Connection,
        config: &str,
        on_event: Py<PyAny>,
        on_entry: Option<Py<PyAny>>,
        gate: Option<Py<PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let only = Some(registry::read_as::<Config>(config).map_err(Failure::from)?);
        let channel = connection.take()?;
        let mut raised = None;
        let mut hear = |event: Event| {
            let notify = |kind: &str, report: Option<String>| Python::attach(|py| on_event.call1(py, (kind, report)));
            let result = match event {
                Event::Described => notify("described", None),
                Event::Prepared(report) => notify("prepared", Some(json(&report))),
                Event::Inferred(report) => notify("inferred", Some(json(&report))),
                Event::Stocked(name, entry, report) => Python::attach(|py| match &on_entry {
                    Some(on_served) => on_served.call1(py, (name, served(py, &entry), json(&report))),
                    None => Ok(py.None()),
                }),
            };
            if let Err(error) = result {
                raised.get_or_insert(error);
            }
        };
        let gate = gate.map(ask);
        py.detach(|| on_threads(threads, || self.0.serve(only, gate.as_ref(), channel, &mut Silent, &mut hear)))?;
        raised.map_or(Ok(()), Err)
    }
}

fn served<'py>(py: Python<'py>, entry: &ModelMaterial) -> Served<'py> {
    let rows = |rows: &[u8]| PyBytes::new(py, rows);
    let ordering = |round: &Ordered| {
        let sent: Vec<usize> = round.sent.iter().map(|element| element.unwrap_or(u32::MAX as usize)).collect();
        (indices(py, &sent), rows(&round.forward), indices(py, &round.returned), rows(&round.backward))
    };
    let shares = entry.shares.iter().map(|(value, share)| (*value, rows(share))).collect();
    (shares, entry.rounds.iter().map(ordering).collect())
}

/// A data provider in a session.
#[pyclass(frozen)]
pub(crate) struct StreamClient(
    // In a box of its own: keys hold vectors of 64 bytes, and Python's allocator aligns to 16.
    Held<Box<Client>>,
);

#[pymethods]
impl StreamClient {
    /// Takes over `connection` and greets the server.
    #[new]
    fn new(py: Python<'_>, connection: &Connection) -> Result<Self, Failure> {
        let channel = connection.take()?;
        Ok(Self(Held::new(Box::new(py.detach(|| Client::new(channel))?))))
    }

    /// The public half of the program served; with `expected`, a program's hash, nothing else is read.
    #[pyo3(signature = (expected=None))]
    fn describe<'py>(&self, py: Python<'py>, expected: Option<&str>) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.0.with(py, |client| client.describe(expected))?))
    }

    /// Makes a key and the noise, or the masks, of one inference: the cost report as JSON.
    #[pyo3(signature = (plan, progress=None))]
    fn prepare(&self, py: Python<'_>, plan: &StreamPlan, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let report = self.0.observed(py, progress, |session, observer| session.prepare(&plan.0, observer))?;
        Ok(json(&report))
    }

    /// Makes masks over BFV for a request that goes another way, under a name for both sides; with the cost report.
    fn entry<'py>(&self, py: Python<'py>, plan: &StreamPlan, name: &str) -> Result<(Asked<'py>, String), Failure> {
        let (entry, report) = self.0.with(py, |session| session.entry(&plan.0, name))?;
        let rows = |rows: &Vec<u8>| PyBytes::new(py, rows);
        let rounds = entry.rounds.iter().map(|[received, returned]| (rows(received), rows(returned))).collect();
        Ok(((entry.inputs.iter().map(rows).collect(), rounds), json(&report)))
    }

    /// Gives `inputs` (little-endian int64 each): the outputs likewise, and the cost report.
    #[pyo3(signature = (plan, inputs, progress=None))]
    fn infer<'py>(
        &self,
        py: Python<'py>,
        plan: &StreamPlan,
        inputs: Vec<Vec<u8>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Bound<'py, PyBytes>>, String)> {
        let inputs = vectors(&inputs);
        let (outputs, report) =
            self.0.observed(py, progress, |session, observer| session.infer(&plan.0, &inputs, observer))?;
        Ok((to_python(py, &outputs), json(&report)))
    }

    /// Says goodbye; later calls fail.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        Ok(py.detach(|| self.0.take().map_or(Ok(()), |session| session.close()))?)
    }
}
