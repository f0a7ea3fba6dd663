//! The Paillier cryptosystem (EUROCRYPT 1999), made for the linear layers of neural networks: suite `stream` after
//! PP-Stream.
//!
//! The owner of a [`PrivateKey`] encrypts a vector of signed integers and decrypts results. Whoever has the
//! [`PublicKey`] multiplies encrypted vectors by matrices of signed integers ([`Ciphertexts::dot`]), adds numbers,
//! makes results independent of how they were computed ([`Ciphertexts::randomize`]) and returns them. [`Packing`] puts
//! several samples into one plaintext. There is no protocol in this crate; `docs/reference/protocols/stream.md` has the
//! mathematics, proofs and costs.
//!
//! Everything is done eight numbers at a time, side by side in the lanes of a vector (`arch`), so all calls take
//! vectors; one ciphertext takes as long as eight. Operations on the private key and on plaintexts run in constant
//! time, but for the search for primes. Linear maps run in a time that depends on shapes alone (`linear` says what
//! else their weights touch).

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
mod power;
mod primes;
mod private;
mod proof;
#[cfg(test)]
mod tests;

pub use ciphertext::Ciphertexts;
pub use error::{Error, Misuse, PeerMisbehaved};
pub use keys::{KeySize, PublicKey};
pub use linear::{Plan, Weights, Windows};
pub use noise::{Noise, NoiseTable, TABLE_BITS, TABLE_DRAWS};
pub use packing::Packing;
pub use plaintext::Plaintext;
pub use private::PrivateKey;
