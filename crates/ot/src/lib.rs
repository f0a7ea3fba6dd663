//! Oblivious transfer, and the stock of correlations that the online protocols consume.
//!
//! | Module | What | Paper |
//! |---|---|---|
//! | `base` | 128 base OTs over Ristretto | Masny and Rindal, "Endemic Oblivious Transfer" (CCS 2019) |
//! | `kept` | random OTs that a session leaves for the next, in place of base OTs | Beaver, "Correlated pseudorandomness" (STOC 1996) |
//! | `tree` | puncturable PRF for groups of base OTs | Goldreich, Goldwasser and Micali (1986), as in SoftSpokenOT |
//! | `vole` and `softspoken` | OT extension from small-field VOLE | Roy, "SoftSpokenOT" (CRYPTO 2022) |
//! | `silent` | OT extension from LPN with regular noise | Yang et al., "Ferret" (CCS 2020); Guo et al., "Half-Tree" (EUROCRYPT 2023) |
//! | `random` | random OTs from correlated ones | Ishai, Kilian, Nissim and Petrank (CRYPTO 2003) |
//! | `tables` | 1-of-8 and 1-of-16 random OTs from correlated ones | Kolesnikov and Kumaresan (CRYPTO 2013) |
//! | `one_hots` | random one-hot vectors from products | |
//! | `correlations` and `stock` | private ANDs, bit triples, products | Asharov, Lindell, Schneider and Zohner (CCS 2013) |
//!
//! Threat model: both parties follow the protocol (semi-honest); each sees all of its own messages and randomness.
//! A peer that deviates may learn secrets of the correlations it is party to, but can cause neither a panic nor an
//! allocation by a length it chose. [`cost`] gives bytes, messages and rounds exactly.
#![forbid(unsafe_code)]

mod base;
mod columns;
mod correlated;
mod correlations;
pub mod cost;
pub mod dealer;
mod demand;
mod error;
mod extension;
mod kept;
mod material;
mod one_hots;
mod packed;
mod party;
mod random;
mod schedule;
pub mod security;
mod silent;
mod softspoken;
mod stock;
mod tables;
mod tree;
mod vole;

pub use correlated::{CotReceiver, CotSender};
pub use correlations::{PairedTriples, PrivateAnds, ProductsReceived, ProductsSent, Triples};
pub use demand::{Demand, ProductCounts, TableCounts};
pub use error::{Error, Kind};
pub use extension::Extension;
pub use kept::{BaseOts, Kept};
pub use material::STOCK_HEADER_BYTES;
pub use one_hots::{OneHotCounts, OneHots};
pub use packed::{Packed, PackedRef, Room, Width};
pub use party::OtParty;
pub use privet_channel::Role;
pub use random::{BitsReceived, BitsSent, PairsReceived, PairsSent};
pub use schedule::slots;
pub use silent::{SilentReceiver, SilentSender, Size};
pub use softspoken::{FieldBits, SoftSpokenReceiver, SoftSpokenSender};
pub use stock::{Claim, Stock};
pub use tables::{Shape, TablesReceived, TablesSent, shift};
