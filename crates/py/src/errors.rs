//! The one place where Rust's error enums become Python's exception tree, `privet.errors`.

use std::time::Duration;

use privet_suites::{Error, StoreError};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// A year.
const MOST_SECONDS: f64 = 365.0 * 86_400.0;

/// An error on its way to Python.
pub(crate) struct Failure(Error);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let class = class(&failure.0);
        let message = failure.0.to_string();
        Python::attach(|py| {
            let attribute = py.import("privet.errors").and_then(|module| module.getattr(class));
            match attribute.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
                Ok(class) => PyErr::from_type(class, message),
                Err(error) => error,
            }
        })
    }
}

/// The caller is at fault: `problem`.
pub(crate) fn misuse(problem: impl Into<String>) -> Error {
    Error::Misuse(problem.into())
}

/// A time to wait, of a year at most: callers may have it from a peer. Fails with [`Error::Misuse`] if it is negative
/// or no number.
pub(crate) fn duration(seconds: f64) -> Result<Duration, Failure> {
    let most = if seconds > MOST_SECONDS { MOST_SECONDS } else { seconds };
    let none = |_| misuse(format!("{seconds} seconds are no time to wait"));
    Ok(Duration::try_from_secs_f64(most).map_err(none)?)
}

fn class(error: &Error) -> &'static str {
    if let Some(error) = error.link() {
        return link(error);
    }
    match error {
        _ if error.is_given_up() => "MaterialError",
        _ if error.is_the_peers_fault() => "PeerMisbehaved",
        Error::Program(_) => "InvalidProgram",
        Error::Store(StoreError::Full { .. }) => "StoreFull",
        Error::Refused(_) | Error::Store(StoreError::Io { .. }) | Error::Randomness(_) => "PrivetError",
        Error::Store(StoreError::Key { .. }) => "Misuse",
        Error::Store(_) => "MaterialError",
        _ => "Misuse",
    }
}

fn link(error: &privet_channel::Error) -> &'static str {
    use privet_channel::{AbortReason, PeerMisbehaved};
    match error {
        privet_channel::Error::PeerMisbehaved(PeerMisbehaved::Aborted { reason, .. }) => match reason {
            AbortReason::MaterialUnavailable | AbortReason::StaleSession => "MaterialError",
            AbortReason::Busy | AbortReason::ShuttingDown => "PeerBusy",
            AbortReason::NotAllowed => "NotAccepted",
            AbortReason::TimedOut => "LinkError",
            _ => "PeerMisbehaved",
        },
        privet_channel::Error::PeerMisbehaved(_) => "PeerMisbehaved",
        privet_channel::Error::Misuse(_) => "Misuse",
        privet_channel::Error::Io(privet_channel::Io::ConnectionRefused { .. }) => "NobodyListens",
        privet_channel::Error::Io(privet_channel::Io::Bind { .. }) => "PrivetError",
        privet_channel::Error::Io(_) => "LinkError",
    }
}
