//! Exact truncation, in two rounds.
//!
//! With `x^ = x + r` in Z_2^n and `c = [low(x^) < low(r)]` over the `f` bits that are dropped,
//! `floor(x / 2^f) = (x^ >> f) - (r >> f) - c` in Z_2^(n-f): the parties get shares of `(r >> f) + c` ([`carry`]).

use std::io::Write;

use privet_ring::Modulus;

use crate::carry::{self, Carried};
use crate::digits;
use crate::{Error, Gate, KeyBytes, Role, Seeds};

/// `floor(x / 2^f)` from Z_2^n into Z_2^(n-f).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncate {
    input: Modulus,
    dropped: u32,
}

impl Truncate {
    /// Drops the low `dropped` of `bits` bits.
    ///
    /// # Panics
    /// Unless `1 <= dropped < bits <= 64`.
    pub fn new(bits: u32, dropped: u32) -> Self {
        assert!(dropped >= 1 && dropped < bits, "a truncation drops some bits and leaves some");
        Self { input: Modulus::new(bits), dropped }
    }
}

impl Carried for Truncate {
    fn input(&self) -> Modulus {
        self.input
    }

    fn output(&self) -> Modulus {
        Modulus::new(self.input.bits() - self.dropped)
    }

    fn compared_bits(&self) -> u32 {
        self.dropped
    }

    fn public_point(&self, opened: u64) -> u64 {
        Modulus::new(self.dropped).reduce(opened)
    }

    fn secret_point(&self, mask: u64) -> u64 {
        Modulus::new(self.dropped).reduce(mask)
    }

    fn carry_ring(&self) -> Modulus {
        self.output()
    }

    fn base(&self, masks: [u64; 2]) -> u64 {
        self.input.reduce(masks[0].wrapping_add(masks[1])) >> self.dropped
    }

    fn complete(&self, role: Role, _: u64, opened: u64, carried: u64) -> u64 {
        role.public(opened >> self.dropped).wrapping_sub(carried)
    }
}

impl Gate for Truncate {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        carry::key_bytes(self, count)
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        carry::message_bytes(self, count)
    }

    fn parts(&self, count: usize) -> usize {
        digits::parts(count)
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        carry::deal(self, count, seeds, words)
    }
}
