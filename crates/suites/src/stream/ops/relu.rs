//! `max(x, 0)`.

use super::{Order, Revealed};
use crate::ops::Relu;

impl Revealed for Relu<'_> {
    fn compute(&self, mut values: Vec<i64>, _order: &Order) -> Vec<i64> {
        values.iter_mut().for_each(|value| *value = (*value).max(0));
        values
    }
}
