//! Gates between a dealer and two parties.

mod gates;
mod privacy;
mod support;
