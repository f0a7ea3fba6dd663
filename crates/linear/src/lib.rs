//! Private linear layers, paid offline: the client has a random `r`, the server has weights `W`, and both end up with a share
//! of `W r` modulo `2^l`.
//!
//! Convolutions, matrix products and elementwise products run on BFV ciphertexts whose coefficients are the elements
//! (Cheetah, Huang et al., USENIX Security 2022), with input and output channels packed together. Where it pays, results of many sums are
//! merged into one reply (BumbleBee, Lu et al., NDSS 2025).
//!
//! 1. Both parties derive a [`Plan`] per layer from public shapes ([`Plan::for_program`]).
//! 2. Once per session the client sends a public key ([`ClientKeys::send_public_key`], [`receive_public_key`]).
//! 3. Per layer the client sends its encrypted `r` ([`encrypt`]), the server replies ([`evaluate`]), the client opens
//!    ([`decrypt`]). If the client encrypts all layers before it decrypts the first, all layers take one round.
//!
//! Nothing depends on `r` being random: with linear layers online it is the client's share of an input.
//!
//! `client_share + server_share = W r mod 2^l`, off by [`Plan::error_bound`] units of the last place at most: 1, or 0 with
//! [`Resharing::Exact`].
//!
//! Threat model: both parties follow the protocol. The server learns nothing of `r` (ring-LWE); the client learns nothing
//! of `W` but its shape and width. Bytes: [`Plan::cost`], checked against the wire by the tests.

#![forbid(unsafe_code)]

mod axis;
mod blocks;
mod client;
mod correlation;
mod error;
pub mod kept;
mod layer;
mod mail;
mod memory;
mod packing;
mod plan;
mod server;
pub mod slots;
mod tiling;
mod triples;
mod weights;

pub use client::{ClientKeys, decrypt, encrypt, receive_public_key};
pub use error::{Error, Misuse, PeerMisbehaved};
pub use layer::{Conv2d, Diagonal, Layer, MatMul};
pub use memory::{ClientMemory, Keep, ServerMemory, Workspace};
pub use plan::Plan;
pub use privet_bfv::{INFERENCES_PER_KEY, Parameters, PublicKey, Resharing};
pub use server::evaluate;
pub use tiling::Saving;
pub use triples::{Product, Triples};
pub use weights::TransformedWeights;
