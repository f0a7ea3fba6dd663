//! Suite `gmw`: Boolean sharing between two parties, with linear layers under BFV or from a dealer (SecONNds).
//!
//! Threat model: semi-honest parties; a dealer, if there is one, colludes with neither. See `docs/reference/protocols/gmw.md`.

mod config;
mod suite;

pub use config::{Config, Rounds};
pub use suite::Gmw;
