//! Suite `stream` (PP-Stream): linear operations at the model provider on encrypted tensors, all others at the data
//! provider on permuted ones.
//!
//! The data provider (the client) has a Paillier key and the input, the model provider (the server) the weights. The
//! client sends its input encrypted. Wherever the program does something that is not linear, the server re-randomises
//! the elements, permutes them afresh and sends them; the client decrypts, computes, encrypts anew and returns, and the
//! server undoes the permutation. The last exchange is not permuted and nothing comes back. Results are exactly those
//! of the fixed-point reference.
//!
//! Threat model: both follow the protocol. The server learns nothing of data. **The client learns the values of every
//! tensor that comes to it up to their order**, and after it the whole output; docs/reference/protocols/stream.md says what that
//! may tell of the weights. An exchange is a message each way (one round at each party), of
//! [`privet_paillier::KeySize::ciphertext_bytes`] for every element. What draws a key, masks or an order can fail with
//! [`crate::Error::Randomness`], what speaks with the peer if the link fails or the peer misbehaves.

mod arrangement;
mod bfv;
mod cipher;
mod config;
mod elements;
mod exchange;
mod forecast;
mod infer;
mod linked;
mod network;
pub(crate) mod ops;
mod packed;
mod parts;
mod plan;
mod rows;
mod security;
mod session;
mod shuffle;
mod stage;
mod transport;

#[cfg(test)]
mod tests;

pub use bfv::{DataMaterial, ModelMaterial, Ordered};
pub use cipher::Cipher;
pub use config::Config;
pub use forecast::Forecast;
pub use infer::{DataProvider, ModelProvider};
pub use plan::Plan;
pub use privet_paillier::{KeySize, PrivateKey};
pub use session::{Client, Event, Server};
pub use stage::{Hiding, Randomizer, Round, Slice, Stages};
