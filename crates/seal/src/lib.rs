//! Files at rest: plain, or sealed under a key so that whoever reads the disk learns lengths alone, and whoever writes to it
//! is noticed.
//!
//! A sealed file is a header and chunks:
//!
//! ```text
//! magic [8]   salt [32]   length of the plaintext [8]   tag [32]
//! chunk 0: CHUNK bytes and a tag [16]   chunk 1   ...   the last chunk: what is left and a tag [16]
//! ```
//!
//! The salt is drawn for each file and makes the file's own key, `HMAC-SHA256(key, salt)`; chunk `i` is sealed by AES-256-GCM under
//! that key with the nonce `i`, so a chunk opens in no other file and at no other position. The header's tag,
//! `HMAC-SHA256(header key, salt | length | name)`, binds the length, so a file that was cut or extended is refused when it is opened,
//! and the file's name in its folder, so one file cannot stand in for another. What a seal cannot notice is an older file put
//! back under the same name: the store's spent markers are for that, and not putting markers back is the owner's part.
//!
//! Chunks open in any order and from several threads, because keys of function secret sharing are read so.

#![forbid(unsafe_code)]

mod key;
mod reader;
mod writer;

pub use key::StateKey;
pub use reader::Stored;
pub use writer::Writer;

/// Bytes of plaintext in a chunk: large enough that tags cost a thousandth, small enough for a read of a few bytes.
pub const CHUNK: usize = 1 << 14;

/// Bytes of the header.
const HEADER: usize = 8 + 32 + 8 + 32;

/// Bytes of a chunk's tag.
const TAG: usize = 16;

/// What a sealed file begins with: the format's name and version.
const MAGIC: &[u8; 8] = b"PRIVETS1";

/// Bytes on disk of a sealed file with `bytes` bytes of plaintext.
pub fn sealed_bytes(bytes: u64) -> u64 {
    bytes.saturating_add(HEADER as u64).saturating_add(bytes.div_ceil(CHUNK as u64).saturating_mul(TAG as u64))
}
