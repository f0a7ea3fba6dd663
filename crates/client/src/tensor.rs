//! Numbers with a shape.

use crate::Error;

/// A tensor in row-major order: [`f32`] for inputs, [`f64`] for outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T = f32> {
    shape: Vec<usize>,
    data: Vec<T>,
}

impl<T> Tensor<T> {
    /// The numbers `data` in this shape.
    ///
    /// # Errors
    /// [`Error::Input`] if the shape is of another number of elements.
    pub fn new(shape: impl Into<Vec<usize>>, data: impl Into<Vec<T>>) -> Result<Self, Error> {
        let (shape, data) = (shape.into(), data.into());
        let count = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        if count != Some(data.len()) {
            return Err(Error::Input(format!("{} numbers do not fill the shape {shape:?}", data.len())));
        }
        Ok(Self { shape, data })
    }

    /// The sizes of its axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its numbers, the last axis fastest.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Its numbers without the shape.
    pub fn into_data(self) -> Vec<T> {
        self.data
    }
}
