//! Two-party protocols on additive and Boolean shares: the online phase of suite `gmw`.
//!
//! Client and server hold shares of values in Z_2^k and of bits; each protocol here turns shares of its input into
//! fresh-looking shares of its output with the correlations of a [`privet_ot::Stock`], made beforehand. They follow
//! SecONNds (comparison, ReLU, truncation, pooling) with fewer bits where a bit is already privately held; `cost` states
//! the correlations, bytes and rounds of each. A protocol fails if the link does, or if the stock lacks its correlations.
//!
//! Threat model: both parties follow the protocol (semi-honest); every message is masked by correlations that are used
//! once, so what a party sees is uniform and independent of the other's secrets.

#![forbid(unsafe_code)]

mod and;
mod argmax;
mod avgpool;
mod compare;
pub mod cost;
mod eights;
mod error;
mod extend;
mod field;
mod lanes;
mod linear;
mod maxpool;
mod multiply;
mod mux;
mod party;
mod piecewise;
mod product;
mod relu;
mod rows;
mod step;
mod tables;
mod truncate;

pub use and::{and, and_with_pairs, private_and};
pub use argmax::argmax;
pub use avgpool::sum_windows;
pub use compare::{Rounds, carry};
pub use error::Error;
pub use extend::{Sign, extend};
pub use field::{from_field, open_to_server_in_field, to_field};
pub use linear::{open, open_to_client, open_to_server};
pub use maxpool::max_pool;
pub use multiply::{multiply, scale, square};
pub use mux::{mux, mux_all};
pub use party::Party;
pub use piecewise::{Piecewise, piecewise};
pub use product::bit_product;
pub use relu::{is_non_negative, relu};
pub use rows::multiply_rows;
pub use step::{leaves, step};
pub use truncate::{Truncation, drop_low_bits, truncate_exactly, truncate_guarded};
