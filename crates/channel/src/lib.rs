//! The link between two parties: framed messages over TLS 1.3 or memory, counted.
//!
//! Every protocol of Privet talks through a [`Channel`]: it sends and receives whole messages whose lengths both sides
//! know beforehand, so a message of any other length is an error before anything is allocated. A channel comes from
//! [`pair`] (two parties in one process) or from [`tls::connect`] and [`tls::Listener`] (two machines).
//!
//! Guarantees:
//! * no deadlock: both sides may send any amount before either receives;
//! * every wait is bounded by the timeout of the channel;
//! * bytes from the peer never panic and never allocate by a length that was not checked;
//! * bytes, messages and rounds are counted exactly ([`Cost`]), independent of TLS.
//!
//! A channel can be shaped to a slower [`Link`] than it has, to find out what a protocol costs there.
//!
//! Threat model: the network is hostile (it may read, alter, delay or drop anything); TLS reduces it to one that can
//! only delay or cut the link. The peer is authenticated by its certificate; what it sends is checked for form here and
//! for meaning by the protocols above. Lengths and timing of messages are visible to the network.
#![forbid(unsafe_code)]

mod abort;
mod channel;
mod cost;
mod deadline;
mod error;
mod frame;
mod inbound;
mod intercept;
mod link;
mod memory;
mod peer;
pub mod record;
pub mod replay;
mod role;
mod shape;
mod socket;
mod soon;
pub mod tamper;
pub mod tls;
mod transport;

pub use abort::AbortReason;
pub use channel::{Channel, DEFAULT_TIMEOUT, MOST_UNREAD};
pub use cost::Cost;
pub use error::{Error, Io, Misuse, PeerMisbehaved};
pub use frame::HEADER_BYTES;
pub use link::Link;
pub use memory::pair;
pub use peer::Fingerprint;
pub use role::Role;
pub use socket::Stopper;
