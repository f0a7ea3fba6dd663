//! The suite over BFV: everything that is encrypted is paid before there is an input.
//!
//! A value of the server's is the sum of a *mask* that the client knows from the preparation on and of what the server
//! holds. A linear layer takes the value `x - r` to `W (x - r) + s`, where the parties made `s` and the client's next mask
//! `W r - s` under BFV ([`privet_linear`]); all other linear operations work on both parts alone. For an exchange both
//! parts are brought into a random order of the server's choice by a [shuffle](super::shuffle), and the client's part of
//! the shuffled mask opens what the server sends. What the client returns is masked in that order and shuffled back, so
//! that the client knows the mask in the tensor's own order, too.
//!
//! Offline: keys, oblivious transfers, products of masks. Online: a ring element for each value, each way.

mod client;
mod layout;
mod material;
mod server;

pub use client::DataProvider;
pub(super) use layout::Layout;
pub use material::{DataMaterial, ModelMaterial, Ordered};
pub use server::ModelProvider;
pub(super) use server::Transformed;
