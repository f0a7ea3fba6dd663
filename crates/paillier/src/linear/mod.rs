//! Linear maps on encrypted vectors: dot products with signed weights, that is products of powers of ciphertexts.
//!
//! Two ways, of which [`Weights::plan`] takes the cheaper one by counting products (Bernstein and Pippenger's survey
//! has both):
//!
//! - *Tables*: the products of all patterns of a few inputs' weight bits are made once, and shared by all outputs
//!   (Straus; the "four Russians") and by all windows that read these inputs together. For layers.
//! - *Buckets*: an input goes into the bucket of its weight's digit, and buckets are raised to their digits together
//!   (Yao; Pippenger). For a few outputs.
//!
//! Which products are made, and how many, depends on shapes and the bits of a weight alone; a digit of zero takes part
//! like any other. The *places in memory* that are read depend on weights. Those are the secret of whoever computes
//! here, so only one who shares the processor's caches with the model's owner could see it; the other party sees when
//! the reply comes.

mod batch;
mod buckets;
mod plan;
mod runs;
mod scale;
mod tables;
mod weights;

#[cfg(test)]
mod tests;

pub use plan::Plan;
pub use weights::{Weights, Windows};

use crate::ciphertext::Ciphertexts;
use crate::error::{Error, Misuse};

impl Ciphertexts {
    /// The dot products of each row of `weights` with the ciphertexts that each window reads: encrypted `[outputs,
    /// windows]`.
    ///
    /// The results are functions of the inputs, not fresh ciphertexts: add a bias if there is one, and call
    /// [`Ciphertexts::randomize`] before they leave.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] if windows and weights differ in their inputs; [`Misuse::NoSuchInput`] if a window reads
    /// a ciphertext that is not there.
    pub fn dot(&self, weights: &Weights, windows: &Windows) -> Result<Self, Error> {
        self.dot_by(weights, windows, weights.plan(windows))
    }

    /// As [`Ciphertexts::dot`], in a given way.
    pub(crate) fn dot_by(&self, weights: &Weights, windows: &Windows, plan: Plan) -> Result<Self, Error> {
        let [expected, actual] = [weights.inputs(), windows.inputs()];
        if expected != actual {
            return Err(Misuse::WrongLength { what: "a window", expected, actual }.into());
        }
        windows.check(self.len())?;
        let (key, residues) = (self.key(), self.residues());
        let out = match plan {
            Plan::Tables { run, inputs, bits } => {
                tables::dot(key, residues, weights, windows, tables::Shape { run, group: inputs, bits })
            }
            Plan::Buckets { bits, parts } => buckets::dot(key, residues, weights, windows, bits, parts),
        };
        Ok(Self::new(key, out?))
    }
}
