//! What the client computes on values in the clear: a file for each operator. All other operations are the server's, who
//! computes them as [linear](crate::ops) ones.

mod argmax;
mod elementary;
pub(crate) mod function;
mod max_pool2d;
mod relu;
mod truncate;

use privet_program::Operator;

use super::exchange::Order;
use crate::ops::{Node, Relu, Truncate};
use function::Function;

/// An operation on values as the server sends them.
pub(super) trait Revealed {
    /// In which order its input may be sent; `index`: of the operation.
    ///
    /// # Errors
    /// Why there is none.
    fn order(&self, _index: usize) -> Result<Order, &'static str> {
        Ok(Order::Elements)
    }

    /// Whether its input is sent in windows, so that no other such operation can stand before it in an exchange.
    fn reads_windows(&self) -> bool {
        false
    }

    /// Its results, of values that lie in this order.
    fn compute(&self, values: Vec<i64>, order: &Order) -> Vec<i64>;
}

/// The operation, if it is the client's.
pub(super) fn of(node: Node<'_>) -> Option<Box<dyn Revealed + '_>> {
    Some(match &node.operation.operator {
        Operator::Relu => Box::new(Relu(node)),
        Operator::Truncate { bits, width } => Box::new(Truncate { node, bits: *bits, width: *width }),
        Operator::Function { steps } => Box::new(Function::new(node, steps)),
        Operator::MaxPool2d { .. } => Box::new(node.max_pool2d()?),
        Operator::Argmax { .. } => Box::new(node.argmax()?),
        _ => return None,
    })
}

/// Whether the client computes an operation.
pub(crate) fn computes(node: Node<'_>) -> bool {
    of(node).is_some()
}

fn largest<'a>(values: impl IntoIterator<Item = &'a i64>) -> i64 {
    values.into_iter().copied().max().unwrap_or(0)
}
