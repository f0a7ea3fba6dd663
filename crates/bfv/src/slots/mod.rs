//! BFV with a prime plaintext modulus and batching: a plaintext is a vector of `N` slots modulo `p`, in two rows of `N / 2`, and
//! the server can rotate rows and swap them with keys of the client (Gentry, Halevi and Smart 2012; Balla and Koushanfar 2023
//! for the order of work: multiply fresh ciphertexts first, rotate sums).
//!
//! The client encrypts slots ([`SecretKey::encrypt`]) and gives rotation keys ([`SecretKey::rotation_key`]). The server adds up
//! products with weights ([`Sum`]), rotates sums ([`Rotations`]) and replies; the shares that come of it add up to the
//! result modulo `p` exactly, always.
//!
//! Threat model and argument as in [the crate](crate); replies are flooded.

mod decode;
mod key_switch;
mod keys;
mod memory;
mod noise;
mod order;
mod parameters;
mod product;

#[cfg(test)]
mod tests;

pub use key_switch::{Rotation, Rotations};
pub use keys::{PublicKey, SecretKey};
pub use parameters::Parameters;
pub use product::{Ciphertext, Sum, Weights};
