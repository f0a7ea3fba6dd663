//! Gates between a dealer and two parties.

mod functions;
mod gates;
mod privacy;
mod support;
