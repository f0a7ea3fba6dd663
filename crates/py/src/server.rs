//! `Server`: serves sessions.

use std::sync::{Arc, RwLock};

use privet_suites::session::{Budget, Catalog, Connect, Event, Gate, Intent};
use privet_suites::{MaterialId, Silent, Store, policy, registry, sharing};
use pyo3::prelude::*;

use crate::client::json;
use crate::connection::Connection;
use crate::dealer::Dialer;
use crate::errors::{Failure, duration, misuse};
use crate::plan::form;
use crate::policy::Policy;
use crate::store;

/// A catalog of programs and a material store.
#[pyclass(frozen)]
pub(crate) struct Server {
    catalog: RwLock<Catalog>,
    store: Store,
    dealer: Option<Connect>,
    budget: Option<Budget>,
    policy: policy::Policy,
}

#[pymethods]
impl Server {
    /// Material is kept in the directory `store`, `material` bytes of it at most; `dealer` makes it for clients that
    /// want it dealt; `memory` limits this process's resident bytes; `policy` is what is accepted; `key` encrypts the store.
    #[new]
    #[pyo3(signature = (store, dealer=None, memory=None, material=None, policy=None, key=None))]
    fn new(
        store: &str,
        dealer: Option<&Dialer>,
        memory: Option<u64>,
        material: Option<u64>,
        policy: Option<&Policy>,
        key: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let dealer = dealer.map(|dialer| dialer.connect.clone());
        let (store, budget) = (store::open(store, key, material)?, memory.map(Budget::new));
        let policy = policy.map(|policy| policy.0.clone()).unwrap_or_default();
        Ok(Self { catalog: RwLock::default(), store, dealer, budget, policy })
    }

    /// Offers a program, given both halves. With `warm`, the first preparation without a dealer finds the weights
    /// transformed; `None` means to do that if there is no dealer. `keep`: the form of the weights of linear layers,
    /// `prepared` or `none`; `None` for what suits them and the memory limit.
    #[pyo3(signature = (public, weights, warm=None, keep=None))]
    fn add(
        &self,
        py: Python<'_>,
        public: Vec<u8>,
        weights: &[u8],
        warm: Option<bool>,
        keep: Option<&str>,
    ) -> Result<(), Failure> {
        let keep = keep.map(form).transpose()?;
        let served = py.detach(|| {
            let served = match (&self.budget, keep) {
                (Some(_), Some(_)) => {
                    Err(misuse("a memory limit chooses the form of the weights: give one of the two"))
                }
                (Some(budget), None) => sharing::load_within(public, weights, budget),
                (None, Some(keep)) => sharing::load_keeping(public, weights, keep),
                (None, None) => sharing::load(public, weights),
            }?;
            // With a dealer it may be that nobody ever asks for them.
            if warm.unwrap_or(self.dealer.is_none()) {
                sharing::warm(&served)?;
            }
            Ok::<_, privet_suites::Error>(served)
        })?;
        if let Ok(mut catalog) = self.catalog.write() {
            catalog.add(served);
        }
        Ok(())
    }

    /// Offers a program no more; sessions that have begun go on. Whether it was offered.
    fn remove(&self, program: &str) -> bool {
        self.catalog.write().is_ok_and(|mut catalog| catalog.remove(program))
    }

    /// Serves one client to the end of its session; calls `on_event(kind, model, material, report)` after each request.
    ///
    /// `gate(kind, subject, suite, material)` is called before each, with the kind `describe` (whose subject is a
    /// model's name), `hidden_weights`, `kept_weights`, `send_weights`, `prepare` or `infer` (a program's hash). It returns `None` or why not. With
    /// `threads`, the session computes on as many threads of its own, which get the CPU affinity of the caller. With `idle`,
    /// it ends once no request has followed a job for so many seconds.
    #[pyo3(signature = (connection, on_event=None, gate=None, threads=None, idle=None))]
    fn serve(
        &self,
        py: Python<'_>,
        connection: &Connection,
        on_event: Option<Py<PyAny>>,
        gate: Option<Py<PyAny>>,
        threads: Option<usize>,
        idle: Option<f64>,
    ) -> PyResult<()> {
        let channel = connection.take()?;
        let catalog = self.catalog.read().map(|catalog| catalog.clone()).unwrap_or_default();
        let server = registry::server(catalog, self.store.clone(), self.policy.clone());
        let mut server = server.map_err(Failure::from)?;
        if let Some(connect) = &self.dealer {
            server = server.with_dealer(connect.clone());
        }
        if let Some(budget) = &self.budget {
            server = server.within(budget.clone());
        }
        if let Some(gate) = gate {
            server = server.behind(ask(gate));
        }
        if let Some(idle) = idle {
            server = server.ending_after(duration(idle)?);
        }
        let mut raised = None;
        let mut hear = |event: Event| {
            let (kind, model, material, report) = match event {
                Event::Described { model } => ("described", model, None, None),
                Event::Kept { model, report } => ("kept", model, None, Some(json(&report))),
                Event::Prepared { model, material, report } => ("prepared", model, Some(material), Some(json(&report))),
                Event::Inferred { model, material, report } => ("inferred", model, material, Some(json(&report))),
            };
            let Some(on_event) = &on_event else { return };
            let arguments = (kind, model, material.map(String::from), report);
            if let Err(error) = Python::attach(|py| on_event.call1(py, arguments).map(drop)) {
                raised.get_or_insert(error);
            }
        };
        py.detach(|| on_threads(threads, || server.serve(channel, &mut Silent, &mut hear)))?;
        raised.map_or(Ok(()), Err)
    }
}

/// A gate that asks a Python callable. If that raises, nothing is admitted.
pub(crate) fn ask(gate: Py<PyAny>) -> Gate {
    Arc::new(move |_peer, intent| {
        let arguments = match intent {
            Intent::Describe { model } => ("describe", model, None, None),
            Intent::HiddenWeights { program } => ("hidden_weights", Some(program), None, None),
            Intent::KeptWeights { program, suite } => ("kept_weights", Some(program), Some(suite), None),
            Intent::SendWeights { program, suite } => ("send_weights", Some(program), Some(suite), None),
            Intent::Prepare { program, suite } => ("prepare", Some(program), Some(suite), None),
            Intent::Infer { program, suite, material } => {
                ("infer", Some(program), suite, material.map(MaterialId::as_str))
            }
        };
        let answer = Python::attach(|py| gate.call1(py, arguments)?.extract::<Option<String>>(py));
        match answer {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why),
            Err(_) => Err("this server cannot say whether it may".into()),
        }
    })
}

/// Runs `work` on a pool of so many threads, or on the process's own.
pub(crate) fn on_threads(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<(), privet_suites::Error> + Send,
) -> Result<(), Failure> {
    let Some(threads) = threads else { return Ok(work()?) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| misuse(format!("no pool of {threads} threads: {error}")))?;
    Ok(pool.install(work)?)
}
