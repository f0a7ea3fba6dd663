//! Who may ask a server for what, and for how many answers.

use privet_channel::Channel;

use crate::StoreError;

/// Lets clients in. A server asks it before anything is made or spent for a request.
pub trait Admission: Send + Sync {
    /// Whether a client may ask for anything at all.
    ///
    /// # Errors
    /// [`Refused::Outside`].
    fn admit(&self, client: &Caller) -> Result<(), Refused>;

    /// Whether a client may ask for the suite of this label.
    ///
    /// # Errors
    /// [`Refused::Outside`] with what is accepted instead.
    fn check_suite(&self, client: &Caller, label: &str) -> Result<(), Refused>;

    /// Whether a client may use a dealer, in any suite.
    ///
    /// # Errors
    /// As [`Admission::check_suite`].
    fn check_dealer(&self, client: &Caller) -> Result<(), Refused>;

    /// Counts so many answers to a client, durably, before they are given. They stay counted, whatever becomes of them.
    ///
    /// # Errors
    /// [`Refused::Exhausted`] if the client has had its answers, [`Refused::Outside`] if it may never have so many at once;
    /// [`Refused::Store`] if they cannot be counted.
    fn count(&self, client: &Caller, answers: u32) -> Result<(), Refused>;
}

/// Who asks: the SHA-256 of its certificate in hexadecimal (empty over a link without certificates), and the common name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The fingerprint.
    pub fingerprint: String,
    /// The name.
    pub name: Option<String>,
}

impl Caller {
    /// Whoever is at the other end.
    pub fn of(channel: &Channel) -> Self {
        Self { fingerprint: channel.peer_fingerprint(), name: channel.peer_name().map(str::to_owned) }
    }
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The policy does not accept it; the text says what it does accept.
    #[error("{0}")]
    Outside(String),
    /// The client has had its answers.
    #[error(
        "this server gives a client {per_hour} answers in an hour at most, and you have had them: try again in {seconds} seconds"
    )]
    Exhausted {
        /// The limit.
        per_hour: u32,
        /// When so many answers are free again.
        seconds: u64,
    },
    /// Answers cannot be counted, so none is given.
    #[error(transparent)]
    Store(#[from] StoreError),
}
