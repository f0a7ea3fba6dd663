//! What each party does on its own share, whatever the operator.

use std::borrow::Cow;

use privet_gmw::Sign;
use privet_ring::{Field, Modulus};

use super::super::memory::PER_INDEX;
use super::super::party::Party;
use super::super::state::State;
use super::Protocol;
use crate::Error;
use crate::ops::{self, InRing, Node, Rules};

/// A local operation at its place.
pub(super) struct Local<'a> {
    pub node: Node<'a>,
    pub operation: Box<dyn ops::Local<InRing> + 'a>,
}

impl Rules for Local<'_> {
    fn computes_in_ring(&self) -> bool {
        self.operation.computes_in_ring()
    }

    fn needs_ring(&self, result: bool) -> bool {
        self.operation.needs_ring(result)
    }

    fn takes_guard_bits(&self, guarded: usize) -> bool {
        self.operation.takes_guard_bits(guarded)
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        self.operation.sign(inputs)
    }
}

impl Protocol for Local<'_> {
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
