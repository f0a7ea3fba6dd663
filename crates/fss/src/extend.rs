//! Sign extension: of every value, in two rounds or three, or of a non-negative value without a comparison, in one.
//!
//! Shares in Z_2^n of a value `y` in `[0, 2^n)` add up to `y + 2^n c`, with `c` their carry; so a party needs a share of `c` in Z_2^(m-n)
//! to go on in Z_2^m.
//!
//! [`Extend`] shifts a signed value by `2^(n-1)` to make it such a `y`, and looks the carry up ([`carry`]). [`ExtendBounded`] knows that
//! `y < 2^(n-1)`: then there is a carry unless the top bits of both shares are clear, `c = a + b - a b` with a bit of either party.
//! Each opens its bit behind one of its own, and the dealer shares the product of these two.

use std::io::Write;

use privet_prg::Seed;
use privet_ring::{Bits, Modulus, select};

use crate::carry::Carried;
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, secrets};

/// Signed values from Z_2^n to Z_2^m, `m > n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extend {
    input: Modulus,
    output: Modulus,
}

impl Extend {
    /// From `bits` to `wide` bits.
    ///
    /// # Panics
    /// Unless `1 <= bits < wide <= 64`.
    pub fn new(bits: u32, wide: u32) -> Self {
        assert!(bits < wide, "an extension widens the ring");
        Self { input: Modulus::new(bits), output: Modulus::new(wide) }
    }

    /// What makes a value non-negative.
    fn half(self) -> u64 {
        1 << (self.input.bits() - 1)
    }
}

impl Carried for Extend {
    fn input(&self) -> Modulus {
        self.input
    }

    fn output(&self) -> Modulus {
        self.output
    }

    fn low_bits(&self) -> u32 {
        self.input.bits()
    }

    /// The server raises the value by `2^(n-1)`.
    fn addend(&self, role: Role, share: u64) -> u64 {
        self.input.reduce(share.wrapping_add(role.public(self.half())))
    }

    fn carry_ring(&self) -> Modulus {
        Modulus::new(self.output.bits() - self.input.bits())
    }

    fn complete(&self, role: Role, addend: u64, carry: u64) -> u64 {
        addend.wrapping_sub(role.public(self.half())).wrapping_sub(carry << self.input.bits())
    }
}

/// Non-negative values from Z_2^n to Z_2^m; no words, one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendBounded {
    input: Modulus,
    output: Modulus,
}

impl ExtendBounded {
    /// For values in `[0, 2^(bits-1))`.
    ///
    /// # Panics
    /// Unless `1 <= bits < wide <= 64`.
    pub fn non_negative(bits: u32, wide: u32) -> Self {
        assert!(bits < wide, "an extension widens the ring");
        Self { input: Modulus::new(bits), output: Modulus::new(wide) }
    }

    /// Shares in Z_2^m of the value of `x`; `x`: this party's shares in Z_2^n. One round. A value out of bounds comes out
    /// wrong, and nothing tells.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (role, count, Self { input, output }) = (party.role, x.len(), self);
        let mut streams = Streams::new(role, seed);
        let flips = streams.flips(count);
        let masked = Bits::from_lowest(x.iter().map(|&x| input.sign(x))).xor(&flips);
        let reply = Bits::from_bytes(&party.channel.exchange(&masked.to_bytes())?, count)?;
        // With `a^ = a ^ u` and `b^ = b ^ v` opened, the client's share of the carry is `a (1 - b^)` and the server's `b^ ^ v (1 - a^)`, both
        // of them bits, less its share of `u v`: more by that where `a^` and `b^` differ.
        let bits = match role {
            Role::Client => masked.xor(&flips).and(&reply.not()),
            Role::Server => masked.xor(&flips.and(&reply.not())),
        };
        let (signs, wrap) = (masked.xor(&reply), [(1_u64 << input.bits()).wrapping_neg(); secrets::PART]);
        let mut results = x.to_vec();
        secrets::each_part(self.secret_ring(), count, role, &mut streams, body, |first, products| {
            let words = first / 64..(first + products.len()).div_ceil(64);
            let results = &mut results[first..][..products.len()];
            products.iter_mut().for_each(|product| *product <<= input.bits());
            let (bits, signs) = (&bits.words()[words.clone()], &signs.words()[words]);
            select::add_products(results, bits, &wrap[..results.len()], signs, products);
            output.reduce_all(results);
        })?;
        Ok(results)
    }

    fn secret_ring(self) -> Modulus {
        Modulus::new(self.output.bits() - self.input.bits())
    }
}

impl Gate for ExtendBounded {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes { words: 0, corrections: secrets::bytes(&[self.secret_ring()], count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![count.div_ceil(8)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, _: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let [mut client, mut server] = seeds.streams();
        let both = client.flips(count).and(&server.flips(count));
        Ok(secrets::correct(&[self.secret_ring()], count, &mut client, |i, out| out[0] = u64::from(both.get(i))))
    }
}
