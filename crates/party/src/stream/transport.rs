//! Vectors of ciphertexts as messages.

use privet_channel::Channel;
use privet_paillier::{Ciphertexts, PublicKey};

use crate::Error;

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
