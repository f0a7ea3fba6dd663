//! Shares of the bit `x >= 0` (DReLU), in one round. See [`crate::Relu`] for the formula.

use std::io::Write;

use privet_prg::{Seed, Wiped};
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, compared};

/// `x >= 0` for signed `x` in Z_2^n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    ring: Modulus,
}

impl Sign {
    /// In the ring of `bits` bits.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub fn new(bits: u32) -> Self {
        Self { ring: Modulus::new(bits) }
    }

    /// Shares of the bits `x >= 0`; `x`: this party's shares. One round.
    pub fn evaluate(self, party: &mut Party<'_>, seed: &Seed, body: &mut dyn Source, x: &[u64]) -> Result<Bits, Error> {
        let (ring, count) = (self.ring, x.len());
        let mut streams = Streams::new(party.role, seed);
        let mut opened = ring.add(x, &Wiped::from(streams.masks(count, ring)));
        let reply = party.channel.exchange(&ring.pack(&opened))?;
        ring.add_packed(&mut opened, &reply)?;
        let points: Vec<u64> = opened.iter().map(|x| self.low(*x)).collect();
        let mut bits = compared::compare(ring.bits() - 1, &points, &mut streams, body)?;
        match party.role {
            Role::Client => bits.xor_assign(&streams.flips(count)),
            Role::Server => {
                bits.xor_assign(&Bits::from_bytes(body.pull(count.div_ceil(8))?, count)?);
                let tops: Vec<bool> = opened.iter().map(|x| ring.sign(*x) == 1).collect();
                bits.xor_assign(&Bits::from_bools(&tops));
            }
        }
        Ok(bits)
    }

    fn low(self, value: u64) -> u64 {
        value & (self.ring.mask() >> 1)
    }
}

impl Gate for Sign {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes { words: compared::word_bytes(self.ring.bits() - 1, count), corrections: count.div_ceil(8) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![self.ring.packed_bytes(count)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let [mut client, mut server] = seeds.streams();
        let masks = [&mut client, &mut server].map(|streams| Zeroizing::new(streams.masks(count, self.ring)));
        let masks = Zeroizing::new(self.ring.add(&masks[0], &masks[1]));
        let points = Zeroizing::new(masks.iter().map(|mask| self.low(*mask)).collect::<Vec<_>>());
        compared::deal_comparisons(self.ring.bits() - 1, &points, [&mut client, &mut server], words)?;
        let tops: Vec<bool> = masks.iter().map(|mask| self.ring.sign(*mask) == 1).collect();
        Ok(Bits::from_bools(&tops).xor(&client.flips(count)).to_bytes())
    }
}
