//! Sign extension: of every value, in two rounds, or of a non-negative value without a comparison, in one.
//!
//! A value `y` in `[0, 2^n)` that is opened as `y^ = y + r` is `y^ - r + 2^n c` with `c = [y^ < r]`, and `r = r_C + r_S - 2^n w`
//! with `w` the wrap of the mask's parts. So a party needs shares of `w + c` in Z_2^(m-n) to go on in Z_2^m.
//!
//! [`Extend`] shifts a signed value by `2^(n-1)` to make it such a `y`, and looks the carry up ([`carry`]). [`ExtendBounded`] knows that
//! `y < 2^(n-1)`: then `c = t (1 - t^)` by the top bits of `r` and `y^`, and `t^` is public.

use std::io::Write;

use privet_prg::Seed;
use privet_ring::Modulus;
use zeroize::Zeroizing;

use crate::carry::{self, Carried};
use crate::digits;
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
}

impl Carried for Extend {
    fn input(&self) -> Modulus {
        self.input
    }

    fn output(&self) -> Modulus {
        self.output
    }

    fn compared_bits(&self) -> u32 {
        self.input.bits()
    }

    fn public_point(&self, opened: u64) -> u64 {
        self.input.reduce(opened.wrapping_add(1 << (self.input.bits() - 1)))
    }

    fn secret_point(&self, mask: u64) -> u64 {
        mask
    }

    fn carry_ring(&self) -> Modulus {
        Modulus::new(self.output.bits() - self.input.bits())
    }

    fn base(&self, masks: [u64; 2]) -> u64 {
        (masks[0] + masks[1]) >> self.input.bits()
    }

    fn complete(&self, role: Role, mask: u64, opened: u64, carried: u64) -> u64 {
        let shifted = self.public_point(opened).wrapping_sub(1 << (self.input.bits() - 1));
        role.public(shifted).wrapping_sub(mask).wrapping_add(carried << self.input.bits())
    }
}

impl Gate for Extend {
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
    ///
    /// # Errors
    /// If the link or the key fails.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (opening, message) = self.start(party.role, seed, x);
        opening.finish(&party.channel.exchange(&message)?, body)
    }

    /// This party's first step. Returns the message for the other.
    pub fn start(self, role: Role, seed: &Seed, x: &[u64]) -> (Extending, Vec<u8>) {
        let mut streams = Streams::new(role, seed);
        let masks = Zeroizing::new(streams.masks(x.len(), self.input));
        let own: Vec<u64> =
            (x.iter().zip(masks.iter())).map(|(x, mask)| self.input.reduce(x.wrapping_add(*mask))).collect();
        let message = self.input.pack(&own);
        (Extending { gate: self, role, streams, masks, own }, message)
    }

    fn secret_rings(self) -> [Modulus; 2] {
        [Modulus::new(self.output.bits() - self.input.bits()); 2]
    }
}

/// A batch of [`ExtendBounded`] whose masked input is on its way.
pub struct Extending {
    gate: ExtendBounded,
    role: Role,
    streams: Streams,
    masks: Zeroizing<Vec<u64>>,
    own: Vec<u64>,
}

impl Extending {
    /// This party's shares of the results, `[n]`; the server reads its corrections from `body`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub fn finish(mut self, theirs: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let ExtendBounded { input, output } = self.gate;
        let opened = input.add(&self.own, &input.unpack(theirs, self.own.len())?);
        let Self { gate, role, streams, masks, .. } = &mut self;
        secrets::fold(&gate.secret_rings(), opened.len(), *role, streams, body, |i, wraps| {
            let wraps = if input.sign(opened[i]) == 1 { wraps[0] } else { wraps[1] };
            output.reduce(role.public(opened[i]).wrapping_sub(masks[i]).wrapping_add(wraps << input.bits()))
        })
    }
}

impl Gate for ExtendBounded {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes { words: 0, corrections: secrets::bytes(&self.secret_rings(), count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![self.input.packed_bytes(count)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, _: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let mut client = Streams::new(Role::Client, &seeds.client);
        let mut server = Streams::new(Role::Server, &seeds.server);
        let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, self.input)));
        Ok(secrets::correct(&self.secret_rings(), count, &mut client, |i, out| {
            let sum = masks[0][i] + masks[1][i];
            let wrap = sum >> self.input.bits();
            out.copy_from_slice(&[wrap, wrap + self.input.sign(sum)]);
        }))
    }
}
