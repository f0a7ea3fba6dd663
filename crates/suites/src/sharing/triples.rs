//! Beaver triples of a plan: shares of masks `A` and `B` of values, and of `C = A B` for each product.
//!
//! A mask belongs to a value, not to a product: whatever product reads the value, however arranged, reads the one opening behind it.
//! Each party's parts of all masks grow from a seed of its own; the parts of `C` are material, from a dealer or made by both parties
//! ([`super::making`]).

use privet_prg::{Prg, Seed};
use privet_ring::Modulus;

use super::Plan;
use super::prepare::uniform;
use crate::ops::Origin;

/// A product of two values as the plan has it.
#[derive(Debug)]
pub(super) struct Triple {
    /// Index of the operation.
    pub operation: usize,
    /// Where its operands come from.
    pub operands: [Operand; 2],
    /// The masks behind which it opens values: those of its operands' that no product before has opened.
    pub opens: Vec<usize>,
    /// How two parties make it, if it is one of matrices and no dealer does.
    pub matrices: Option<privet_linear::Triples>,
}

/// An operand of a product.
#[derive(Debug)]
pub(super) struct Operand {
    /// The value that it is made of.
    pub origin: Origin,
    /// Which mask hides the value.
    pub mask: usize,
}

/// A value that products read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masked {
    /// Its id.
    pub value: usize,
    /// Its number of elements.
    pub len: usize,
}

/// One party's half of all triples of an inference.
pub struct Triples {
    /// What its parts of the masks grow from.
    pub(super) seed: Seed,
    /// Its part of `C` of each product.
    pub(super) shares: Vec<Vec<u64>>,
    /// The seed of each mask.
    masks: Vec<Seed>,
}

impl Triples {
    /// Those whose masks grow from `seed`.
    pub(super) fn new(plan: &Plan, seed: Seed, shares: Vec<Vec<u64>>) -> Self {
        let mut prg = Prg::from_seed(&seed);
        let masks = plan.masked.iter().map(|_| prg.seed()).collect();
        Self { seed, shares, masks }
    }

    /// Nothing, for a plan without products.
    pub(super) fn none() -> Self {
        Self { seed: Seed::from_bytes([0; 16]), shares: Vec::new(), masks: Vec::new() }
    }

    /// This party's part of the mask with this index.
    pub(super) fn mask(&self, plan: &Plan, index: usize) -> Vec<u64> {
        uniform(&mut Prg::from_seed(&self.masks[index]), plan.masked[index].len, ring(plan))
    }

    /// This party's parts of the masks of a product's operands.
    pub(super) fn operands(&self, plan: &Plan, triple: &Triple) -> [Vec<u64>; 2] {
        triple.operands.each_ref().map(|operand| {
            let mask = self.mask(plan, operand.mask).into();
            operand.origin.arrange(plan.program(), mask, ring(plan)).into_owned()
        })
    }

    /// Bytes of the stored form.
    pub(super) fn stored_bytes(plan: &Plan) -> u64 {
        let bytes = |triple| share_ring(plan, triple).packed_bytes(output_len(plan, triple)) as u64;
        let shares = plan.triples.iter().map(bytes);
        if plan.triples.is_empty() { 0 } else { 16 + shares.sum::<u64>() }
    }
}

/// `C` less the client's part of it: what the dealer gives the server; from both parties' parts of the masks.
pub(super) fn correction(plan: &Plan, triple: &Triple, parties: [&Triples; 2], share: &[u64]) -> Vec<u64> {
    let [a, b] = triple.operands.each_ref().map(|operand| {
        let [client, server] = parties.map(|party| party.mask(plan, operand.mask));
        operand.origin.arrange(plan.program(), ring(plan).add(&client, &server).into(), ring(plan))
    });
    let ring = share_ring(plan, triple);
    ring.sub(&plan.product(triple).apply(&a, &b, ring), share)
}

/// The number of elements of a product.
pub(super) fn output_len(plan: &Plan, triple: &Triple) -> usize {
    plan.program().value(plan.operation(triple.operation).output).len()
}

/// The ring of a product and of both parties' parts of `C`: that of the bits that later steps read, or of the program's with guard bits
/// where encryption may be off by a unit.
pub(super) fn share_ring(plan: &Plan, triple: &Triple) -> Modulus {
    Modulus::new(plan.width(plan.operation(triple.operation).output))
}

/// The ring of masks and of what is opened behind them.
pub(super) fn ring(plan: &Plan) -> Modulus {
    Modulus::new(plan.program().ring_bits())
}
