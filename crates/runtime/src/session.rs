//! What client and server say to each other around the jobs.
//!
//! Over one channel: both greet with a magic word and a version; the client then asks, one request after the other, for
//! a program's public half, for a preparation, or for an inference on material that both hold. A refused or failed
//! request ends the session: the side that finds the fault says why in an abort frame, and material that the failed job
//! touched is already spent. Whatever is said can fail with [`crate::Error::Channel`].

mod admission;
mod budget;
mod catalog;
mod client;
mod dealer;
mod gate;
mod hidden;
mod kept;
pub mod messages;
mod refusal;
mod requests;
mod sequence;
mod server;

pub use admission::{Admission, Caller, Refused};
pub use budget::Budget;
pub use catalog::{Catalog, Served};
pub use client::Client;
pub use dealer::{Connect, Deal, Dealer, Dealt};
pub use gate::{Gate, Intent};
pub use hidden::HiddenWeights;
pub use kept::KeptWeights;
pub use server::{Event, Server};

/// Version of everything that crosses the wire; peers of different versions refuse each other. It was 1 in Privet 0.2, whose
/// oblivious transfers are hashed in another way: material made with it would give wrong results without a word. Before 5, polynomials of
/// linear layers were laid out in another way; before 6, products of a dealer had words of 64 bits; before 7, channels had no blocks of their
/// own; before 8, a bit below the blocks of a comparison had one to itself; before 9, comparisons had no lanes, and what follows them was sent
/// in the order of its elements.
pub const VERSION: u16 = 9;
