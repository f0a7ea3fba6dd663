//! `Client`: the client's side of a session.

use privet_suites::{MaterialId, session};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::connection::Connection;
use crate::dealer::Dialer;
use crate::errors::{Failure, duration, misuse};
use crate::held::Held;
use crate::plan::Plan;
use crate::store::Store;

/// An entry that was spent, the outputs (little-endian int64 each), and the cost report.
type Spent<'py> = (String, Vec<Bound<'py, PyBytes>>, String);

/// A session with a server.
#[pyclass(frozen)]
pub(crate) struct Client(Held<session::Client>);

#[pymethods]
impl Client {
    /// Takes over `connection` and greets the server; material is kept in `store`. `dealer` makes it for plans that want it
    /// dealt; `keep_base_ots` takes there what an earlier session left in place of base OTs, and leaves as much.
    #[new]
    #[pyo3(signature = (connection, store, dealer=None, keep_base_ots=true))]
    fn new(
        py: Python<'_>,
        connection: &Connection,
        store: &Store,
        dealer: Option<&Dialer>,
        keep_base_ots: bool,
    ) -> Result<Self, Failure> {
        let channel = connection.take()?;
        let mut session = py.detach(|| session::Client::new(channel, store.0.clone()))?;
        if let Some(dialer) = dealer {
            session = session.with_dealer(dialer.connect.clone());
        }
        if keep_base_ots {
            session = session.keeping_base_ots();
        }
        Ok(Self(Held::new(session)))
    }

    /// The public half of `model`, or of the only one served; with `expected`, a program's hash, nothing else is read.
    #[pyo3(signature = (model=None, expected=None))]
    fn describe<'py>(
        &self,
        py: Python<'py>,
        model: Option<&str>,
        expected: Option<&str>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.0.with(py, |session| session.describe(model, expected))?))
    }

    /// Ids of the material that is ready for `plan` with this server.
    fn ready(&self, py: Python<'_>, plan: &Plan) -> Result<Vec<String>, Failure> {
        let ids = self.0.with(py, |session| session.ready(&*plan.0))?;
        Ok(ids.into_iter().map(String::from).collect())
    }

    /// Makes one material entry: its id and the cost report as JSON.
    #[pyo3(signature = (plan, progress=None))]
    fn prepare(&self, py: Python<'_>, plan: &Plan, progress: Option<Py<PyAny>>) -> PyResult<(String, String)> {
        let (id, report) = self.0.observed(py, progress, |session, observer| session.prepare(&*plan.0, observer))?;
        Ok((id.into(), json(&report)))
    }

    /// Fetches the encrypted weights that `plan` wants kept, unless they are here.
    fn fetch(&self, py: Python<'_>, plan: &Plan) -> Result<(), Failure> {
        self.0.with(py, |session| session.fetch(&*plan.0).map(drop))
    }

    /// Which encrypted weights were removed since this was asked last, to make place for others: sentences.
    fn evicted(&self, py: Python<'_>) -> Result<Vec<String>, Failure> {
        let evicted = self.0.with(py, |session| Ok(session.take_evicted()))?;
        Ok(evicted.iter().map(ToString::to_string).collect())
    }

    /// Spends the entry `material` on `inputs` (little-endian int64 each): the outputs likewise, and the cost report.
    #[pyo3(signature = (plan, material, inputs, progress=None))]
    fn infer<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        material: String,
        inputs: Vec<Vec<u8>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Bound<'py, PyBytes>>, String)> {
        let id = MaterialId::try_from(material).map_err(|problem| Failure::from(misuse(problem)))?;
        let inputs = vectors(&inputs);
        let (outputs, report) =
            self.0.observed(py, progress, |session, observer| session.infer(&*plan.0, &id, &inputs, observer))?;
        Ok((to_python(py, &outputs), json(&report)))
    }

    /// As `infer` on the first entry that is ready and that nobody else claims first, whose id comes before the rest;
    /// `None` if no entry is left.
    #[pyo3(signature = (plan, inputs, progress=None))]
    fn infer_next<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        inputs: Vec<Vec<u8>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Spent<'py>>> {
        let inputs = vectors(&inputs);
        let result =
            self.0.observed(py, progress, |session, observer| session.infer_next(&*plan.0, &inputs, observer))?;
        Ok(result.map(|(id, (outputs, report))| (id.into(), to_python(py, &outputs), json(&report))))
    }

    /// Infers without material: correlations are made as it goes. The plan has linear layers online.
    #[pyo3(signature = (plan, inputs, progress=None))]
    fn infer_unprepared<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        inputs: Vec<Vec<u8>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Bound<'py, PyBytes>>, String)> {
        let inputs = vectors(&inputs);
        let (outputs, report) =
            self.0.observed(py, progress, |session, observer| session.infer_unprepared(&*plan.0, &inputs, observer))?;
        Ok((to_python(py, &outputs), json(&report)))
    }

    /// Which step of a sequence the next inference of `plan` is; 0 for the first, and for a program without state.
    fn step(&self, py: Python<'_>, plan: &Plan) -> Result<u64, Failure> {
        self.0.with(py, |session| Ok(session.step(&*plan.0)))
    }

    /// Ends a sequence: the next inference is the first of another.
    fn end_sequence(&self, py: Python<'_>) -> Result<(), Failure> {
        self.0.with(py, |session| {
            session.end_sequence();
            Ok(())
        })
    }

    /// Takes up an idle session for another job; `timeout` in seconds bounds the wait for any one message of it. Whether the
    /// server has not ended it, as far as this side can tell without asking.
    fn resume(&self, py: Python<'_>, timeout: f64) -> Result<bool, Failure> {
        let timeout = duration(timeout)?;
        self.0.with(py, |session| Ok(session.resume(timeout)))
    }

    /// Whether the server had ended the session before it answered anything since it was resumed.
    #[getter]
    fn was_left(&self) -> bool {
        self.0.if_held(|session| session.was_left()).unwrap_or(false)
    }

    /// Says goodbye; later calls fail.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        Ok(py.detach(|| self.0.take().map_or(Ok(()), session::Client::close))?)
    }
}

/// Each vector as little-endian int64.
pub(crate) fn to_python<'py>(py: Python<'py>, outputs: &[Vec<i64>]) -> Vec<Bound<'py, PyBytes>> {
    let bytes = |values: &Vec<i64>| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    outputs.iter().map(|values| PyBytes::new(py, &bytes(values))).collect()
}

/// The other way round.
pub(crate) fn vectors(inputs: &[Vec<u8>]) -> Vec<Vec<i64>> {
    inputs.iter().map(|bytes| integers(bytes)).collect()
}

pub(crate) fn integers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word)).collect()
}

pub(crate) fn json(report: &privet_suites::Report) -> String {
    serde_json::to_string(report).expect("a report is plain data")
}
