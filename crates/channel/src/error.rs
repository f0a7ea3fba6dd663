//! What can go wrong on a channel, in three families: the peer, the caller, the world.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

use crate::abort::AbortReason;

/// Any failure of this crate.
///
/// After an error other than [`Error::Misuse`] the channel is no longer in step with the peer: every later call gives
/// the same error again; only [`crate::Channel::abort`] still does something.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// What came over the wire is wrong, or the peer gave up.
    #[error("the peer broke the protocol or gave up: {0}")]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// This side was used wrongly.
    #[error("{0}")]
    Misuse(#[from] Misuse),
    /// The network or the operating system failed.
    #[error("{0}")]
    Io(#[from] Io),
}

/// What the peer did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// The next message has another length than both sides should know.
    #[error(
        "a message of {expected} bytes was due, the peer announces one of {actual}; do both sides run the same version and program?"
    )]
    WrongLength { expected: usize, actual: usize },
    /// A message of variable length is longer than this side takes.
    #[error("a message of at most {limit} bytes was due, the peer announces one of {actual}")]
    TooLong { limit: usize, actual: usize },
    /// The first byte of a frame is no known kind.
    #[error("a frame of unknown kind {kind:#04x} came; do both sides run the same version?")]
    UnknownFrame { kind: u8 },
    /// An abort frame of impossible length.
    #[error("an abort frame of {length} bytes came, it must have 1 to 513")]
    MalformedAbort { length: usize },
    /// The peer ended the conversation and said why, in a text, too, that may be empty and has no control characters.
    #[error("the peer aborted because {reason}{}", quoted(.text))]
    Aborted { reason: AbortReason, text: String },
    /// The peer sent more than this side can hold before it asked for any of it.
    #[error("the peer sent over {limit} bytes that this side has not asked for yet")]
    Flooded { limit: usize },
    /// The peer's certificate was not accepted.
    #[error("the peer's certificate is refused: {problem}")]
    Certificate { problem: String },
    /// The peer did not accept this side; its TLS library says why.
    #[error("the peer refused the connection (TLS alert {alert}): {hint}")]
    Refused { alert: String, hint: &'static str },
    /// The peer does not speak TLS as this crate requires it.
    #[error("{problem} ({detail})")]
    Tls { problem: &'static str, detail: String },
}

/// What the caller did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A message does not fit a frame.
    #[error("a message of {bytes} bytes is too long, the most is {limit}: send it in parts")]
    MessageTooLong { bytes: usize, limit: usize },
    /// The channel was used after [`crate::Channel::abort`].
    #[error("this side aborted the conversation: open a new channel")]
    Closed,
    /// A PEM text given by the caller cannot be used.
    #[error("the {what} cannot be used: {problem}")]
    Pem { what: &'static str, problem: String },
    /// A text or a pair of numbers that is no link.
    #[error("{text:?} is not a link: {problem}; give lan, wan or RTT,BANDWIDTH such as 20ms,100Mbit")]
    Link { text: String, problem: &'static str },
    /// A link in memory was to be shaped.
    #[error("a link in memory cannot be slowed down: connect the parties over a network, or on this machine by TLS")]
    InMemory,
    /// The server name given is neither a host name nor an address.
    #[error("{name:?} is not a host name or an IP address that a certificate could be for")]
    ServerName { name: String },
}

/// What the network or the operating system did.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Io {
    /// The peer closed the link, or it broke.
    #[error("the link to the peer is closed: the peer stopped or the network failed; its log may say why")]
    Disconnected,
    /// A wait took too long.
    #[error(
        "waited {seconds:.2} s for {waiting_for}; is the peer still running and the network up? (a longer timeout can be set)"
    )]
    TimedOut { seconds: f64, waiting_for: &'static str },
    /// Nothing listens where this side wanted to connect to.
    #[error("nothing listens at {host}:{port}: start the server first, or check the host and the port")]
    ConnectionRefused { host: String, port: u16 },
    /// A host name could not be resolved.
    #[error("the host name {host:?} cannot be resolved ({problem}): check its spelling")]
    UnknownHost { host: String, problem: String },
    /// A host cannot be reached.
    #[error("{host}:{port} cannot be reached: {problem}; check the host, the port and any firewall")]
    Unreachable { host: String, port: u16, problem: String },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {problem}; is another server running there?")]
    Bind { address: String, problem: String },
    /// Any other failure of the operating system.
    #[error("the system failed at {doing}: {problem}")]
    System { doing: &'static str, problem: String },
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text:?}") }
}
