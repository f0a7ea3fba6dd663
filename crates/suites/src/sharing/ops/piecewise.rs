//! A public function of each element by lines: a point function over the table, or a vector of shared bits.

use privet_gmw::{Rounds, cost};
use privet_ring::{Field, Modulus};

use super::super::keys::Batch;
use super::super::memory::{PER_COMPARISON, PER_INDEX};
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::Piecewise;

impl Protocol for Piecewise<'_> {
    fn width(&self, _inputs: &[u32], context: &Context) -> u32 {
        context.ring_bits
    }

    fn cost(&self, _width: u32, rounds: Rounds, context: &Context) -> cost::Cost {
        cost::piecewise(self.node.input().len(), self.bits, self.index_bits, context.ring_bits, rounds)
    }

    fn keys(&self, _widths: [u32; 2], context: &Context) -> Vec<Batch> {
        let gate = privet_fss::Piecewise::new(self.bits, self.index_bits, context.ring_bits);
        vec![Batch::new(gate, self.node.input().len())]
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        // In suite `gmw` a bit for each line in some vectors at once, a product for each bit of a distance, and one for each word of bits,
        // of which a ring of less than 32 bits has twice as many.
        let bits = 4 << self.index_bits;
        let words = (PER_COMPARISON << self.index_bits) / if self.node.program.ring_bits() < 32 { 16 } else { 32 };
        let products = u64::from(self.bits - self.index_bits) * (PER_COMPARISON + PER_INDEX);
        self.node.input().len() as u64 * (bits / 8 + words + products + PER_COMPARISON)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, to) = (state.input(self.node).0, Modulus::new(self.node.program.ring_bits()));
        let lines = self.lines();
        Ok(match party.engine() {
            Engine::Gmw(mut party) => privet_gmw::piecewise(&mut party, x, self.bits, &lines, to)?,
            Engine::Fss(mut party, seeds, body) => privet_fss::Piecewise::new(self.bits, self.index_bits, to.bits())
                .evaluate(&mut party, &seeds.seed(), body, x, &lines)?,
        })
    }
}
