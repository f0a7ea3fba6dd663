//! Positions of maxima along an axis: tournaments whose positions travel with the values.

use privet_fss::{Select, Sign};
use privet_gmw::{Rounds, cost};
use privet_ring::tournament::{Ties, matches};
use privet_ring::{Field, Modulus};

use super::super::keys::Batch;
use super::super::memory::{PER_COMPARISON, PER_INDEX};
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::Argmax;

impl Protocol for Argmax<'_> {
    fn width(&self, _inputs: &[u32], context: &Context) -> u32 {
        context.ring_bits
    }

    fn cost(&self, width: u32, rounds: Rounds, context: &Context) -> cost::Cost {
        cost::argmax(self.count(), self.size(), width, context.ring_bits, rounds)
    }

    fn keys(&self, [from, to]: [u32; 2], _context: &Context) -> Vec<Batch> {
        let level = |count| {
            let positions = Batch::new(Select::new(to), count).joining();
            [Batch::new(Sign::new(from), count), Batch::new(Select::new(from), count), positions]
        };
        matches([(self.size(), self.count())]).into_iter().flat_map(level).collect()
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        self.node.input().len() as u64 * (PER_COMPARISON + PER_INDEX)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, ring) = state.input(self.node);
        let positions = Modulus::new(self.node.program.ring_bits());
        let ties = if self.select_last { Ties::Last } else { Ties::First };
        let group = |group: Vec<usize>| group.into_iter().map(|at| x[at]).collect();
        let groups: Vec<Vec<u64>> = self.groups().into_iter().map(group).collect();
        Ok(match party.engine() {
            Engine::Gmw(mut party) => privet_gmw::argmax(&mut party, &groups, ties, ring, positions)?,
            Engine::Fss(mut party, seeds, body) => {
                privet_fss::argmax(&mut party, seeds, body, &groups, ties, [ring, positions])?
            }
        })
    }
}
