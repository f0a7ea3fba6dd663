//! Suite `fss`: function secret sharing with keys from a dealer (Orca, SIGMA).
//!
//! Threat model: semi-honest parties and a dealer that colludes with neither. See `docs/reference/protocols/fss.md`.

mod config;
mod suite;

pub use config::Config;
pub use suite::Fss;
