//! Products of two shared values by Beaver triples (docs/reference/protocols/products.md).

use std::borrow::Cow;

use privet_ot::Role;
use privet_ring::{Field, Modulus};

use super::super::party::Party;
use super::super::state::State;
use super::super::triples;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::Product;

impl Protocol for Product<'_> {
    fn width(&self, _inputs: &[u32], context: &Context) -> u32 {
        // Triples of matrices that two parties make may be off by a unit, others are exact.
        if self.matrices().is_some() && !context.options.is_dealt() {
            context.ring_bits + context.options.guard_bits()
        } else {
            context.bits_read
        }
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        // Masks and openings, each as it is read and before it is arranged, and what is sent; two products and their sums.
        let operands: usize = self.0.input_shapes().map(|shape| shape.iter().product::<usize>()).sum();
        8 * (6 * operands + 4 * self.0.output().len()) as u64
    }

    fn product(&self) -> Option<&Product<'_>> {
        Some(self)
    }

    /// Of `x = E + A` and `y = F + B` with shared `A`, `B` and `C = A B`: a share of `x y = E F + E B + A F + C`.
    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let (plan, program) = (state.plan, self.0.program);
        let (triple, mut result) = state.next_triple(self.0);
        let masked = triples::ring(plan);
        state.reveal(triple, party)?;
        let [e, f] = triple.operands.each_ref().map(|operand| {
            let opened = state.revealed[operand.mask].as_deref().expect("opened before it is read");
            operand.origin.arrange(program, Cow::Borrowed(opened), masked)
        });
        let [a, mut b] = state.triples.operands(plan, triple).map(Cow::Owned);
        if party.role == Role::Server {
            b = Cow::Owned(masked.add(&b, &f));
        }
        let ring = triples::share_ring(plan, triple);
        let guard = ring.bits().saturating_sub(masked.bits());
        let unguarded = Modulus::new(ring.bits() - guard);
        for product in [self.apply(&e, &b, unguarded), self.apply(&a, &f, unguarded)] {
            let sums = result.iter_mut().zip(product);
            sums.for_each(|(sum, product)| *sum = ring.reduce(sum.wrapping_add(product << guard)));
        }
        Ok(result)
    }
}
