//! How programs run on authenticated values, operator by operator, at the parties and at the dealer: a file for each that
//! needs a gate.

mod argmax;
mod linear;
mod local;
mod max_pool2d;
mod relu;
mod truncate;

use privet_fss::KeyBytes;
use privet_program::{Operator, Program};
use privet_shark::dealer::Dealer;
use privet_shark::{Key, Layer, Party, Values};

use super::deal::Dealing;
use super::infer::State;
use super::planner::Planner;
use super::prepare::Preparing;
use crate::Error;
use crate::ops::{At, Node, Relu, Rules, Truncate};

/// An operation as a plan takes it up.
pub(super) trait Protocol: Rules {
    /// Whether its inputs must be in the program's ring.
    fn reads_wide(&self) -> bool {
        self.computes_in_ring()
    }

    /// Puts the steps of the operation with this index into the plan; returns the width of its result.
    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32;
}

/// The protocol of an operation; `None` if there is none on authenticated values.
fn of(node: Node<'_>) -> Option<Box<dyn Protocol + '_>> {
    Some(match &node.operation.operator {
        Operator::Relu => Box::new(Relu(node)),
        Operator::Truncate { bits, width } => Box::new(Truncate { node, bits: *bits, width: *width }),
        Operator::MaxPool2d { .. } => Box::new(node.max_pool2d()?),
        Operator::Argmax { .. } => Box::new(node.argmax()?),
        _ => match node.linear() {
            Some(operation) => Box::new(At { node, operation }),
            None => Box::new(At { node, operation: node.local::<Key>()? }),
        },
    })
}

/// The protocols of all operations of a program. Fails with [`Error::Misuse`], which names the first layer that has
/// none.
pub(super) fn all(program: &Program) -> Result<Vec<Box<dyn Protocol + '_>>, Error> {
    Node::all(program).map(|node| of(node).ok_or_else(|| node.unsupported())).collect()
}

/// What a step is for, in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The operation with this index.
    Operation(usize),
    /// To prepare a value for what reads it.
    Value(usize, &'static str),
}

/// A step at its place in a plan.
pub(super) struct Placed {
    pub purpose: Purpose,
    /// The values that it reads and writes.
    pub touched: Vec<usize>,
    pub step: Box<dyn Step>,
}

/// One step of a run. Both parties and the dealer take the same ones in the same order, offline and online. A party's part
/// fails if the link or a key does, the dealer's if a body cannot be written.
pub(super) trait Step: Send + Sync {
    /// Its key, if it has one.
    fn key_bytes(&self) -> KeyBytes {
        KeyBytes::default()
    }

    /// How many authenticated values either party makes offline and stores, if its key is used up then.
    fn prepared(&self) -> Option<usize> {
        None
    }

    /// The linear layer that it is, if it is one.
    fn layer(&self) -> Option<&Layer> {
        None
    }

    /// The value that it reads behind a mask while it runs, if its key depends on the mask.
    fn reads_masked(&self) -> Option<usize> {
        None
    }

    /// The dealer's part of what is used up offline.
    fn deal_early(&self, _dealing: &mut Dealing<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The dealer's part of what is used up online; `masks`: of the value that it reads behind one.
    fn deal(&self, _dealer: &mut Dealer<'_>, _masks: &[u128]) -> Result<(), Error> {
        Ok(())
    }

    /// A party's part offline; what is to be stored.
    fn prepare(&self, _preparing: &mut Preparing<'_>, _party: &mut Party<'_>) -> Result<Option<Values>, Error> {
        Ok(None)
    }

    /// A party's part online.
    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error>;
}
