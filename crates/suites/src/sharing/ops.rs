//! How suites `gmw` and `fss` compute the operations of a program: a file for each operator that needs a protocol.

mod argmax;
mod linear;
mod local;
mod max_pool2d;
mod piecewise;
mod product;
mod relu;
mod select;
mod step;
mod truncate;

use privet_gmw::{Rounds, cost::Cost};
use privet_program::{Operator, Program};
use privet_ring::{Field, Lines};

use super::Options;
use super::keys::Batch;
use super::party::Party;
use super::state::State;
use crate::Error;
use crate::ops::{At, Bounds, InRing, Leaves, LinearMap, Node, Product, Relu, Rules, Step, Truncate};

use select::Select;
pub(super) use truncate::round_off;

/// What an operation is planned for.
pub(super) struct Context {
    /// Width of the program's ring.
    pub ring_bits: u32,
    pub options: Options,
    /// Whether a later step needs the result in the program's ring.
    pub is_read_wide: bool,
    /// How many low bits of the result count to later steps; one where nothing reads it.
    pub bits_read: u32,
    /// What the result can be, if that is known.
    pub bounds: Bounds,
    /// The ring from which the result is extended without a comparison, if it is wider than the one that the program says.
    pub room: Option<u32>,
    /// Whether any ring will do that holds it.
    pub fits_any_ring: bool,
}

/// An operation as the suites plan, count and run it.
pub(super) trait Protocol: Rules {
    /// Width of the ring of its result, of inputs of such widths; they are all alike, or those of a sum in which one has guard bits.
    fn width(&self, inputs: &[u32], _context: &Context) -> u32 {
        inputs.iter().copied().max().unwrap_or(0)
    }

    /// Correlations and traffic in suite `gmw`, of inputs of `width` bits.
    fn cost(&self, _width: u32, _rounds: Rounds, _context: &Context) -> Cost {
        Cost::default()
    }

    /// Keys in suite `fss`, from a ring of `from` bits to one of `to` bits.
    fn keys(&self, [_from, _to]: [u32; 2], _context: &Context) -> Vec<Batch> {
        Vec::new()
    }

    /// The lines that it looks up, from a ring of `from` bits to one of `to` bits, if it is a function made of lines.
    fn lines(&self, [_from, _to]: [u32; 2], _context: &Context) -> Option<Lines> {
        None
    }

    /// Bytes that it takes while it runs, beside what it reads and writes.
    fn working_memory(&self, field: Option<Field>) -> u64;

    /// Its offline half, if it has one.
    fn linear(&self) -> Option<&dyn LinearMap> {
        None
    }

    /// The product of two values that it is, if it is one.
    fn product(&self) -> Option<&Product<'_>> {
        None
    }

    /// A party's shares of its result.
    ///
    /// # Errors
    /// If the link fails, the peer misbehaves or the material runs dry.
    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error>;
}

/// The protocol of an operation; `None` if these suites have none.
pub(super) fn of(node: Node<'_>) -> Option<Box<dyn Protocol + '_>> {
    Some(match &node.operation.operator {
        Operator::Relu => Box::new(Relu(node)),
        Operator::Select => Box::new(Select(node)),
        Operator::Truncate { bits, width } => Box::new(Truncate { node, bits: *bits, width: *width }),
        Operator::Step { bits } => Box::new(Step { node, bits: *bits }),
        Operator::Leaves { bits, depth } => Box::new(Leaves { step: Step { node, bits: *bits }, depth: *depth }),
        Operator::MaxPool2d { .. } => Box::new(node.max_pool2d()?),
        Operator::Argmax { .. } => Box::new(node.argmax()?),
        Operator::Piecewise { .. } => Box::new(node.piecewise()?),
        Operator::Mul | Operator::Matmul => Box::new(node.product()?),
        _ => match node.linear() {
            Some(operation) => Box::new(At { node, operation }),
            None => Box::new(At { node, operation: node.local::<InRing>()? }),
        },
    })
}

/// Whether these suites compute an operation.
pub(crate) fn computes(node: Node<'_>) -> bool {
    of(node).is_some()
}

/// The protocols of all operations of a program. Fails with [`Error::Misuse`], which names the first layer that has
/// none.
pub(super) fn all(program: &Program) -> Result<Vec<Box<dyn Protocol + '_>>, Error> {
    Node::all(program).map(|node| of(node).ok_or_else(|| node.unsupported())).collect()
}
