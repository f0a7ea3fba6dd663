//! `y` where `x >= 0`, else 0: a comparison, and a multiplexer by its shared bit. It takes no triple, and no number is made of the bit.

use privet_fss::Sign as Comparison;
use privet_gmw::{Rounds, Sign, cost};
use privet_ring::Field;

use super::super::keys::Batch;
use super::super::memory::PER_COMPARISON;
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::{Node, Rules};

/// A selection; both values come in one ring, and the result is in that ring.
pub(super) struct Select<'a>(pub Node<'a>);

impl Rules for Select<'_> {
    /// It is what is selected, or 0.
    fn sign(&self, inputs: &[Sign]) -> Sign {
        inputs[1]
    }
}

impl Protocol for Select<'_> {
    fn cost(&self, width: u32, rounds: Rounds, _context: &Context) -> cost::Cost {
        let len = self.0.input().len();
        cost::is_non_negative(len, width, rounds) + cost::mux(len, width)
    }

    fn keys(&self, [from, _]: [u32; 2], _context: &Context) -> Vec<Batch> {
        let len = self.0.input().len();
        vec![Batch::new(Comparison::new(from), len), Batch::new(privet_fss::Select::new(from), len)]
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        self.0.input().len() as u64 * PER_COMPARISON
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let ((x, ring), (y, _)) = (state.input(self.0), state.share(self.0.operation.inputs[1]));
        Ok(match party.engine() {
            Engine::Gmw(mut party) => {
                let bits = privet_gmw::is_non_negative(&mut party, x, ring)?;
                privet_gmw::mux(&mut party, &bits, y, ring)?
            }
            Engine::Fss(mut party, seeds, body) => {
                let bits = Comparison::new(ring.bits()).evaluate(&mut party, &seeds.seed(), body, x)?;
                privet_fss::Select::new(ring.bits()).evaluate(&mut party, &seeds.seed(), body, &bits, y)?
            }
        })
    }
}
