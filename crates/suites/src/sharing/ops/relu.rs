//! `max(x, 0)`.

use privet_gmw::{Rounds, cost};
use privet_ring::{Field, Modulus};

use super::super::keys::Batch;
use super::super::memory::PER_COMPARISON;
use super::super::party::{Engine, Party};
use super::super::{Suite, state::State};
use super::{Context, Protocol};
use crate::Error;
use crate::ops::Relu;

impl Protocol for Relu<'_> {
    fn width(&self, inputs: &[u32], context: &Context) -> u32 {
        // The key of a ReLU brings its value to the wide ring for a few bits more.
        let widens = context.options.suite == Suite::Fss && context.is_read_wide;
        if widens { context.ring_bits } else { inputs[0] }
    }

    fn cost(&self, width: u32, rounds: Rounds, _context: &Context) -> cost::Cost {
        cost::relu(self.0.input().len(), width, rounds)
    }

    fn keys(&self, [from, to]: [u32; 2], _context: &Context) -> Vec<Batch> {
        vec![Batch::new(privet_fss::Relu::new(from, to), self.0.input().len())]
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        self.0.input().len() as u64 * PER_COMPARISON
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, from) = state.input(self.0);
        relu(party, x, [from, state.output_ring(self.0)])
    }
}

/// Shares of `max(x, 0)`; in suite `gmw` both rings are one.
pub(super) fn relu(party: &mut Party<'_>, x: &[u64], [from, to]: [Modulus; 2]) -> Result<Vec<u64>, Error> {
    Ok(match party.engine() {
        Engine::Gmw(mut party) => privet_gmw::relu(&mut party, x, from)?,
        Engine::Fss(mut party, seeds, body) => {
            privet_fss::Relu::new(from.bits(), to.bits()).evaluate(&mut party, &seeds.seed(), body, x)?
        }
    })
}
