//! The Paillier cryptosystem.
mod arch;
mod ciphertext;
mod error;
mod factor;
mod integer;
mod keys;
mod lanes;
mod modulus;
mod noise;
mod packing;
mod plaintext;
mod power;
mod primes;
mod private;
#[cfg(test)]
mod tests;

pub use ciphertext::Ciphertexts;
pub use error::{Error, Misuse, PeerMisbehaved};
pub use keys::{KeySize, PublicKey};
pub use noise::{Noise, NoiseTable};
pub use packing::Packing;
pub use plaintext::Plaintext;
pub use private::PrivateKey;
