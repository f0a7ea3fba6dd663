//! The matrix of a linear map, and which inputs it reads.

use crate::error::{Error, Misuse};
use crate::linear::plan::Plan;

/// A matrix of signed integers, `[outputs, inputs]`: the model's owner's secret.
pub struct Weights {
    outputs: usize,
    inputs: usize,
    bits: usize,
    values: Vec<i32>,
}

impl Weights {
    /// Weights from `-2^(bits - 1)` to `2^(bits - 1) - 1`, row by row. `bits` is public, as time depends on it: take it
    /// from the model's format, not from the largest weight.
    ///
    /// # Errors
    /// [`Misuse::WeightWidth`] unless `bits` is from 2 to 32; [`Misuse::WeightTooLarge`] for a weight out of range;
    /// [`Misuse::WrongLength`] if the number of weights is not that of the shape.
    pub fn new(outputs: usize, inputs: usize, bits: usize, values: Vec<i32>) -> Result<Self, Error> {
        if !(2..=32).contains(&bits) {
            return Err(Misuse::WeightWidth { bits }.into());
        }
        let expected = outputs.saturating_mul(inputs);
        if values.len() != expected {
            return Err(Misuse::WrongLength { what: "weights", expected, actual: values.len() }.into());
        }
        let fits = |value: i32| (-(1_i64 << (bits - 1))..1 << (bits - 1)).contains(&i64::from(value));
        if let Some(index) = values.iter().position(|&value| !fits(value)) {
            return Err(Misuse::WeightTooLarge { index, bits }.into());
        }
        Ok(Self { outputs, inputs, bits, values })
    }

    /// Rows.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Columns.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bits of a weight, with its sign.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// A bound on the magnitude of results from inputs bounded by `input`, for [`crate::Packing`]: the largest sum of
    /// absolute weights of a row, times that. It tells of the weights; take it from a range that is public if the peer
    /// is to know it.
    pub fn bound(&self, input: u64) -> u128 {
        let row = |row: &[i32]| row.iter().map(|weight| u128::from(weight.unsigned_abs())).sum::<u128>();
        self.values.chunks(self.inputs.max(1)).map(row).max().unwrap_or(0) * u128::from(input)
    }

    /// The cheaper way for these windows.
    pub fn plan(&self, windows: &Windows) -> Plan {
        Plan::choose(self.outputs, self.bits, windows).1
    }

    /// How many vectors of eight products that takes for these windows, without the few for inversions.
    pub fn products(&self, windows: &Windows) -> usize {
        Plan::choose(self.outputs, self.bits, windows).0
    }

    pub(super) fn row(&self, output: usize) -> &[i32] {
        &self.values[output * self.inputs..][..self.inputs]
    }
}

/// Which inputs each application of a matrix reads: all of them for a dense layer, a patch for each position of a
/// convolution.
pub struct Windows {
    inputs: usize,
    run: usize,
    indices: Vec<Option<usize>>,
}

impl Windows {
    /// `indices`: shape `[windows, inputs]`, each a position in the vector of ciphertexts, or none where padding is
    /// read.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if that is not a whole number of windows.
    pub fn new(inputs: usize, indices: Vec<Option<usize>>) -> Result<Self, Error> {
        if inputs == 0 || !indices.len().is_multiple_of(inputs) {
            let expected = indices.len().next_multiple_of(inputs.max(1));
            return Err(Misuse::WrongLength { what: "windows", expected, actual: indices.len() }.into());
        }
        Ok(Self { inputs, run: inputs, indices })
    }

    /// As [`Windows::new`], and several windows read each `run` inputs together: all channels of one place of an image,
    /// one place after the other. What they share is computed once.
    ///
    /// # Errors
    /// As there, and if a window is no whole number of runs.
    pub fn in_runs(inputs: usize, run: usize, indices: Vec<Option<usize>>) -> Result<Self, Error> {
        if run == 0 || !inputs.is_multiple_of(run) {
            let expected = inputs.next_multiple_of(run.max(1));
            return Err(Misuse::WrongLength { what: "a window of whole runs", expected, actual: inputs }.into());
        }
        Ok(Self { run, ..Self::new(inputs, indices)? })
    }

    /// One window: all of a vector.
    pub fn whole(inputs: usize) -> Self {
        Self { inputs, run: inputs, indices: (0..inputs).map(Some).collect() }
    }

    /// How many windows.
    pub fn count(&self) -> usize {
        self.indices.len() / self.inputs.max(1)
    }

    /// Inputs of each.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Inputs that windows read together.
    pub(super) fn run(&self) -> usize {
        self.run
    }

    pub(super) fn window(&self, index: usize) -> &[Option<usize>] {
        &self.indices[index * self.inputs..][..self.inputs]
    }

    pub(super) fn check(&self, count: usize) -> Result<(), Error> {
        match self.indices.iter().flatten().find(|&&index| index >= count) {
            Some(&index) => Err(Misuse::NoSuchInput { index, count }.into()),
            None => Ok(()),
        }
    }
}
