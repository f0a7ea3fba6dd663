//! What can go wrong on a channel, in three families: the peer, the caller, the world.

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
    WrongLength {
        /// Payload bytes this side waits for.
        expected: usize,
        /// Payload bytes the frame header announces.
        actual: usize,
    },
    /// A message of variable length is longer than this side takes.
    #[error("a message of at most {limit} bytes was due, the peer announces one of {actual}")]
    TooLong {
        /// The most payload bytes this side takes.
        limit: usize,
        /// Payload bytes the frame header announces.
        actual: usize,
    },
    /// The first byte of a frame is no known kind.
    #[error("a frame of unknown kind {kind:#04x} came; do both sides run the same version?")]
    UnknownFrame {
        /// The byte found.
        kind: u8,
    },
    /// An abort frame of impossible length.
    #[error("an abort frame of {length} bytes came, it must have 1 to 513")]
    MalformedAbort {
        /// Payload bytes the frame header announces.
        length: usize,
    },
    /// The peer ended the conversation and said why.
    #[error("the peer aborted because {reason}{}", quoted(.text))]
    Aborted {
        /// The reason it gave.
        reason: AbortReason,
        /// Free text it gave, without control characters; may be empty.
        text: String,
    },
    /// The peer sent more than this side can hold before it asked for any of it.
    #[error("the peer sent over {limit} bytes that this side has not asked for yet")]
    Flooded {
        /// The most bytes held.
        limit: usize,
    },
    /// The peer's certificate was not accepted.
    #[error("the peer's certificate is refused: {problem}")]
    Certificate {
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// The peer did not accept this side; its TLS library says why.
    #[error("the peer refused the connection (TLS alert {alert}): {hint}")]
    Refused {
        /// The alert's name in RFC 8446.
        alert: String,
        /// What it most likely means and what to do.
        hint: &'static str,
    },
    /// The peer does not speak TLS as this crate requires it.
    #[error("{problem} ({detail})")]
    Tls {
        /// What is wrong and what to do.
        problem: &'static str,
        /// What the TLS library said.
        detail: String,
    },
}

/// What the caller did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A message does not fit a frame.
    #[error("a message of {bytes} bytes is too long, the most is {limit}: send it in parts")]
    MessageTooLong {
        /// Bytes given.
        bytes: usize,
        /// The most a frame holds.
        limit: usize,
    },
    /// The channel was used after [`crate::Channel::abort`].
    #[error("this side aborted the conversation: open a new channel")]
    Closed,
    /// A PEM text given by the caller cannot be used.
    #[error("the {what} cannot be used: {problem}")]
    Pem {
        /// Which of the texts.
        what: &'static str,
        /// Why, and what to do.
        problem: String,
    },
    /// A text or a pair of numbers that is no link.
    #[error("{text:?} is not a link: {problem}; give lan, wan or RTT,BANDWIDTH such as 20ms,100Mbit")]
    Link {
        /// What was given.
        text: String,
        /// Why not.
        problem: &'static str,
    },
    /// A link in memory was to be shaped.
    #[error("a link in memory cannot be slowed down: connect the parties over a network, or on this machine by TLS")]
    InMemory,
    /// The server name given is neither a host name nor an address.
    #[error("{name:?} is not a host name or an IP address that a certificate could be for")]
    ServerName {
        /// The name given.
        name: String,
    },
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
    TimedOut {
        /// How long this side was ready to wait, in seconds.
        seconds: f64,
        /// What it waited for.
        waiting_for: &'static str,
    },
    /// Nothing listens where this side wanted to connect to.
    #[error("nothing listens at {host}:{port}: start the server first, or check the host and the port")]
    ConnectionRefused {
        /// The host given.
        host: String,
        /// The port given.
        port: u16,
    },
    /// A host name could not be resolved.
    #[error("the host name {host:?} cannot be resolved ({problem}): check its spelling")]
    UnknownHost {
        /// The name given.
        host: String,
        /// What the resolver said.
        problem: String,
    },
    /// A host cannot be reached.
    #[error("{host}:{port} cannot be reached: {problem}; check the host, the port and any firewall")]
    Unreachable {
        /// The host given.
        host: String,
        /// The port given.
        port: u16,
        /// What the system said.
        problem: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {problem}; is another server running there?")]
    Bind {
        /// The address given.
        address: String,
        /// What the system said.
        problem: String,
    },
    /// Any other failure of the operating system.
    #[error("the system failed at {doing}: {problem}")]
    System {
        /// What this side did.
        doing: &'static str,
        /// What the system said.
        problem: String,
    },
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text:?}") }
}
