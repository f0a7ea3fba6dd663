//! Vectors of ciphertexts, ring elements and bits as messages.

use privet_channel::{Channel, HEADER_BYTES};
use privet_paillier::{Ciphertexts, KeySize, PublicKey};
use privet_ring::{Bits, Modulus};

use crate::{Error, PeerMisbehaved};

/// Ciphertexts of a message: half a megabyte, so that the peer works on one while the next is on its way.
const CHUNK: usize = 1024;

/// Sends all of them, without a flush before the end.
pub(super) fn send(channel: &mut Channel, ciphertexts: &Ciphertexts) -> Result<(), Error> {
    for start in (0..ciphertexts.len()).step_by(CHUNK) {
        let end = ciphertexts.len().min(start + CHUNK);
        channel.send(&ciphertexts.slice(start..end).to_bytes())?;
    }
    Ok(channel.flush()?)
}

/// Bytes on the wire of `count` ciphertexts.
pub(super) fn ciphertext_bytes(size: KeySize, count: usize) -> usize {
    count * size.ciphertext_bytes() + count.div_ceil(CHUNK) * HEADER_BYTES
}

/// Receives `count` ciphertexts, each checked, and hands them to `take` as they come.
pub(super) fn receive(
    channel: &mut Channel,
    key: &PublicKey,
    count: usize,
    mut take: impl FnMut(Ciphertexts) -> Result<(), Error>,
) -> Result<(), Error> {
    for start in (0..count).step_by(CHUNK) {
        let chunk = CHUNK.min(count - start);
        let bytes = channel.recv(chunk * key.size().ciphertext_bytes())?;
        take(Ciphertexts::from_bytes(key, chunk, &bytes)?)?;
    }
    Ok(())
}

/// Ring elements of a message.
const ELEMENTS: usize = 1 << 16;

pub(super) const ACKNOWLEDGED: usize = 1 + HEADER_BYTES;

/// Sends ring elements, packed to the ring's width; no message for none.
pub(super) fn send_values(channel: &mut Channel, ring: Modulus, values: &[u64]) -> Result<(), Error> {
    for part in values.chunks(ELEMENTS) {
        channel.send(&ring.pack(part))?;
    }
    Ok(channel.flush()?)
}

/// Receives `count` ring elements.
pub(super) fn receive_values(channel: &mut Channel, ring: Modulus, count: usize) -> Result<Vec<u64>, Error> {
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let part = ELEMENTS.min(count - values.len());
        let bytes = channel.recv(ring.packed_bytes(part))?;
        values.extend(ring.unpack(&bytes, part).map_err(PeerMisbehaved::Message)?);
    }
    Ok(values)
}

/// Bytes on the wire of `count` ring elements.
pub(super) fn ring_bytes(ring: Modulus, count: usize) -> usize {
    let (whole, rest) = (count / ELEMENTS, count % ELEMENTS);
    let message = |count: usize| if count == 0 { 0 } else { HEADER_BYTES + ring.packed_bytes(count) };
    whole * message(ELEMENTS) + message(rest)
}

/// Sends bits; no message for none.
pub(super) fn send_bits(channel: &mut Channel, bits: &Bits) -> Result<(), Error> {
    if !bits.is_empty() {
        channel.send(&bits.to_bytes())?;
    }
    Ok(())
}

pub(super) fn receive_bits(channel: &mut Channel, count: usize) -> Result<Bits, Error> {
    let bytes = if count == 0 { Vec::new() } else { channel.recv(count.div_ceil(8))? };
    Ok(Bits::from_bytes(&bytes, count).map_err(PeerMisbehaved::Message)?)
}

/// Bytes on the wire of `count` bits.
pub(super) fn bit_bytes(count: usize) -> usize {
    if count == 0 { 0 } else { HEADER_BYTES + count.div_ceil(8) }
}

/// Tells the peer that all it sent was used.
pub(super) fn acknowledge(channel: &mut Channel) -> Result<(), Error> {
    channel.send(&[1])?;
    Ok(channel.flush()?)
}

/// Waits for [`acknowledge`].
pub(super) fn await_acknowledgement(channel: &mut Channel) -> Result<(), Error> {
    Ok(channel.recv(1).map(drop)?)
}
