//! Products of two shared values: element by element, or of matrices.

use std::borrow::Cow;

use privet_linear::Product as Matrices;
use privet_program::{Operator, Program};
use privet_ring::{Modulus, linear};
use rayon::prelude::*;

use super::{Bounds, InRing, Node, Rules, widest};

/// A product of two values.
pub(crate) struct Product<'a>(pub Node<'a>);

impl Rules for Product<'_> {
    fn computes_in_ring(&self) -> bool {
        true
    }

    fn bounds(&self, inputs: &[Bounds], _width: u32) -> Bounds {
        let terms = i64::try_from(self.matrices().map_or(1, |matrices| matrices.inner)).ok()?;
        let ([a, b], [c, d]) = (inputs[0]?, inputs[1]?);
        let corners = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| x.checked_mul(y)?.checked_mul(terms));
        widest(&corners.map(|corner| Some([corner?; 2])))
    }
}

impl Product<'_> {
    /// The sizes of the matrices that it multiplies; none of a product element by element.
    pub fn matrices(&self) -> Option<Matrices> {
        match (&self.0.operation.operator, self.0.input().shape.as_slice()) {
            (Operator::Matmul, &[batch, rows, inner]) => {
                Some(Matrices { batch, rows, inner, columns: self.0.output().shape[2] })
            }
            _ => None,
        }
    }

    /// The product modulo `ring`.
    pub fn apply(&self, x: &[u64], y: &[u64], ring: Modulus) -> Vec<u64> {
        match self.matrices() {
            Some(Matrices { batch, rows, inner, columns }) => {
                linear::products(x, y, [batch, rows, inner, columns], ring)
            }
            None => x.par_iter().zip(y).with_min_len(1 << 16).map(|(x, y)| ring.reduce(x.wrapping_mul(*y))).collect(),
        }
    }
}

/// Most movements between a value that is masked and an operand that is made of it.
const MOST_MOVES: usize = 16;

/// Where an operand of a product comes from: a value, and the movements that make the operand of it. Products that read a value in
/// several arrangements, or a row broadcast to a matrix, share one mask of the value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The value.
    pub value: usize,
    /// Indices of the operations that move it, the first one first.
    moves: Vec<usize>,
}

impl Origin {
    /// That of `value`; `writers`: the operation that writes each value.
    pub fn of(program: &Program, writers: &[Option<usize>], mut value: usize) -> Self {
        let mut moves = Vec::new();
        while let Some(index) = writers[value].filter(|_| moves.len() < MOST_MOVES) {
            let operation = &program.operations()[index];
            let (Operator::Reshape | Operator::Broadcast | Operator::Transpose { .. }) = operation.operator else {
                break;
            };
            moves.push(index);
            value = operation.inputs[0];
        }
        moves.reverse();
        Self { value, moves }
    }

    /// The operand, of the value's elements.
    pub fn arrange<'a>(&self, program: &Program, value: Cow<'a, [u64]>, ring: Modulus) -> Cow<'a, [u64]> {
        self.moves.iter().fold(value, |value, &index| {
            let node = Node::at(program, index);
            if node.keeps_order() {
                return value;
            }
            let local = node.local::<InRing>().expect("movements are local");
            Cow::Owned(InRing::run(ring, &*local, &[&value], None))
        })
    }
}
