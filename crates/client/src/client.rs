//! A client of a service, and what all its models share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use privet_channel::Link;
use privet_suites::{StateKey, Store};
use serde::Deserialize;

use crate::calls::Calls;
use crate::model::{self, Model};
use crate::network::network_to;
use crate::sessions::Sessions;
use crate::{Credentials, Error};

/// A client of the service at an address. Clones share its connections, and may be used from any thread.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

/// What models and predictors of one client have in common.
pub(crate) struct Shared {
    pub(crate) calls: Calls,
    pub(crate) credentials: Credentials,
    pub(crate) store: Store,
    pub(crate) dealer: Option<(String, u16)>,
    pub(crate) memory: u64,
    pub(crate) timeout: Option<Duration>,
    /// Preparations under way.
    pub(crate) making: AtomicUsize,
    pub(crate) sessions: Sessions,
    link: OnceLock<Link>,
}

/// What a [`Client`] is made of; see [`Client::builder`].
#[must_use]
pub struct ClientBuilder {
    url: String,
    credentials: Credentials,
    state: PathBuf,
    state_key: Option<StateKey>,
    max_disk: Option<u64>,
    server_name: Option<String>,
    token: Option<String>,
    dealer: Option<String>,
    link: Option<Link>,
    memory: Option<u64>,
    patience: Duration,
    timeout: Option<Duration>,
}

impl Client {
    /// A client of the service at `url` (`https://HOST:PORT`) that keeps its material in the folder `state`.
    ///
    /// Material belongs to a certificate: all clients with one certificate must share one folder. Any number may, in any
    /// process, also those of Python (`--state`).
    pub fn builder(url: impl Into<String>, credentials: Credentials, state: impl AsRef<Path>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            credentials,
            state: state.as_ref().to_owned(),
            state_key: None,
            max_disk: None,
            server_name: None,
            token: None,
            dealer: None,
            link: None,
            memory: None,
            patience: Duration::from_secs(60),
            timeout: None,
        }
    }

    /// The names of the models that the service offers now.
    ///
    /// # Errors
    /// [`Error::Link`], [`Error::Busy`] or [`Error::NotAccepted`] if the service does not answer this client.
    pub fn models(&self) -> Result<Vec<String>, Error> {
        let List { models } = self.0.calls.get("/v2/models", Duration::ZERO)?;
        let mut names: Vec<String> = models.into_iter().filter(|row| row.ready).map(|row| row.name).collect();
        names.dedup();
        Ok(names)
    }

    /// The newest version of a model, with the public half of its program. Compare [`Model::program_hash`] with the one
    /// that you expect if you rely on predictions: a wrong program gives wrong ones, though it never learns an input.
    ///
    /// # Errors
    /// As [`Client::models`]; [`Error::Misuse`] if there is no such model; [`Error::Unsupported`] if the client would have
    /// to compute what this crate does not; [`Error::PeerMisbehaved`] if the program is none.
    pub fn model(&self, name: &str) -> Result<Model, Error> {
        model::read(&self.0, name, None)
    }

    /// The same of one version.
    ///
    /// # Errors
    /// As [`Client::model`].
    pub fn model_version(&self, name: &str, version: u64) -> Result<Model, Error> {
        model::read(&self.0, name, Some(version))
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }
}

impl ClientBuilder {
    /// The name in the certificates of the service and its workers, if it is not the host's.
    pub fn server_name(self, name: impl Into<String>) -> Self {
        Self { server_name: Some(name.into()), ..self }
    }

    /// A bearer token, for a service that wants one.
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The dealer at `HOST:PORT` in place of the one that the service names. Its certificate must carry a dealer's name
    /// either way.
    pub fn dealer(self, address: impl Into<String>) -> Self {
        Self { dealer: Some(address.into()), ..self }
    }

    /// What the network is taken for; it is measured otherwise.
    pub fn link(self, link: Link) -> Self {
        Self { link: Some(link), ..self }
    }

    /// The key that encrypts the folder of the material, the same for all who share it.
    pub fn state_key(self, key: &[u8; 32]) -> Self {
        Self { state_key: Some(StateKey::new(key)), ..self }
    }

    /// Most bytes of material in its folder.
    pub fn max_disk(self, bytes: u64) -> Self {
        Self { max_disk: Some(bytes), ..self }
    }

    /// Most bytes of memory that this process may take: a program that takes more is refused. By default all that the
    /// machine has; in a container give its limit.
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// How long a busy or absent service is asked again; a minute by default.
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// After how long the service ends a job that has no result, from 0.1 s to a day; jobs wait for their turn otherwise.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The client. Nothing is sent before its first call.
    ///
    /// # Errors
    /// [`Error::Misuse`] if an address or a name is none; [`Error::Session`] if the folder cannot be used.
    pub fn build(self) -> Result<Client, Error> {
        let dealer = self.dealer.as_deref().map(split_address).transpose()?;
        let calls = Calls::new(&self.url, &self.credentials, self.server_name, self.token, self.patience)?;
        let store = Store::open_with(self.state.join("client"), self.state_key).map_err(privet_suites::Error::from)?;
        let store = match self.max_disk {
            Some(bytes) => store.within(bytes),
            None => store,
        };
        Ok(Client(Arc::new(Shared {
            calls,
            credentials: self.credentials,
            store,
            dealer,
            memory: self.memory.unwrap_or_else(machine_memory),
            timeout: self.timeout,
            making: AtomicUsize::new(0),
            sessions: Sessions::default(),
            link: self.link.map(OnceLock::from).unwrap_or_default(),
        })))
    }
}

impl Shared {
    /// What the network is taken for.
    pub(crate) fn link(&self) -> Result<Link, Error> {
        match self.link.get() {
            Some(link) => Ok(*link),
            None => {
                let measured = network_to(&self.calls)?;
                Ok(*self.link.get_or_init(|| measured))
            }
        }
    }
}

#[derive(Deserialize)]
struct List {
    models: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    ready: bool,
}

/// `HOST:PORT` in its two parts. Fails with [`Error::Misuse`] if it is no address.
pub(crate) fn split_address(text: &str) -> Result<(String, u16), Error> {
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.ok_or_else(|| Error::Misuse(format!("{text:?} is not HOST:PORT")))?;
    Ok((host.trim_matches(['[', ']']).to_owned(), port))
}

/// All memory of this machine, as Linux tells it; without a limit elsewhere.
fn machine_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |count| count << 10)
}
