//! `Dialer` and `Dealer`: the way to a dealer, and the dealer itself.

use std::sync::{Arc, Mutex, PoisonError};

use privet_channel::{Channel, Stopper, tls};
use privet_suites::registry;
use privet_suites::session::{self, Connect, Dealt};
use pyo3::prelude::*;

use crate::connection::{Connection, Credentials};
use crate::errors::{Failure, duration};
use crate::link::Link;

/// Opens links to a dealer, which stay for a while and serve the deals that begin then.
#[pyclass(frozen)]
pub(crate) struct Dialer {
    pub(crate) connect: Connect,
    last: Arc<Mutex<Last>>,
}

/// The last link that a dialer opened.
enum Last {
    Link(Option<Stopper>),
    /// There is to be no other.
    Stopped,
}

#[pymethods]
impl Dialer {
    /// As `Connection.connect`, later and as often as needed; `timeout` in seconds also bounds the wait for a message.
    #[new]
    #[pyo3(signature = (host, port, credentials, server_name, timeout, link=None))]
    fn new(
        host: String,
        port: u16,
        credentials: &Credentials,
        server_name: String,
        timeout: f64,
        link: Option<&Link>,
    ) -> Result<Self, Failure> {
        let (identity, trust) = (credentials.identity.clone(), credentials.trust.clone());
        let (timeout, link) = (duration(timeout)?, link.map(|link| link.0));
        let last = Arc::new(Mutex::new(Last::Link(None)));
        let latest = Arc::clone(&last);
        let connect = move || {
            let mut channel: Channel = tls::connect(&host, port, &identity, &trust, &server_name, timeout)?;
            channel.set_timeout(timeout);
            if let Some(link) = link {
                channel = channel.shaped(link)?;
            }
            let stopper = channel.stopper()?;
            let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
            match (&*latest, &stopper) {
                (Last::Stopped, Some(stopper)) => stopper.stop(),
                _ => *latest = Last::Link(stopper),
            }
            Ok(channel)
        };
        Ok(Self { connect: Connect::new(connect), last })
    }

    /// Ends the link of a deal under way and every later one, from another thread.
    fn stop(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Last::Link(Some(stopper)) = &*last {
            stopper.stop();
        }
        *last = Last::Stopped;
    }
}

/// What a deal was, for Python.
type Deal = (String, String, u64, u64, f64, f64);

/// Puts the link back if it serves another deal.
fn after(connection: &Connection, session::Deal { dealt, link }: session::Deal) -> (Option<Deal>, bool) {
    let is_left = link.is_some();
    if let Some(link) = link {
        connection.put_back(link);
    }
    let dealt = dealt.map(|dealt| {
        let Dealt { model, material, bytes: [to_client, to_server], seconds, peak_rss_mb } = dealt;
        (model, material.into(), to_client, to_server, seconds, peak_rss_mb)
    });
    (dealt, is_left)
}

/// Deals material to pairs of parties.
#[pyclass(frozen)]
pub(crate) struct Dealer(session::Dealer);

#[pymethods]
impl Dealer {
    /// Refuses entries of more than `most_bytes`; a party waits `patience` seconds for the other.
    #[new]
    fn new(most_bytes: u64, patience: f64) -> Result<Self, Failure> {
        Ok(Self(registry::dealer(most_bytes, duration(patience)?)?))
    }

    /// Serves one party's deal: model, entry, bytes to client and to server, seconds and peak memory in MB if this call
    /// dealt, `None` if that of the other party did; and whether the connection is there for another.
    fn serve(&self, py: Python<'_>, connection: &Connection) -> Result<(Option<Deal>, bool), Failure> {
        let channel = connection.take()?;
        let served = py.detach(|| self.0.serve(channel))?;
        Ok(after(connection, served))
    }

    /// The same on a connection after a deal, if the party asks for another within `idle` seconds. `begins` is called then, and
    /// says why not, or `None`.
    fn serve_another(
        &self,
        py: Python<'_>,
        connection: &Connection,
        idle: f64,
        begins: Py<PyAny>,
    ) -> Result<(Option<Deal>, bool), Failure> {
        let (channel, idle) = (connection.take()?, duration(idle)?);
        let begins = || match Python::attach(|py| begins.call0(py)?.extract::<Option<String>>(py)) {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why),
            Err(_) => Err("this dealer cannot say whether it may".to_owned()),
        };
        let served = py.detach(|| self.0.serve_another(channel, idle, begins))?;
        Ok(after(connection, served))
    }
}
