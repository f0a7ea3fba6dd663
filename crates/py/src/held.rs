//! What a Python object holds until it is taken or closed.

use std::sync::Mutex;

use pyo3::prelude::*;

use crate::errors::{Failure, misuse};
use crate::progress::Progress;

/// A session, a connection or a handshake, which one thread at a time uses.
pub(crate) struct Held<T>(Mutex<Option<T>>);

impl<T: Send> Held<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    /// Takes it, which can be done once.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().ok().and_then(|mut slot| slot.take())
    }

    /// Gives back what was taken.
    pub(crate) fn put_back(&self, value: T) {
        if let Ok(mut place) = self.0.lock() {
            *place = Some(value);
        }
    }

    /// Does something with it and gives what comes of that, or nothing where it is taken.
    pub(crate) fn if_held<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.lock().ok().and_then(|mut slot| slot.as_mut().map(act))
    }

    /// Runs `work` on an open session without the interpreter's lock.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R, privet_suites::Error> + Send,
    ) -> Result<R, Failure> {
        let worked = py.detach(|| {
            let mut session = self.0.lock().map_err(|_| misuse("the session broke earlier"))?;
            work(session.as_mut().ok_or_else(|| misuse("the session is closed"))?)
        });
        Ok(worked?)
    }

    /// The same for a job whose progress `callback` hears of.
    pub(crate) fn observed<R: Send>(
        &self,
        py: Python<'_>,
        callback: Option<Py<PyAny>>,
        work: impl FnOnce(&mut T, &mut Progress) -> Result<R, privet_suites::Error> + Send,
    ) -> PyResult<R> {
        let mut observer = Progress::new(callback);
        let result = self.with(py, |session| work(session, &mut observer))?;
        observer.finish()?;
        Ok(result)
    }
}
