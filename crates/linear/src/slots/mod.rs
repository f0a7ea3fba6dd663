//! Private linear layers modulo a prime, in slots: the client has a uniform `r`, the server has weights `W`, and both get a share of
//! `W r` modulo `p`, exactly.
//!
//! In the manner of HELiKs (Balla and Koushanfar, CCS 2023): inputs and outputs lie densely in slots, fresh ciphertexts are
//! multiplied by weights first, and sums are rotated on the way to the result, by few different steps. Ours are blocks of slots
//! whose borders are weights of zero (so padding takes no slots), copies of small inputs whose partial results the parties add up
//! themselves, and flooded replies.
//!
//! 1. Both parties derive a [`Plan`] per layer ([`Plan::for_program`]).
//! 2. Once per session the client sends keys ([`ClientKeys::send`], [`ServerKeys::receive`]).
//! 3. Per layer [`encrypt`], [`evaluate`], [`decrypt`], as in [the crate](crate).

mod client;
mod geometry;
mod keys;
mod packing;
mod plan;
mod server;
mod steps;
mod weights;

pub use client::{decrypt, encrypt};
pub use keys::{ClientKeys, ServerKeys};
pub use plan::Plan;
pub use privet_bfv::slots::Parameters;
pub use server::evaluate;
pub use weights::Weights;
