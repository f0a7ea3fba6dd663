//! `Listener` and `Pending`: waiting for clients.

use std::sync::Mutex;

use privet_channel::tls;
use privet_channel::{Error, Io};
use pyo3::prelude::*;

use crate::connection::{Connection, Credentials};
use crate::errors::{Failure, duration};

/// A listening socket.
#[pyclass(frozen)]
pub(crate) struct Listener(tls::Listener);

#[pymethods]
impl Listener {
    /// Listens on `address`, `HOST:PORT`; port 0 lets the system choose.
    #[new]
    fn new(address: &str, credentials: &Credentials) -> Result<Self, Failure> {
        Ok(Self(tls::Listener::bind(address, &credentials.identity, &credentials.trust)?))
    }

    /// Host and port that it listens on.
    #[getter]
    fn address(&self) -> (String, u16) {
        let address = self.0.local_addr();
        (address.ip().to_string(), address.port())
    }

    /// The next TCP connection, before its handshake; `None` if none comes within `timeout` seconds.
    fn accept(&self, py: Python<'_>, timeout: f64) -> Result<Option<Pending>, Failure> {
        let timeout = duration(timeout)?;
        match py.detach(|| self.0.accept(timeout)) {
            Ok(pending) => {
                Ok(Some(Pending { address: pending.address().to_string(), inner: Mutex::new(Some(pending)) }))
            }
            Err(Error::Io(Io::TimedOut { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A TCP connection whose TLS handshake is still to come, so that a slow client holds up no other.
#[pyclass(frozen)]
pub(crate) struct Pending {
    inner: Mutex<Option<tls::Pending>>,
    #[pyo3(get)]
    address: String,
}

#[pymethods]
impl Pending {
    /// Does the handshake within `timeout` seconds.
    fn handshake(&self, py: Python<'_>, timeout: f64) -> Result<Connection, Failure> {
        let pending = self.inner.lock().ok().and_then(|mut pending| pending.take());
        let pending = pending.ok_or_else(|| privet_suites::Error::Misuse("this handshake is done already".into()))?;
        let timeout = duration(timeout)?;
        Ok(Connection::new(py.detach(|| pending.handshake(timeout))?))
    }
}
