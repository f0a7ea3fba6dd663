//! `Credentials` and `Connection`: an authenticated link to the other party.

use privet_channel::Channel;
use privet_channel::tls::{self, Identity, Trust};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, duration, misuse};
use crate::held::Held;
use crate::link::Link;

/// A party's certificate and key, and the certificates it trusts.
#[pyclass(frozen)]
pub(crate) struct Credentials {
    pub(crate) identity: Identity,
    pub(crate) trust: Trust,
}

#[pymethods]
impl Credentials {
    /// All three are PEM texts.
    #[new]
    fn new(certificate: &[u8], key: &[u8], trust: &[u8]) -> Result<Self, Failure> {
        Ok(Self { identity: Identity::from_pem(certificate, key)?, trust: Trust::from_pem(trust)? })
    }
}

/// The certificates of authorities in a PEM text, each in DER; refuses one that is not of an authority, and a text without any.
#[pyfunction]
pub(crate) fn authorities<'py>(py: Python<'py>, pem: &[u8]) -> Result<Vec<Bound<'py, PyBytes>>, Failure> {
    Ok(tls::authorities(pem)?.iter().map(|certificate| PyBytes::new(py, certificate)).collect())
}

/// A link to the other party; a session takes it over.
#[pyclass(frozen)]
pub(crate) struct Connection {
    channel: Held<Channel>,
    #[pyo3(get)]
    peer: Option<String>,
    chain: Vec<Vec<u8>>,
    /// Seconds there and back through the network; `None` on one machine and at a server.
    #[pyo3(get)]
    rtt: Option<f64>,
}

impl Connection {
    pub(crate) fn new(channel: Channel) -> Self {
        let peer = channel.peer().map(|peer| peer.to_string());
        let chain = channel.chain().to_vec();
        let rtt = channel.rtt().map(|rtt| rtt.as_secs_f64());
        Self { channel: Held::new(channel), peer, chain, rtt }
    }

    /// The channel, which can be taken once, unless it is put back.
    pub(crate) fn take(&self) -> Result<Channel, Failure> {
        Ok(self.channel.take().ok_or_else(|| misuse("this connection is in use by a session"))?)
    }

    /// Gives back the channel, for what comes next.
    pub(crate) fn put_back(&self, channel: Channel) {
        self.channel.put_back(channel);
    }
}

/// Ends a connection from another thread than the one that uses it.
#[pyclass(frozen)]
pub(crate) struct Stopper(privet_channel::Stopper);

#[pymethods]
impl Stopper {
    /// Whatever uses the connection fails, now or later, as if the peer had left.
    fn stop(&self) {
        self.0.stop();
    }
}

#[pymethods]
impl Connection {
    /// Connects and returns when both sides have accepted each other; `timeout` in seconds. From then on both
    /// directions are as slow as `link`.
    #[staticmethod]
    #[pyo3(signature = (host, port, credentials, server_name, timeout, link=None))]
    fn connect(
        py: Python<'_>,
        host: &str,
        port: u16,
        credentials: &Credentials,
        server_name: &str,
        timeout: f64,
        link: Option<&Link>,
    ) -> Result<Self, Failure> {
        let Credentials { identity, trust } = credentials;
        let timeout = duration(timeout)?;
        let link = link.map(|link| link.0);
        let channel = py.detach(|| {
            let channel = tls::connect(host, port, identity, trust, server_name, timeout)?;
            match link {
                Some(link) => channel.shaped(link),
                None => Ok(channel),
            }
        });
        Ok(Self::new(channel?))
    }

    /// The certificates that the peer showed, each in DER, its own first: judged once more where authorities change.
    #[getter]
    fn chain<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.chain.iter().map(|certificate| PyBytes::new(py, certificate)).collect()
    }

    /// What ends this connection from another thread; to be asked for before a session takes it over.
    fn stopper(&self) -> Result<Option<Stopper>, Failure> {
        Ok(self.channel.if_held(|channel| channel.stopper()).transpose()?.flatten().map(Stopper))
    }

    /// Bounds the wait for any one message, in seconds.
    fn set_timeout(&self, seconds: f64) -> Result<(), Failure> {
        let timeout = duration(seconds)?;
        self.channel.if_held(|channel| channel.set_timeout(timeout));
        Ok(())
    }
}
