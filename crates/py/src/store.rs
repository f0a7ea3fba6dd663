//! `Store`: a material store, which sessions share and which can be looked at without one.

use std::time::SystemTime;

use privet_suites::{Error, MaterialId, StateKey, StoreEntry, StoreError};
use pyo3::prelude::*;

use crate::errors::Failure;

/// A directory of material.
#[pyclass(frozen)]
pub(crate) struct Store(pub(crate) privet_suites::Store);

#[pymethods]
impl Store {
    /// Opens the store in `path`, encrypted under `key` if there is one, for `most` bytes of material if that is a number;
    /// what crashes left there is removed.
    #[new]
    #[pyo3(signature = (path, key=None, most=None))]
    fn new(py: Python<'_>, path: &str, key: Option<[u8; 32]>, most: Option<u64>) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| open(path, key, most))?))
    }

    /// The entries that are ready, each as JSON: `id`, `program`, `model`, `suite`, `peer`, `bytes` and `age_seconds`.
    fn entries(&self, py: Python<'_>) -> Result<Vec<String>, Failure> {
        let entries = py.detach(|| self.0.entries())?;
        Ok(entries.iter().map(describe).collect())
    }

    /// Removes an entry so that nobody can ever use it; false if it is not here, or somebody has claimed it before.
    fn discard(&self, py: Python<'_>, id: String) -> Result<bool, Failure> {
        let id = MaterialId::try_from(id).map_err(Error::Misuse)?;
        match py.detach(|| self.0.claim(&id)) {
            Ok(_) => Ok(true),
            Err(StoreError::Spent { .. } | StoreError::Missing { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Bytes on disk of one entry; 0 if it is not here.
    fn entry_bytes(&self, py: Python<'_>, id: String) -> Result<u64, Failure> {
        let id = MaterialId::try_from(id).map_err(Error::Misuse)?;
        Ok(py.detach(|| self.0.entry_bytes(&id))?)
    }

    /// The names of the files with encrypted weights of a program (its hash) in a suite (its label).
    fn kept_names(&self, py: Python<'_>, program: &str, suite: &str) -> Result<Vec<String>, Failure> {
        Ok(py.detach(|| self.0.kept_names(program, suite))?)
    }

    /// Bytes of material and kept weights here, entries included that are being made.
    fn bytes(&self, py: Python<'_>) -> Result<u64, Failure> {
        Ok(py.detach(|| self.0.bytes())?)
    }
}

/// Opens a store whose files are encrypted under `key`, if there is one, for `most` bytes of material, if that is a number.
pub(crate) fn open(path: &str, key: Option<[u8; 32]>, most: Option<u64>) -> Result<privet_suites::Store, StoreError> {
    let store = privet_suites::Store::open_with(path, key.map(|bytes| StateKey::new(&bytes)))?;
    Ok(match most {
        Some(bytes) => store.within(bytes),
        None => store,
    })
}

fn describe(entry: &StoreEntry) -> String {
    let StoreEntry { metadata, bytes, created } = entry;
    // A clock that was set back makes no entry younger than new.
    let age = SystemTime::now().duration_since(*created).unwrap_or_default().as_secs_f64();
    serde_json::json!({
        "id": metadata.id,
        "program": metadata.program,
        "model": metadata.model,
        "suite": metadata.suite,
        "peer": metadata.peer,
        "bytes": bytes,
        "age_seconds": age,
    })
    .to_string()
}
