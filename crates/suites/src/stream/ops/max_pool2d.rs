//! Maxima over windows of images, which travel whole.

use super::super::exchange::Pooling;
use super::{Order, Revealed, largest};
use crate::ops::MaxPool2d;

impl Revealed for MaxPool2d<'_> {
    /// An element in two windows would tell which are neighbours.
    fn order(&self, index: usize) -> Result<Order, &'static str> {
        let pooling = Pooling::new(self.0.node.program, index);
        pooling.map(Order::Windows).ok_or("its windows overlap, which would tell the client where each lies")
    }

    fn reads_windows(&self) -> bool {
        true
    }

    fn compute(&self, values: Vec<i64>, order: &Order) -> Vec<i64> {
        match order {
            Order::Windows(pooling) => values.chunks(pooling.longest).map(largest).collect(),
            _ => self.0.groups().iter().map(|group| largest(group.map(|at| &values[at]))).collect(),
        }
    }
}
