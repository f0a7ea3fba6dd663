//! Suite `fss` against a party that does anything: authenticated values, gates with dealt keys, a check before the output.
//!
//! Client, server and an honest dealer; one of client and server may deviate from the protocol at will. It learns no more
//! than in an honest run, and the other party ends with the right output or none. After SHARK (Gupta, Chandran, Gupta, Katz
//! and Sharma, IEEE S&P 2025), with the codes of SPDZ2k (Cramer, Damgard, Escudero, Scholl and Xing, CRYPTO 2018).
//!
//! - [`Values`] are authenticated vectors: shares of `x` and of `Delta x` modulo 2^128. [`Party::mask`] opens one as a [`Masked`].
//! - [`Sign`], [`Relu`], [`Truncate`], [`Extend`], [`mod@select`] and [`Layer`] turn masked values into authenticated ones;
//!   [`Tournament`] finds maxima.
//! - [`Party::input`] and [`Party::reveal`] are the two ends of a run. `reveal` holds the checks.
//! - [`Dealer`] has a function for each step of a [`Party`], and both call them in the same order.
//! - [`setup`]: the keys and the weights, once for a client, a server and a program.
//!
//! A party's half of a run's material is a seed and a body that is read once, front to back. Use neither twice. What a
//! party does with it fails if the link or the key does; dealing fails if a body cannot be written.
//!
//! The argument for security, with its bounds, is in `docs/reference/protocols/shark.md`.

#![forbid(unsafe_code)]

mod bits;
mod check;
mod compare;
pub mod dealer;
pub mod ends;
mod error;
mod gate;
mod key;
mod layer;
mod masked;
mod max;
mod party;
mod relu;
pub mod select;
pub mod setup;
pub mod sign;
mod streams;
mod transcript;
mod truncate;
mod values;

pub use bits::TaggedBits;
pub use check::{CHECK_BYTES, Turns};
pub use dealer::Dealer;
pub use error::{Error, PeerMisbehaved};
pub use gate::Gate;
pub use key::{Key, Keys};
pub use layer::Layer;
pub use masked::Masked;
pub use max::Tournament;
pub use party::Party;
pub use relu::Relu;
pub use setup::{Hiding, Setup, Weights};
pub use sign::{Choice, Sign};
pub use truncate::{Extend, Truncate};
pub use values::Values;
