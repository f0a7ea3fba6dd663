//! Runs of the malicious mode between a dealer and two parties.

mod cheating;
mod gates;
mod layers;
mod network;
mod privacy;
mod repeats;
mod support;
mod tampering;
