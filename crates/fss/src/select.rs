//! Multiplexer: a shared bit times a shared ring element, in one round.
//!
//! The parties open `b^ = b ^ u` and `x^ = x + r`. With `h = u x = u x^ - u r`, `b x` is `h` if `b^ = 0` and `x - h` if not:
//! linear in shares of `u` and `u r`.

use std::io::Write;

use privet_prg::{Seed, Wiped};
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, secrets};

/// `b x` in Z_2^n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    ring: Modulus,
}

impl Select {
    /// In the ring of `bits` bits.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub fn new(bits: u32) -> Self {
        Self { ring: Modulus::new(bits) }
    }

    /// Shares of `b x`; `bits`, `x`: this party's shares, `[n]` each. One round.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        bits: &Bits,
        x: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let (selecting, message) = self.start(party.role, seed, bits, x);
        selecting.finish(&party.channel.exchange(&message)?, body)
    }

    /// This party's first step. Returns the message for the other.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(crate) fn start(self, role: Role, seed: &Seed, bits: &Bits, x: &[u64]) -> (Selecting, Vec<u8>) {
        assert_eq!(bits.len(), x.len(), "one bit for each value");
        let mut streams = Streams::new(role, seed);
        let masked = self.ring.add(x, &Wiped::from(streams.masks(x.len(), self.ring)));
        let masked_bits = bits.xor(&streams.flips(x.len()));
        let mut message = masked_bits.to_bytes();
        message.extend(self.ring.pack(&masked));
        (Selecting { gate: self, role, streams, x: Wiped::from(x.to_vec()), masked, masked_bits }, message)
    }
}

/// A batch of [`Select`] whose masked input is on its way.
pub(crate) struct Selecting {
    gate: Select,
    role: Role,
    streams: Streams,
    x: Wiped<u64>,
    masked: Vec<u64>,
    masked_bits: Bits,
}

impl Selecting {
    /// This party's shares of the results, `[n]`; the server reads its corrections from `body`. Fails with
    /// [`Error::PeerMisbehaved`] if the message has another length, or what `body` fails with.
    pub(crate) fn finish(mut self, message: &[u8], body: &mut dyn Source) -> Result<Vec<u64>, Error> {
        let (ring, count) = (self.gate.ring, self.x.len());
        let (bits, values) = message.split_at(message.len().min(count.div_ceil(8)));
        let bits = self.masked_bits.xor(&Bits::from_bytes(bits, count)?);
        let Self { role, streams, x, masked: opened, .. } = &mut self;
        ring.add_packed(opened, values)?;
        secrets::fold(&[ring; 2], count, *role, streams, body, |i, secrets| {
            let hidden = secrets[0].wrapping_mul(opened[i]).wrapping_sub(secrets[1]);
            ring.reduce(if bits.get(i) { x[i].wrapping_sub(hidden) } else { hidden })
        })
    }
}

impl Gate for Select {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes { words: 0, corrections: secrets::bytes(&[self.ring; 2], count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![count.div_ceil(8) + self.ring.packed_bytes(count)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, _: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let [mut client, mut server] = seeds.streams();
        let masks = Zeroizing::new([&mut client, &mut server].map(|streams| streams.masks(count, self.ring)));
        let flips = client.flips(count).xor(&server.flips(count));
        Ok(secrets::correct(&[self.ring; 2], count, &mut client, |i, out| {
            let flip = u64::from(flips.get(i));
            out.copy_from_slice(&[flip, flip.wrapping_mul(masks[0][i].wrapping_add(masks[1][i]))]);
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_another_length_is_refused() {
        let (gate, count) = (Select::new(37), 12);
        let whole = gate.message_bytes(count)[0];
        for length in 0..whole + 10 {
            let (bits, x, seed) = (Bits::zeros(count), vec![0; count], Seed::from_bytes([1; 16]));
            let (selecting, _) = gate.start(Role::Client, &seed, &bits, &x);
            let finished = selecting.finish(&vec![0; length], &mut [].as_slice());
            assert_eq!(finished.is_ok(), length == whole, "{length} bytes");
            assert!(finished.is_ok() || matches!(finished, Err(Error::PeerMisbehaved(_))));
        }
    }
}
