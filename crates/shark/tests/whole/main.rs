//! Runs of the malicious mode between a dealer and two parties.

mod gates;
mod layers;
mod support;
