//! The suites that run a compiled program on material made ahead of time: `gmw` and `fss`, the latter also against parties
//! that deviate. Suite [`stream`] has no material to store, and sessions of its own.
//!
//! Each brings what [`privet_runtime::suite`] asks for, and [`registry`] lists them. What a server accepts of them is its
//! [`policy`].

#![forbid(unsafe_code)]

mod allowance;
mod bodies;
mod ckks;
pub mod config;
pub mod fss;
pub mod gmw;
pub mod limits;
pub mod malicious;
mod ops;
pub mod policy;
pub mod registry;
pub mod sharing;
pub mod stream;
mod turns;

pub use privet_runtime::{
    Counterpart, Error, LayerCost, MaterialId, Metadata, Observer, PeerMisbehaved, Phase, PhaseCost, Report, Silent,
    StateKey, Store, StoreEntry, StoreError, forecast, report, resident_memory, security, session, store, suite,
};

pub(crate) use privet_runtime::check_inputs;
