//! Secrets that are zero before their memory is given back, as those of the crate `zeroize`, which writes element by element: this writes as
//! wide as the machine can.

use std::ops::{Deref, DerefMut};

use zeroize::{DefaultIsZeroes, optimization_barrier};

/// Writes zeros that the compiler may not leave out.
pub fn wipe<T: DefaultIsZeroes>(values: &mut [T]) {
    values.fill(T::default());
    optimization_barrier(values);
}

/// A vector that is wiped when it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiped<T: DefaultIsZeroes>(Vec<T>);

impl<T: DefaultIsZeroes> From<Vec<T>> for Wiped<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: DefaultIsZeroes> FromIterator<T> for Wiped<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<T: DefaultIsZeroes> Deref for Wiped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: DefaultIsZeroes> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: DefaultIsZeroes> Drop for Wiped<T> {
    /// With what lies behind the last value.
    fn drop(&mut self) {
        self.0.clear();
        self.0.resize(self.0.capacity(), T::default());
        optimization_barrier(self.0.as_slice());
    }
}
