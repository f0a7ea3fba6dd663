//! Positions of maxima along an axis, of values in their own order.

use super::{Order, Revealed, largest};
use crate::ops::Argmax;

impl Revealed for Argmax<'_> {
    fn order(&self, _index: usize) -> Result<Order, &'static str> {
        Err("the place of a maximum means nothing among permuted values")
    }

    fn compute(&self, values: Vec<i64>, _order: &Order) -> Vec<i64> {
        let place = |group: Vec<usize>| {
            let group: Vec<i64> = group.into_iter().map(|at| values[at]).collect();
            let largest = largest(&group);
            let is_largest = |value: &i64| *value == largest;
            let place =
                if self.select_last { group.iter().rposition(is_largest) } else { group.iter().position(is_largest) };
            place.unwrap_or(0) as i64
        };
        self.groups().into_iter().map(place).collect()
    }
}
