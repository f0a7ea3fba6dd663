//! Gates on the single elements of a value behind a mask.

use privet_fss::KeyBytes;
use privet_ring::Modulus;
use privet_shark::dealer::Dealer;
use privet_shark::{Extend, Masked, Party, Relu, Truncate, Values};

use super::infer::State;
use super::ops::{Purpose, Step};
use crate::Error;

/// What all such gates have.
pub(super) trait Gate: Send + Sync {
    fn key_bytes(&self, count: usize) -> KeyBytes;
    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error>;
    fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error>;
}

macro_rules! gate {
    ($gate:ty) => {
        impl Gate for $gate {
            fn key_bytes(&self, count: usize) -> KeyBytes {
                self.key_bytes(count)
            }

            fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
                self.deal(dealer, masks)?;
                Ok(())
            }

            fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error> {
                Ok(self.evaluate(party, x)?)
            }
        }
    };
}

gate!(Relu);
gate!(Truncate);
gate!(Extend);

/// A gate at its place.
pub(super) struct Gated<G> {
    pub purpose: Purpose,
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

impl<G: Gate> Step for Gated<G> {
    fn purpose(&self) -> Purpose {
        self.purpose
    }

    fn touched(&self) -> Vec<usize> {
        vec![self.input, self.output]
    }

    fn key_bytes(&self) -> KeyBytes {
        self.gate.key_bytes(self.len)
    }

    fn reads_masked(&self) -> Option<usize> {
        Some(self.input)
    }

    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error> {
        self.gate.deal(dealer, masks)
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
