//! What `make audit` runs against the other crates. No part of a service.
//!
//! - [`decoders`]: every function that reads bytes from a peer, under one signature, for fuzzing and for the kept corpus.
//! - [`kernels`]: code that handles secrets, once for the statistical test of its time ([`welch`]; `timing`) and once for
//!   valgrind, which follows undefined bytes to branches and addresses ([`memcheck`]; `branches`).
//!
//! `docs/how-to/audit.md` says what each part would catch, and what none of them would.

pub mod decoders;
pub mod kernels;
pub mod memcheck;
pub mod welch;
