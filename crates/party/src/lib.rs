//! Runs a compiled program under a suite.
//!
//! Every suite has two jobs, and a scheduler sees only these: [`sharing::prepare`] makes input-independent material, and
//! [`sharing::infer`] uses one piece of it on one input. Between them lies the [`Store`], which hands each piece out once.
//! [`session`] is what client and server say to each other around the jobs. Suite [`stream`] has no material to store, and
//! sessions of its own.

#![forbid(unsafe_code)]

mod allowance;
pub mod authenticated;
mod bodies;
mod error;
pub mod limits;
mod memory;
mod ops;
mod plan;
pub mod policy;
mod report;
pub mod security;
pub mod session;
pub mod sharing;
mod store;
pub mod stream;
mod turns;

pub use error::{Error, PeerMisbehaved};
pub use memory::resident as resident_memory;
pub use plan::{Options, Plan, PlanRef};
pub use report::{Counterpart, LayerCost, Observer, Phase, PhaseCost, Report, Silent};
pub use store::{Draft, MaterialId, Metadata, Piece, Store, StoreError};

use privet_program::Program;

/// # Errors
/// [`Error::Misuse`] if `inputs` do not fit the program.
pub(crate) fn check_inputs(program: &Program, inputs: &[Vec<i64>]) -> Result<(), Error> {
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
