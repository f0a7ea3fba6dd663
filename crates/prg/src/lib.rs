//! Randomness and bit matrices: what the protocols below the ring are made of.
//!
//! - [`Prg`] and [`KeyStream`]: AES-128 in counter mode (NIST SP 800-38A), 64 blocks to a call.
//! - [`hash`]: a correlation-robust hash of blocks from AES under public keys.
//! - [`transpose`] and [`subset_sums`]: bit-matrix transposes and sums of rows.
//! - [`ggm`] and [`sparse`]: trees whose children add up to their parent, and sparse random sums, for silent OT.
//! - [`Wiped`]: vectors that are zero before their memory is given back.
//! - [`paths`]: single paths through many trees, corrected on the way, for point functions; [`tags`] adds up values there.
//!
//! Everything runs in constant time (the words of [`sparse`] are public), and has accelerated code that is chosen at run
//! time beside a portable form; the environment variable `PRIVET_PORTABLE=1` forces the latter. Portable AES is the `aes`
//! crate, which itself picks AES-NI or a bit-sliced form.

mod arch;
mod counter;
mod dispatch;
mod generator;
pub mod ggm;
pub mod hash;
pub mod paths;
mod seed;
pub mod sparse;
mod sums;
pub mod tags;
pub mod transpose;
mod tree_hash;
mod wiped;

pub use counter::KeyStream;
pub use dispatch::{choose, is_portable_forced};
pub use generator::Prg;
pub use seed::Seed;
pub use sums::subset_sums;
pub use tree_hash::{KEYS_A_PART, TreeHash, TreeHashes};
pub use wiped::{Wiped, wipe};

/// 16 bytes, read as a little-endian number: bit `j` is bit `j % 8` of byte `j / 8`.
pub type Block = u128;

/// What can go wrong when drawing randomness.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system gave no entropy.
    #[error("the operating system gave no entropy: {0}")]
    Io(#[from] getrandom::Error),
}
