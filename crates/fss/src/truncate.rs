//! Exact truncation, in two rounds.
//!
//! With `x^ = x + r` in Z_2^n and `c = [low(x^) < low(r)]` over the `f` bits that are dropped,
//! `floor(x / 2^f) = (x^ >> f) - (r >> f) - c` in Z_2^(n-f). The parties open `c ^ u`; then `c` is `u` or `1 - u`, and one
//! of the two secrets `(r >> f) + u`, `(r >> f) - u` completes it.

use privet_ring::Modulus;

use crate::Role;
use crate::compared::Compared;

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

impl Compared for Truncate {
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

    fn secret_rings(&self) -> Vec<Modulus> {
        vec![self.output(); 2]
    }

    fn secrets(&self, masks: [u64; 2], flip: bool, out: &mut [u64]) {
        let high = self.input.reduce(masks[0].wrapping_add(masks[1])) >> self.dropped;
        out[0] = high.wrapping_add(u64::from(flip));
        out[1] = high.wrapping_sub(u64::from(flip));
    }

    fn choose(&self, role: Role, _: u64, opened: u64, bit: bool, secrets: &[u64]) -> u64 {
        let high = opened >> self.dropped;
        // The opened bit is that of the opposite comparison.
        if bit {
            role.public(high).wrapping_sub(secrets[0])
        } else {
            role.public(high.wrapping_sub(1)).wrapping_sub(secrets[1])
        }
    }
}
