//! The Paillier cryptosystem.
mod arch;
mod ciphertext;
mod error;
mod factor;
mod integer;
mod keys;
mod lanes;
mod linear;
mod modulus;
mod noise;
mod packing;
mod plaintext;
mod pool;
mod power;
mod primes;
mod private;
#[cfg(test)]
mod tests;

pub use ciphertext::Ciphertexts;
pub use error::{Error, Misuse, PeerMisbehaved};
pub use keys::{KeySize, PublicKey};
pub use linear::{Plan, Weights, Windows};
pub use noise::{Noise, NoiseTable};
pub use packing::Packing;
pub use plaintext::Plaintext;
pub use pool::NoisePool;
pub use private::PrivateKey;
