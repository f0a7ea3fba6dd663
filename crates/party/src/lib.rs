//! Runs a compiled program under a suite.
//!
//! Every suite has two jobs, and a scheduler sees only these: [`sharing::prepare`] makes input-independent material, and
//! [`sharing::infer`] uses one piece of it on one input. Between them lies the [`Store`], which hands each piece out once.
//! [`session`] is what client and server say to each other around the jobs.

#![forbid(unsafe_code)]

mod bodies;
mod error;
mod memory;
mod report;
pub mod session;
pub mod sharing;
mod store;

pub use error::{Error, PeerMisbehaved};
pub use memory::resident as resident_memory;
pub use report::{Counterpart, LayerCost, Observer, Phase, PhaseCost, Report, Silent};
pub use store::{Draft, MaterialId, Metadata, Piece, Store, StoreError};
