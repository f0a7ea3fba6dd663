//! Products with private weights: paid offline on a random mask `r`, or under BFV online.

use privet_program::Weights;
use privet_ring::{Field, Modulus};

use super::super::conversion::LeaveField;
use super::super::memory::PER_COMPARISON;
use super::super::party::Party;
use super::super::state::{Side, State};
use super::{Context, Protocol};
use crate::Error;
use crate::ops::{At, LinearMap};

impl Protocol for At<'_, dyn LinearMap + '_> {
    fn width(&self, _inputs: &[u32], context: &Context) -> u32 {
        // What a dealer or OTs make is exact.
        match context.options.is_dealt() || context.options.chooses(&self.operation.encrypted()) {
            true => context.bits_read,
            false => context.ring_bits + context.options.guard_bits(),
        }
    }

    fn working_memory(&self, field: Option<Field>) -> u64 {
        // Every result leaves the field by a comparison.
        self.node.output().len() as u64 * if field.is_some() { PER_COMPARISON } else { 8 }
    }

    fn linear(&self) -> Option<&dyn LinearMap> {
        Some(&*self.operation)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        match state.plan.field() {
            None => self.in_ring(state, party),
            Some(field) => self.in_field(field, state, party),
        }
    }
}

impl At<'_, dyn LinearMap + '_> {
    /// A party's share of `W x` and the bias: the offline share of `W r`, and at the server `W (x - r) + bias` on top; or by
    /// BFV on the client's share.
    fn in_ring(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let position = state.next_linear(self.node);
        let (plan, program_ring) = (state.plan, Modulus::new(self.node.program.ring_bits()));
        let layer = &plan.linear()[position];
        let ring = plan.share_ring(layer);
        let guard = ring.bits().saturating_sub(program_ring.bits());
        let share = &state.shares[self.node.operation.inputs[0]];
        match &mut state.side {
            Side::Client { shares, .. } => Ok(std::mem::take(&mut shares[position])),
            Side::Server { shares, model } => {
                let opened = layer.mask.and_then(|mask| state.opened[mask].as_ref()).expect("opened before");
                let product = self.operation.affine(opened, model.weights(), program_ring);
                let result = product.iter().zip(std::mem::take(&mut shares[position]));
                Ok(result.map(|(product, share)| ring.reduce((product << guard).wrapping_add(share))).collect())
            }
            Side::ClientOnline(client) => client.product(party.channel, plan, layer, share),
            Side::ServerOnline(server) => server.product(party.channel, plan, position, share),
        }
    }

    /// The same modulo a prime, and from there to the ring.
    fn in_field(&self, field: Field, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let position = state.next_linear(self.node);
        let share = match &mut state.side {
            Side::Client { shares, .. } => std::mem::take(&mut shares[position]),
            Side::Server { shares, model } => {
                let mask = state.plan.linear()[position].mask;
                let opened = mask.and_then(|mask| state.opened[mask].as_ref()).expect("opened before");
                let product = self.product_in(field, opened, model.weights());
                let sums = product.iter().zip(std::mem::take(&mut shares[position]));
                sums.map(|(&product, share)| field.add(product, share)).collect()
            }
            _ => unreachable!("layers that run online are in the ring"),
        };
        let ring = Modulus::new(self.node.program.ring_bits());
        let mut result = LeaveField { field, to: ring.bits() }.run(party, &share)?;
        if let Some(weights) = state.side.weights() {
            self.operation.add_bias(&mut result, weights);
            ring.reduce_all(&mut result);
        }
        Ok(result)
    }

    /// `W x` modulo the field's prime, in two halves whose products with the weights of a result stay within a word.
    fn product_in(&self, field: Field, opened: &[u64], weights: &Weights) -> Vec<u64> {
        const LOW: u32 = 20;
        let times = |x: Vec<u64>| self.operation.apply(&x, weights.tensor(self.operation.weight()), Modulus::new(64));
        let low = times(opened.iter().map(|&x| field.signed(x).cast_unsigned() & ((1 << LOW) - 1)).collect());
        let high = times(opened.iter().map(|&x| (field.signed(x) >> LOW).cast_unsigned()).collect());
        let residue = |(low, high): (u64, u64)| {
            let shifted = field.signed(field.from_signed(high.cast_signed())) << LOW;
            field.add(field.from_signed(low.cast_signed()), field.from_signed(shifted))
        };
        low.into_iter().zip(high).map(residue).collect()
    }
}
