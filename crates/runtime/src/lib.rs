//! Runs jobs of any suite: the material store, sessions of client, server and dealer, reports, and memory budgets.
//!
//! Every suite has two jobs, and a scheduler sees only these: a preparation makes input-independent material, and an inference
//! uses one entry of it on one input. Between them lies the [`Store`], which hands each entry out once. [`session`] is what
//! client and server say to each other around the jobs, [`suite`] what a suite must bring. Nothing here names one.

#![forbid(unsafe_code)]

mod error;
pub mod forecast;
mod memory;
pub mod report;
pub mod security;
pub mod session;
pub mod store;
pub mod suite;

pub use error::{Error, PeerMisbehaved};
pub use memory::resident as resident_memory;
pub use report::{Counterpart, LayerCost, Observer, Phase, PhaseCost, Report, Silent};
pub use store::{MaterialId, Metadata, StateKey, Store, StoreEntry, StoreError, TemporaryEntry};

use privet_program::Program;

/// Checks that a program takes these inputs.
///
/// # Errors
/// [`Error::Misuse`] if `inputs` do not fit the program.
pub fn check_inputs(program: &Program, inputs: &[Vec<i64>]) -> Result<(), Error> {
    if inputs.len() != program.inputs().len() {
        return Err(Error::Misuse(format!("{} inputs for a program of {}", inputs.len(), program.inputs().len())));
    }
    for (input, x) in program.inputs().iter().zip(inputs) {
        let expected = program.value(input.value).len();
        if x.len() != expected {
            return Err(Error::Misuse(format!("input {} has {} elements, not {expected}", input.name, x.len())));
        }
    }
    Ok(())
}
