//! Function secret sharing with keys from a dealer: the online phase of suite `fss`.
//!
//! Client and server hold additive shares of values in Z_2^n. A gate adds a mask that only the dealer knows, opens the
//! sum, and evaluates a key on it: a short program, different for each party, whose two results are shares of the
//! function's value. Keys follow Orca (IEEE S&P 2024) and SIGMA (PETS 2024), with the half-tree point function of Guo and
//! others (EUROCRYPT 2023).
//!
//! - [`point`]: distributed comparisons, evaluated over batches.
//! - [`Gate`]: what a dealer needs of every gate; [`Relu`], [`Sign`], [`Truncate`], [`Extend`], [`ExtendBounded`],
//!   [`Select`], [`Lift`], [`Piecewise`] are the gates, and [`max_pool`], [`argmax()`] and [`leaves()`] are made of them.
//!
//! A key for one party is a 16-byte seed and a body that is read once, front to back, so it may come from a file or a
//! link. The client's body is the *words* of the gate, which both parties have; the server's has *corrections* behind
//! them. Gates that look up digits have no words, but for the tree of a table of more than 512 lines. Masks, roots
//! and the client's shares come from the seeds. What a party does with a key fails if the link or the key does.
//!
//! Threat model: both parties follow the protocol (semi-honest), and the dealer colludes with neither. A key must be used
//! once: two openings under one mask reveal the difference of the values.

#![forbid(unsafe_code)]

mod argmax;
mod carry;
mod compared;
mod digits;
mod error;
mod extend;
mod gate;
mod leaves;
mod lift;
mod max;
mod party;
mod piecewise;
pub mod point;
mod relu;
mod ring_products;
mod secrets;
mod select;
mod sign;
mod source;
mod streams;
mod truncate;

pub use argmax::argmax;
pub use carry::Carried;
pub use error::Error;
pub use extend::{Extend, ExtendBounded};
pub use gate::{Gate, KeyBytes, Seeds};
pub use leaves::leaves;
pub use lift::Lift;
pub use max::max_pool;
pub use party::Party;
pub use piecewise::{Above, Piecewise};
pub use privet_channel::Role;
pub use relu::Relu;
pub use select::Select;
pub use sign::Sign;
pub use source::{KeyFile, Region, Source};
pub use truncate::Truncate;
