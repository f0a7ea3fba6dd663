//! What each party does on its own share, whatever the operator.

use std::borrow::Cow;

use privet_ring::{Field, Modulus};

use super::super::memory::PER_INDEX;
use super::super::party::Party;
use super::super::state::State;
use super::Protocol;
use crate::Error;
use crate::ops::{At, InRing, Local};

impl Protocol for At<'_, dyn Local<InRing> + '_> {
    fn working_memory(&self, _field: Option<Field>) -> u64 {
        match self.operation.indices() {
            0 => 8 * self.node.output().len() as u64,
            indices => indices as u64 * PER_INDEX,
        }
    }

    fn run(&self, state: &mut State<'_>, _party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let ring = Modulus::new(state.output_ring(self.node).bits().max(state.input(self.node).1.bits()));
        let inputs: Vec<Cow<'_, [u64]>> = self.node.operation.inputs.iter().map(|&id| state.raised(id, ring)).collect();
        let inputs: Vec<&[u64]> = inputs.iter().map(AsRef::as_ref).collect();
        Ok(InRing::run(ring, &*self.operation, &inputs, state.side.weights()))
    }
}
