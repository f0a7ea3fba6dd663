//! Linear layers of two parties.

mod hostile;
mod layers;
mod program;
mod slots;
mod support;
mod triples;
mod workspace;
