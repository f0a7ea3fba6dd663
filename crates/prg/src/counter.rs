//! AES-128 in counter mode with random access.

use crate::arch::Aes128;
use crate::{Block, Seed};

/// The stream of blocks `AES_seed(0), AES_seed(1), ...`, readable from any position.
///
/// [`crate::Prg`] reads the same stream from its start, so a seed must be given to one of the two only.
#[derive(Clone)]
pub struct KeyStream {
    aes: Aes128,
}

impl KeyStream {
    /// Schedules the key; the schedule is wiped on drop.
    pub fn new(seed: &Seed) -> Self {
        Self { aes: Aes128::new(seed.as_bytes()) }
    }

    /// The cipher, in the code chosen for this machine.
    pub(crate) fn cipher(&self) -> &Aes128 {
        &self.aes
    }

    /// Writes blocks `first .. first + out.len()` of the stream. Fastest for multiples of 64 blocks.
    pub fn blocks(&self, first: u64, out: &mut [Block]) {
        self.aes.counters(first, out);
    }
}
