//! Matrix products whose weights the client keeps, encrypted under the server's key, and multiplies by its own random `r`.
//!
//! Li and others (Nimbus, NeurIPS 2024) send encrypted weights once and let the client multiply. Here that is paid offline, on `r`, and rows lie in
//! ciphertexts as [`Blocks`] says.
//!
//! 1. Both parties derive a [`Plan`] for each product, or for several of one input, from public shapes ([`Plan::for_program`]).
//! 2. Once, the server sends its public key and encrypted weights ([`ServerKeys::encrypt`]); the client keeps them.
//! 3. Each time the client multiplies and replies ([`multiply`]), and the server opens ([`ServerKeys::open`]).
//!
//! Shares add up to `W r 2^guard_bits`, off by one unit at most, as in [`crate::evaluate`] with the parties' parts exchanged.
//!
//! Threat model: both parties follow the protocol. The client learns nothing of `W`: it has ring-LWE samples under the server's key and
//! never sees anything opened. The server learns nothing of `r`: replies carry a fresh encryption of zero by the client, and what it opens
//! is under a uniform mask, noise included (`docs/reference/protocols/linear.md`). Bytes: [`Plan::cost`].

mod client;
mod plan;
mod server;

pub use client::multiply;
pub use plan::{Plan, Product};
pub use privet_bfv::Blocks;
pub use server::ServerKeys;
