//! `floor(x / 2^bits)`.

use super::{Order, Revealed};
use crate::ops::Truncate;

impl Revealed for Truncate<'_> {
    fn compute(&self, mut values: Vec<i64>, _order: &Order) -> Vec<i64> {
        values.iter_mut().for_each(|value| *value >>= self.bits);
        values
    }
}
