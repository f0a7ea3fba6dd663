//! ReLU into a ring that may be wider, and the sign, in two rounds.
//!
//! With `x^ = x + r` in Z_2^n, top bits `t^` and `t` of `x^` and `r` and `e` the shares of `[low(r) <= low(x^)]` over `n - 1`
//! bits, `x >= 0` has the bit `d = t^ ^ t ^ e`. The parties open `o = e ^ u`, so `d = d^ ^ v` with `d^ = t^ ^ o` public and
//! `v = t ^ u` a bit that only the dealer knows.
//!
//! If `d = 1`, then `x` as an integer is `z = x^ - r + 2^n (1 - t^) t`: below `2^(n-1)`, `x` tells from the two top bits
//! whether the sum wrapped. So the value goes on in any wider ring without a second comparison. The result is
//! `d z = v z + d^ (1 - 2 v) z`, linear in shares of `v`, `v r`, `t v`, `t` and the mask's own wrap.

use privet_ring::Modulus;

use crate::Role;
use crate::compared::Compared;

/// `max(x, 0)` from Z_2^n into Z_2^m, `m >= n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relu {
    input: Modulus,
    output: Modulus,
}

impl Relu {
    /// From `bits` to `wide` bits.
    ///
    /// # Panics
    /// Unless `1 <= bits <= wide <= 64`.
    pub fn new(bits: u32, wide: u32) -> Self {
        assert!(bits <= wide, "a ReLU does not shrink its ring");
        Self { input: Modulus::new(bits), output: Modulus::new(wide) }
    }

    fn widens(self) -> bool {
        self.output.bits() > self.input.bits()
    }
}

impl Compared for Relu {
    fn input(&self) -> Modulus {
        self.input
    }

    fn output(&self) -> Modulus {
        self.output
    }

    fn compared_bits(&self) -> u32 {
        self.input.bits() - 1
    }

    fn public_point(&self, opened: u64) -> u64 {
        opened & (self.input.mask() >> 1)
    }

    fn secret_point(&self, mask: u64) -> u64 {
        mask & (self.input.mask() >> 1)
    }

    fn secret_rings(&self) -> Vec<Modulus> {
        let mut rings = vec![self.output; 2];
        if self.widens() {
            rings.resize(5, Modulus::new(self.output.bits() - self.input.bits()));
        }
        rings
    }

    fn secrets(&self, masks: [u64; 2], flip: bool, out: &mut [u64]) {
        let mask = self.input.reduce(masks[0].wrapping_add(masks[1]));
        let top = self.input.sign(mask);
        let v = top ^ u64::from(flip);
        out[0] = v;
        out[1] = v.wrapping_mul(mask);
        if self.widens() {
            let wrap = (masks[0] + masks[1]) >> self.input.bits();
            out[2..].copy_from_slice(&[wrap, wrap + top, v & top]);
        }
    }

    fn choose(&self, role: Role, mask: u64, opened: u64, bit: bool, secrets: &[u64]) -> u64 {
        let top = self.input.sign(opened) == 1;
        // This party's shares of `x^ - z` and of `v (x^ - z)`.
        let (mut gap, mut product) = (mask, secrets[1]);
        if self.widens() {
            let wraps = if top { secrets[2] } else { secrets[3] };
            gap = gap.wrapping_sub(wraps << self.input.bits());
            product = product.wrapping_sub(if top { 0 } else { secrets[4] << self.input.bits() });
        }
        let hidden = secrets[0].wrapping_mul(opened).wrapping_sub(product);
        if top != bit { role.public(opened).wrapping_sub(gap).wrapping_sub(hidden) } else { hidden }
    }
}
