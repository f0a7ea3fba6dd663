//! Signs as numbers, and the leaves of complete trees: all comparisons at once, on as few bits as the values have.

use privet_fss::{Lift, Select, Sign};
use privet_gmw::{Rounds, cost};
use privet_ot::Role;
use privet_ring::{Field, Modulus};

use super::super::keys::Batch;
use super::super::memory::PER_COMPARISON;
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::{Leaves, Step};

impl Step<'_> {
    /// Width of the comparison of a value that is shared in `width` bits, some of them guard bits if the program's ring is smaller.
    fn compared(&self, width: u32) -> u32 {
        let guard = width.saturating_sub(self.node.program.ring_bits());
        self.bits.min(width - guard) + guard
    }

    /// This party's share of what is compared, and its ring. The high bits of shares are dropped, which a value of `bits` bits
    /// does not miss.
    fn narrowed(&self, state: &State<'_>, role: Role) -> (Vec<u64>, Modulus) {
        let (x, ring) = state.input(self.node);
        let guard = ring.bits().saturating_sub(self.node.program.ring_bits());
        let half = if guard > 0 && role == Role::Server { 1 << (guard - 1) } else { 0 };
        let compared = Modulus::new(self.compared(ring.bits()));
        (x.iter().map(|x| compared.reduce(x.wrapping_add(half))).collect(), compared)
    }
}

impl Protocol for Step<'_> {
    fn width(&self, _inputs: &[u32], context: &Context) -> u32 {
        context.ring_bits
    }

    fn cost(&self, width: u32, rounds: Rounds, context: &Context) -> cost::Cost {
        cost::step(self.node.input().len(), self.compared(width), context.ring_bits, rounds)
    }

    fn keys(&self, [from, to]: [u32; 2], _context: &Context) -> Vec<Batch> {
        let count = self.node.input().len();
        vec![Batch::new(Sign::new(self.compared(from)), count), Batch::new(Lift::new(to), count)]
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        self.node.input().len() as u64 * PER_COMPARISON
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, ring) = self.narrowed(state, party.role);
        let to = state.output_ring(self.node);
        Ok(match party.engine() {
            Engine::Gmw(mut party) => privet_gmw::step(&mut party, &x, ring, to)?,
            Engine::Fss(mut party, seeds, body) => {
                let bits = Sign::new(ring.bits()).evaluate(&mut party, &seeds.seed(), body, &x)?;
                Lift::new(to.bits()).evaluate(&mut party, &seeds.seed(), body, &bits)?
            }
        })
    }
}

impl Protocol for Leaves<'_> {
    fn width(&self, inputs: &[u32], context: &Context) -> u32 {
        self.step.width(inputs, context)
    }

    fn cost(&self, width: u32, rounds: Rounds, context: &Context) -> cost::Cost {
        cost::leaves(self.trees(), self.depth, self.step.compared(width), context.ring_bits, rounds)
    }

    fn keys(&self, [from, to]: [u32; 2], _context: &Context) -> Vec<Batch> {
        let trees = self.trees();
        let nodes = Batch::new(Sign::new(self.step.compared(from)), self.step.node.input().len());
        let levels = (1..self.depth).map(|level| Batch::new(Select::new(1), trees << level));
        [nodes].into_iter().chain(levels).chain([Batch::new(Lift::new(to), trees << self.depth)]).collect()
    }

    fn working_memory(&self, field: Option<Field>) -> u64 {
        self.step.working_memory(field)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, ring) = self.step.narrowed(state, party.role);
        let (x, to) = (self.gathered(&x), state.output_ring(self.step.node));
        let leaves = match party.engine() {
            Engine::Gmw(mut party) => privet_gmw::leaves(&mut party, &x, self.depth, ring, to)?,
            Engine::Fss(mut party, seeds, body) => {
                privet_fss::leaves(&mut party, seeds, body, &x, self.depth, [ring, to])?
            }
        };
        Ok(self.scattered(&leaves).into_owned())
    }
}
