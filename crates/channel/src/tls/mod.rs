//! Channels between two machines: TLS 1.3 with certificates on both sides.
//!
//! Each side proves who it is with an [`Identity`] and accepts peers whose certificate was issued by an authority in
//! its [`Trust`]. There is no other mode: no anonymous clients, no older TLS, no resumption, no early data. The client
//! also checks that the server's certificate is for the name it wanted. The application protocol (ALPN) is
//! `privet/1`, so a certificate of the same authority used by another service gets nowhere.
//!
//! Threat model: an active network attacker, and peers without a certificate of the authority. Sessions have forward
//! secrecy. Keys are agreed by elliptic curves alone: traffic recorded now is not safe from a quantum computer later.

mod authority;
mod config;
mod connect;
mod credentials;
mod listener;
mod problem;
mod session;
mod subject;

pub use connect::connect;
pub use credentials::{Identity, Trust, authorities};
pub use listener::{Listener, Pending};
