//! A shared bit as a number, in one round.
//!
//! The parties open `b^ = b ^ u`. Then `b` is `u` or `1 - u`: linear in a share of `u`.

use std::io::Write;

use privet_prg::Seed;
use privet_ring::{Bits, Modulus};
use zeroize::Zeroizing;

use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Seeds, Source, secrets};

/// A bit in Z_2^n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lift {
    ring: Modulus,
}

impl Lift {
    /// Into the ring of `bits` bits.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub fn new(bits: u32) -> Self {
        Self { ring: Modulus::new(bits) }
    }

    /// Shares of the bits as numbers; `bits`: this party's shares, `[n]`. One round.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the message has another length, or if the link or the key fails.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        bits: &Bits,
    ) -> Result<Vec<u64>, Error> {
        let count = bits.len();
        let mut streams = Streams::new(party.role, seed);
        let masked = bits.xor(&streams.flips(count));
        let opened = masked.xor(&Bits::from_bytes(&party.channel.exchange(&masked.to_bytes())?, count)?);
        let (role, ring) = (party.role, self.ring);
        secrets::fold(&[ring], count, role, &mut streams, body, |i, flip| {
            ring.reduce(if opened.get(i) { role.public(1).wrapping_sub(flip[0]) } else { flip[0] })
        })
    }
}

impl Gate for Lift {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        KeyBytes { words: 0, corrections: secrets::bytes(&[self.ring], count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![count.div_ceil(8)]
    }

    fn deal(&self, count: usize, seeds: &Seeds, _: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let [mut client, mut server] = seeds.streams();
        let flips = Zeroizing::new([client.flips(count), server.flips(count)]);
        let flips = flips[0].xor(&flips[1]);
        Ok(secrets::correct(&[self.ring], count, &mut client, |i, out| out[0] = u64::from(flips.get(i))))
    }
}
