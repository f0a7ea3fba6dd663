//! `Listener` and `Pending`: waiting for clients.

use privet_channel::tls;
use privet_channel::{Error, Io};
use pyo3::prelude::*;

use crate::connection::{Connection, Credentials};
use crate::errors::{Failure, duration, misuse};
use crate::held::Held;

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

    /// Shows these credentials to clients that are accepted from now on.
    fn renew(&self, credentials: &Credentials) -> Result<(), Failure> {
        Ok(self.0.renew(&credentials.identity, &credentials.trust)?)
    }

    /// The next TCP connection, before its handshake; `None` if none comes within `timeout` seconds.
    fn accept(&self, py: Python<'_>, timeout: f64) -> Result<Option<Pending>, Failure> {
        let timeout = duration(timeout)?;
        match py.detach(|| self.0.accept(timeout)) {
            Ok(pending) => Ok(Some(Pending { address: pending.address().to_string(), inner: Held::new(pending) })),
            Err(Error::Io(Io::TimedOut { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A TCP connection whose TLS handshake is still to come, so that a slow client holds up no other.
#[pyclass(frozen)]
pub(crate) struct Pending {
    inner: Held<tls::Pending>,
    #[pyo3(get)]
    address: String,
}

#[pymethods]
impl Pending {
    /// Does the handshake within `timeout` seconds.
    fn handshake(&self, py: Python<'_>, timeout: f64) -> Result<Connection, Failure> {
        let pending = self.inner.take().ok_or_else(|| misuse("this handshake is done already"))?;
        let timeout = duration(timeout)?;
        Ok(Connection::new(py.detach(|| pending.handshake(timeout))?))
    }
}
