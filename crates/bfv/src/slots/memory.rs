//! Bytes that objects and steps take in memory: upper bounds, for planning.

use super::parameters::{LIMBS, Parameters, WITH_SPECIAL};

impl Parameters {
    /// Of a ciphertext or a sum.
    pub fn ciphertext_memory(&self) -> u64 {
        self.words(2 * LIMBS)
    }

    /// Of a polynomial of weights.
    pub fn weights_memory(&self) -> u64 {
        self.words(LIMBS)
    }

    /// Of a rotation key.
    pub fn rotation_key_memory(&self) -> u64 {
        self.words(2 * LIMBS * WITH_SPECIAL + 1)
    }

    /// That one rotation, one reply, one polynomial of weights, one encryption or one opening needs while it runs.
    pub fn working_memory(&self) -> u64 {
        self.words((LIMBS + 2) * WITH_SPECIAL + 2 * LIMBS)
    }

    fn words(&self, vectors: usize) -> u64 {
        (8 * vectors * self.degree()) as u64
    }
}
