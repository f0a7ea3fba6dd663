//! What can go wrong, in the families of all crates: the peer, the caller, the world.

use privet_channel::{AbortReason, PeerMisbehaved};
use privet_suites::StoreError;

/// A call of this crate failed. The text says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call that cannot work: an address that is none, files that cannot be read, a model or a suite that is not offered.
    #[error("{}", printed(.0))]
    Misuse(String),
    /// An input has the wrong shape, or numbers that the model was not compiled for. Nothing was sent.
    #[error("{}", printed(.0))]
    Input(String),
    /// The model computes something at the client that this crate does not.
    #[error("{}", printed(.0))]
    Unsupported(String),
    /// Nothing answers, or the link broke.
    #[error("{}", printed(.0))]
    Link(String),
    /// The service has no room for the job now.
    #[error("{}", printed(.0))]
    Busy(String),
    /// The service's policy does not accept what was asked, or not from this client.
    #[error("{}", printed(.0))]
    NotAccepted(String),
    /// The service offers another program under this name by now: [`Client::model`](crate::Client::model) reads it.
    #[error("{}", printed(.0))]
    OtherProgram(String),
    /// Prepared material is missing or used.
    #[error("{}", printed(.0))]
    Material(String),
    /// The service ended the job without a result. Asking again takes fresh material.
    #[error("{}", printed(&format!("job {job} {outcome}: {reason}")))]
    JobFailed {
        /// Its id.
        job: String,
        /// `failed`, `cancelled` or `timed out`.
        outcome: String,
        /// What the service says, and what this side met.
        reason: String,
        /// Whether the process of the service that took the job is gone.
        is_lost: bool,
    },
    /// The service, its worker or the dealer sent what makes no sense.
    #[error("{}", printed(.0))]
    PeerMisbehaved(String),
    /// This side's half of a job failed: its store is full or cannot be written, or the program does not fit the suite.
    #[error(transparent)]
    Session(privet_suites::Error),
}

/// Characters of an error's text that are printed.
const LONGEST: usize = 4000;

/// A text as users and logs may see it: whatever of it comes from a service, a worker or a program, also through the words of a
/// library, steers no terminal and ends.
fn printed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

impl Error {
    /// Whether the service may give the job to another worker after it.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Link(_) | Self::Busy(_) | Self::NotAccepted(_))
    }
}

impl From<privet_suites::Error> for Error {
    fn from(error: privet_suites::Error) -> Self {
        let text = error.to_string();
        if let Some(privet_channel::Error::PeerMisbehaved(PeerMisbehaved::Aborted { reason, .. })) = error.link() {
            return match reason {
                AbortReason::MaterialUnavailable | AbortReason::StaleSession => Self::Material(text),
                AbortReason::Busy | AbortReason::ShuttingDown => Self::Busy(text),
                AbortReason::NotAllowed => Self::NotAccepted(text),
                AbortReason::TimedOut => Self::Link(text),
                _ => Self::PeerMisbehaved(text),
            };
        }
        match &error {
            _ if matches!(error.link(), Some(privet_channel::Error::Io(_))) => Self::Link(text),
            _ if error.is_given_up() => Self::Material(text),
            _ if error.is_the_peers_fault() => Self::PeerMisbehaved(text),
            privet_suites::Error::Misuse(_) => Self::Misuse(text),
            privet_suites::Error::Store(
                StoreError::Missing { .. }
                | StoreError::Spent { .. }
                | StoreError::Held { .. }
                | StoreError::Unfit { .. }
                | StoreError::OtherWeights { .. },
            ) => Self::Material(text),
            _ => Self::Session(error),
        }
    }
}

impl From<privet_channel::Error> for Error {
    fn from(error: privet_channel::Error) -> Self {
        match error {
            privet_channel::Error::Misuse(problem) => Self::Misuse(problem.to_string()),
            error => privet_suites::Error::from(error).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use privet_program::Program;
    use serde::Deserialize;

    use super::*;

    #[test]
    fn a_peer_whose_wait_took_too_long_has_not_misbehaved() {
        let aborted = |reason| {
            let text = String::new();
            Error::from(privet_channel::Error::from(PeerMisbehaved::Aborted { reason, text }))
        };
        assert!(matches!(aborted(AbortReason::TimedOut), Error::Link(_)));
        assert!(matches!(aborted(AbortReason::Internal), Error::PeerMisbehaved(_)));
    }

    /// As in the answers of services, and in public halves.
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Known,
    }

    #[test]
    fn no_words_of_a_peer_steer_a_terminal() {
        let steering = "\u{1b}]0;mine\u{7}";
        let json = serde_json::to_string(&format!("{steering}{}", "!".repeat(1 << 20))).unwrap();
        assert!(matches!(serde_json::from_str::<Word>("\"known\""), Ok(Word::Known)));
        let refused = serde_json::from_str::<Word>(&json).unwrap_err().to_string();
        // The control: the parser quotes what it could not read as it came.
        assert!(refused.contains(steering) && refused.len() > 1 << 20);
        let job = Error::JobFailed {
            job: steering.into(),
            outcome: refused.clone(),
            reason: refused.clone(),
            is_lost: false,
        };
        let public = format!(r#"{{"format": {json}}}"#);
        let program = Program::parse(public.as_bytes()).map(drop).unwrap_err().to_string();
        for error in [Error::PeerMisbehaved(refused.clone()), Error::Unsupported(refused), Error::Misuse(program), job]
        {
            let text = error.to_string();
            assert!(!text.contains(char::is_control) && text.len() <= LONGEST, "{text:.40}");
        }
    }
}
