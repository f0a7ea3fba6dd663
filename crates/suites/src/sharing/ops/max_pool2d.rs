//! Maxima over windows of images: tournaments, in stages that share what overlapping windows have in common.

use std::borrow::Cow;

use privet_gmw::{Rounds, cost};
use privet_ring::Field;
use privet_ring::tournament::matches;

use super::super::keys::Batch;
use super::super::memory::{PER_COMPARISON, PER_INDEX};
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::MaxPool2d;

impl Protocol for MaxPool2d<'_> {
    fn cost(&self, width: u32, rounds: Rounds, _context: &Context) -> cost::Cost {
        self.0.sizes().into_iter().map(|sizes| cost::max_pool(sizes, width, rounds)).sum()
    }

    fn keys(&self, [from, _]: [u32; 2], _context: &Context) -> Vec<Batch> {
        let levels = self.0.sizes().into_iter().flat_map(matches);
        levels.map(|count| Batch::new(privet_fss::Relu::new(from, from), count)).collect()
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        let elements = self.0.node.input().len() as u64;
        let reads = (self.0.node.output().len() * self.0.window.kernel.iter().product::<usize>()) as u64;
        elements * PER_COMPARISON + reads.min(4 * elements) * PER_INDEX
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, ring) = state.input(self.0.node);
        let mut values = Cow::Borrowed(x);
        for groups in self.0.stages() {
            values = Cow::Owned(match party.engine() {
                Engine::Gmw(mut party) => privet_gmw::max_pool(&mut party, &values, &groups, ring)?,
                Engine::Fss(mut party, seeds, body) => {
                    privet_fss::max_pool(&mut party, ring.bits(), seeds, body, &values, &groups)?
                }
            });
        }
        Ok(values.into_owned())
    }
}
