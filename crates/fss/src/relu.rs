//! ReLU into a ring that may be wider, and the sign, in two rounds.
//!
//! With `x^ = x + r` in Z_2^n, top bits `t^` and `t` of `x^` and `r` and `e` the shares of `[low(r) <= low(x^)]` over `n - 1`
//! bits, `x >= 0` has the bit `d = t^ ^ t ^ e`. The parties open `o = e ^ u`, so `d = d^ ^ v` with `d^ = t^ ^ o` public and
//! `v = t ^ u` a bit that only the dealer knows.
//!
//! If `d = 1`, then `x` as an integer is `z = x^ - r + 2^n (1 - t^) t`: below `2^(n-1)`, `x` tells from the two top bits
//! whether the sum wrapped. So the value goes on in any wider ring without a second comparison. The result is
//! `d z = v z + d^ (1 - 2 v) z`, linear in shares of `v`, `v r`, `t v`, `t` and the mask's own wrap.
//!
//! Both parts of `r` and `u` come from the parties' seeds. Of each secret the client's share comes from its seed, and the
//! server's is what the dealer sends: the corrections.

use std::io::Write;

use privet_prg::{Seed, Wiped};
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::compared::{
    compare, deal_comparisons, deal_digits, digits_for, less_by_digits, ones, product_bytes, word_bytes,
};
use crate::digits::{columns, parts};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, secrets};

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

    /// Shares of `max(x, 0)` in Z_2^m; `x`: this party's shares in Z_2^n. Two rounds, or three by digits.
    ///
    /// # Errors
    /// If the link or the key fails, or a message of the peer has another length.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (role, count, ring) = (party.role, x.len(), self.input);
        let mut streams = Streams::new(role, seed);
        let masks = Wiped::from(streams.masks(count, ring));
        let mut opened = ring.add(x, &masks);
        let reply = party.channel.exchange(&ring.pack(&opened))?;
        ring.add_packed(&mut opened, &reply)?;
        let points: Vec<u64> = opened.iter().map(|x| self.low(*x)).collect();
        let mut bits = match digits_for(self.low_bits(), count) {
            None => compare(self.low_bits(), &points, &mut streams, body)?,
            // The secret is at most the public number unless that is less.
            Some(digits) => less_by_digits(&digits, &points, &mut streams, party, body)?.xor(&ones(role, count)),
        };
        bits.xor_assign(&streams.flips(count));
        bits.xor_assign(&Bits::from_bytes(&party.channel.exchange(&bits.to_bytes())?, count)?);
        secrets::fold(&self.secret_rings(), count, role, &mut streams, body, |i, secrets| {
            self.output.reduce(self.choose(role, masks[i], opened[i], bits.get(i), secrets))
        })
    }

    fn widens(self) -> bool {
        self.output.bits() > self.input.bits()
    }

    /// Bits below the top one, which are compared.
    fn low_bits(self) -> u32 {
        self.input.bits() - 1
    }

    fn low(self, value: u64) -> u64 {
        value & (self.input.mask() >> 1)
    }

    /// The rings of the secrets.
    fn secret_rings(self) -> Vec<Modulus> {
        let mut rings = vec![self.output; 2];
        if self.widens() {
            rings.resize(5, Modulus::new(self.output.bits() - self.input.bits()));
        }
        rings
    }

    /// The secrets: from both parts of the mask and from the flip `u`.
    fn secrets(self, masks: [u64; 2], flip: bool, out: &mut [u64]) {
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

    /// This party's share of the result: from its part of the mask, `x^`, `o` and its shares of the secrets.
    fn choose(self, role: Role, mask: u64, opened: u64, bit: bool, secrets: &[u64]) -> u64 {
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

impl Gate for Relu {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let secrets = secrets::bytes(&self.secret_rings(), count);
        match digits_for(self.low_bits(), count) {
            None => KeyBytes { words: word_bytes(self.low_bits(), count), corrections: secrets },
            Some(digits) => {
                let compared = digits.table_bytes(count) + product_bytes(digits.count(), count);
                KeyBytes { words: 0, corrections: compared + secrets }
            }
        }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        let bits = count.div_ceil(8);
        let digits = digits_for(self.low_bits(), count).map(|digits| columns(digits.count()) * bits);
        [self.input.packed_bytes(count)].into_iter().chain(digits).chain([bits]).collect()
    }

    fn parts(&self, count: usize) -> usize {
        digits_for(self.low_bits(), count).map_or(0, |_| parts(count))
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let [mut client, mut server] = seeds.streams();
        let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, self.input)));
        let sum = |i: usize| masks[0][i].wrapping_add(masks[1][i]);
        let points = Zeroizing::new((0..count).map(|i| self.low(sum(i))).collect::<Vec<_>>());
        let mut corrections = match digits_for(self.low_bits(), count) {
            None => {
                deal_comparisons(self.low_bits(), &points, [&mut client, &mut server], words)?;
                Vec::new()
            }
            Some(digits) => {
                let columns = 0..columns(digits.count());
                let hidden: Vec<Bits> = columns.map(|_| client.flips(count).xor(&server.flips(count))).collect();
                deal_digits(&digits, &points, &hidden, &mut client)
            }
        };
        let flips = client.flips(count).xor(&server.flips(count));
        corrections.extend(secrets::correct(&self.secret_rings(), count, &mut client, |i, out| {
            self.secrets([masks[0][i], masks[1][i]], flips.get(i), out);
        }));
        Ok(corrections)
    }
}
