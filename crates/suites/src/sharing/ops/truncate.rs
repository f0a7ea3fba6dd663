//! `floor(x / 2^bits)`, in the ring that is smaller by `bits` bits, or in a smaller one that the program says the result fits. A result with
//! known bounds that is read in the wide ring goes on in one that has room to extend it without a comparison.

use privet_fss::Carried;
use privet_gmw::{Rounds, Truncation, cost, drop_low_bits};
use privet_ot::Role;
use privet_ring::{Field, Modulus};

use super::super::keys::Batch;
use super::super::memory::PER_COMPARISON;
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::{Truncate, roomy_bits};

impl Truncate<'_> {
    /// The ring that it is computed in, for a result in one of `to` bits, of a value of which `guard` bits are below the last place: what
    /// lies above the result's ring is never opened.
    fn needed(&self, to: u32, guard: u32) -> u32 {
        to + self.bits + guard
    }
}

impl Protocol for Truncate<'_> {
    fn width(&self, inputs: &[u32], context: &Context) -> u32 {
        let bits_left = inputs[0].min(context.ring_bits) - self.bits;
        let holds = |room: &u32| context.bounds.is_some_and(|bounds| roomy_bits(&bounds) <= *room);
        context.room.filter(holds).or(self.width).map_or(bits_left, |width| width.min(bits_left))
    }

    fn cost(&self, width: u32, rounds: Rounds, context: &Context) -> cost::Cost {
        let (len, guard) = (self.node.input().len(), width.saturating_sub(context.ring_bits));
        let width = self.needed(self.width(&[width], context), guard);
        match (context.options.truncation, guard, self.bits) {
            (Truncation::OneBit, ..) | (Truncation::Exact, 0, 0) => cost::Cost::default(),
            (Truncation::Exact, 0, bits) => cost::truncate_exactly(len, bits, width, rounds),
            (Truncation::Exact, guard, bits) => cost::truncate_guarded(len, bits + guard, width, rounds),
        }
    }

    fn keys(&self, [_, to]: [u32; 2], context: &Context) -> Vec<Batch> {
        match (context.options.truncation, self.bits) {
            (Truncation::OneBit, _) | (Truncation::Exact, 0) => Vec::new(),
            (Truncation::Exact, bits) => {
                vec![Batch::new(privet_fss::Truncate::new(to + bits, bits), self.node.input().len())]
            }
        }
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        self.node.input().len() as u64 * PER_COMPARISON
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (x, ring) = state.input(self.node);
        let guard = ring.bits().saturating_sub(self.node.program.ring_bits());
        let ring = Modulus::new(self.needed(state.output_ring(self.node).bits(), guard));
        let reduced = || x.iter().map(|x| ring.reduce(*x)).collect::<Vec<_>>();
        match (guard, self.bits) {
            (0, 0) => Ok(reduced()),
            (0, bits) if state.plan.options().truncation == Truncation::OneBit => {
                Ok(drop_low_bits(party.role, &reduced(), bits, ring))
            }
            (0, bits) => Ok(match party.engine() {
                Engine::Gmw(mut party) => privet_gmw::truncate_exactly(&mut party, &reduced(), bits, ring)?,
                Engine::Fss(mut party, seeds, body) => {
                    privet_fss::Truncate::new(ring.bits(), bits).evaluate(&mut party, &seeds.seed(), body, x)?
                }
            }),
            (guard, bits) => round_off(party, &reduced(), [bits, guard], ring),
        }
    }
}

/// `floor(x / 2^bits)` in the ring that is smaller by `bits` and `guard` bits, where `x` has `guard` bits below its last place and is off
/// there by one at most; in suite `gmw`.
pub(in super::super) fn round_off(
    party: &mut Party<'_>,
    x: &[u64],
    [bits, guard]: [u32; 2],
    ring: Modulus,
) -> Result<Vec<u64>, Error> {
    let half = if party.role == Role::Server { 1 << (guard - 1) } else { 0 };
    let raised: Vec<u64> = x.iter().map(|&x| ring.reduce(x.wrapping_add(half))).collect();
    match party.engine() {
        Engine::Gmw(mut party) => Ok(privet_gmw::truncate_guarded(&mut party, &raised, bits + guard, ring)?),
        Engine::Fss(..) => unreachable!("a dealer's products have no guard bits"),
    }
}
