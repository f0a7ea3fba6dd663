//! The BFV cryptosystem (Brakerski 2012; Fan and Vercauteren 2012) with plaintext ring Z_2^l, as far as a private linear
//! layer needs it: one ciphertext-by-weights product deep, no relinearisation.
//!
//! The client encrypts ring elements as coefficients of a polynomial ([`SecretKey::encrypt`]); the server multiplies by
//! polynomials of its weights and adds up ([`Sum`]), and replies with shares: the client's ([`SecretKey::open`]) and its own
//! ([`Sum::reply`]) sum to the product modulo `2^l`, exactly or up to one unit in the last place ([`Resharing`]). Sums whose
//! results lie far apart can be merged into one first ([`Merge`]).
//!
//! Threat model: both parties follow the protocol and try to learn more. The server sees ciphertexts under the client's
//! key. The client sees replies that are fresh ring-LWE samples under a secret of the server, plus uniform noise:
//! neither its own randomness divided out nor the noise left in the phase tells it about the weights.
//! `docs/reference/protocols/bfv.md` has the argument and the bound on the error.

mod arch;
mod automorphism;
mod encode;
mod error;
mod flood;
mod keys;
mod memory;
mod merge;
mod noise;
mod ntt;
mod panel;
mod parameters;
mod polynomial;
mod product;
mod sample;
pub mod slots;
mod wire;
mod zq;

#[cfg(test)]
mod tests;

pub use arch::Values;
pub use error::{Error, Misuse, PeerMisbehaved};
pub use keys::{INFERENCES_PER_KEY, PublicKey, SecretKey};
pub use merge::Merge;
pub use panel::{Blocks, Group, Panel};
pub use parameters::{Load, Parameters, Resharing};
pub use product::{Ciphertext, Columns, Residues, Sum, Weights};
