//! Exact truncation, in two rounds or three.
//!
//! `floor(x / 2^f) = (x_C >> f) + (x_S >> f) + c` in Z_2^(n-f) for any shares of `x` in Z_2^n, with `c` the carry of their `f` low bits
//! ([`carry`]), of which alone anything is opened.

use privet_ring::Modulus;

use crate::Role;
use crate::carry::Carried;

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

    fn low_bits(&self) -> u32 {
        self.dropped
    }

    fn addend(&self, _: Role, share: u64) -> u64 {
        self.input.reduce(share)
    }

    fn carry_ring(&self) -> Modulus {
        self.output()
    }

    fn complete(&self, _: Role, addend: u64, carry: u64) -> u64 {
        (addend >> self.dropped).wrapping_add(carry)
    }
}
