//! Why a server ends a session.

use privet_channel::AbortReason;

use super::admission::Refused;
use crate::{Error, PeerMisbehaved};

/// An error together with what the client is told of it: never more than the client may know.
pub(super) struct Refusal {
    pub(super) reason: AbortReason,
    pub(super) text: String,
    pub(super) error: Error,
}

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let error = error.into();
        let text = match &error {
            Error::Refused(Refused::Outside(_) | Refused::Exhausted { .. }) => error.to_string(),
            _ => String::new(),
        };
        Self { reason: error.abort_reason(), text, error }
    }
}

impl Refusal {
    pub(super) fn new(reason: AbortReason, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { reason, error: PeerMisbehaved::Request(text.clone()).into(), text }
    }

    /// Tells the client a text that quotes it. This side's error, which may be logged, has `what` was wrong and no word of the client's.
    pub(super) fn quoting(reason: AbortReason, text: String, what: &str) -> Self {
        Self { reason, error: PeerMisbehaved::Request(what.to_owned()).into(), text }
    }
}
