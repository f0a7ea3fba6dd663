//! Keys: the owner's, and what is derived from it.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac::{HMAC_SHA256, Key, Tag, sign, verify};

use crate::MAGIC;

/// The key of a party's state: 32 bytes that the party's owner keeps elsewhere than on the disk it protects.
#[derive(Clone)]
pub struct StateKey {
    files: Key,
    headers: Key,
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}

impl StateKey {
    /// The key with these bytes, which must be random: nothing here slows down a guess.
    pub fn new(bytes: &[u8; 32]) -> Self {
        let master = Key::new(HMAC_SHA256, bytes);
        let derive = |label: &[u8]| Key::new(HMAC_SHA256, sign(&master, label).as_ref());
        Self { files: derive(b"privet files at rest"), headers: derive(b"privet headers at rest") }
    }

    /// The key of the file with this salt.
    pub(crate) fn file(&self, salt: &[u8; 32]) -> FileKey {
        let key = UnboundKey::new(&AES_256_GCM, sign(&self.files, salt).as_ref()).expect("32 bytes");
        FileKey(LessSafeKey::new(key))
    }

    /// The tag of a header.
    pub(crate) fn tag(&self, salt: &[u8; 32], bytes: u64, name: &str) -> Tag {
        sign(&self.headers, &covered(salt, bytes, name))
    }

    /// Whether `tag` is the header's.
    pub(crate) fn is_tag(&self, salt: &[u8; 32], bytes: u64, name: &str, tag: &[u8]) -> bool {
        verify(&self.headers, &covered(salt, bytes, name), tag).is_ok()
    }
}

/// What a header's tag covers: all but the name are of fixed length.
fn covered(salt: &[u8; 32], bytes: u64, name: &str) -> Vec<u8> {
    [MAGIC, &salt[..], &bytes.to_le_bytes(), name.as_bytes()].concat()
}

/// The key of one file, whose chunks are numbered.
pub(crate) struct FileKey(LessSafeKey);

impl FileKey {
    /// Encrypts a chunk in place and appends its tag.
    pub(crate) fn seal(&self, index: u64, chunk: &mut Vec<u8>) {
        self.0.seal_in_place_append_tag(nonce(index), Aad::empty(), chunk).expect("chunks are short");
    }

    /// Decrypts a chunk in place; `None` if it is not this file's chunk `index`.
    pub(crate) fn open<'a>(&self, index: u64, chunk: &'a mut [u8]) -> Option<&'a [u8]> {
        self.0.open_in_place(nonce(index), Aad::empty(), chunk).ok().map(|plain| &*plain)
    }
}

/// A chunk's number. The file's key is its own, so no nonce is ever used twice under one key.
fn nonce(index: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&index.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}
