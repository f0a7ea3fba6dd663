//! Gates on the single elements of a value behind a mask.

use privet_fss::KeyBytes;
use privet_ring::Modulus;
use privet_shark::dealer::Dealer;
use privet_shark::{Gate, Party};

use super::infer::State;
use super::ops::Step;
use crate::Error;

/// A gate at its place.
pub(super) struct Gated<G> {
    /// The value that it reads behind a mask.
    pub input: usize,
    /// The value that it writes.
    pub output: usize,
    /// How many elements.
    pub len: usize,
    pub gate: G,
    /// The ring that the value is in from now on, if it was written in another.
    pub to: Option<Modulus>,
}

impl<G: Gate + Send + Sync> Step for Gated<G> {
    fn key_bytes(&self) -> KeyBytes {
        self.gate.key_bytes(self.len)
    }

    fn reads_masked(&self) -> Option<usize> {
        Some(self.input)
    }

    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
        Ok(self.gate.deal(dealer, masks)?)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let values = self.gate.evaluate(party, state.masked(self.input))?;
        state.write(self.output, values);
        if let Some(ring) = self.to {
            state.rings[self.output] = ring;
        }
        Ok(())
    }
}
