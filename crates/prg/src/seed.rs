//! A 128-bit secret key of a generator.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Block;

/// 16 secret bytes from which a [`crate::Prg`] or a [`crate::KeyStream`] is expanded; wiped on drop, never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Takes the bytes of a seed.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the seed.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The seed whose bytes are those of `block`, lowest first.
    pub fn from_block(block: Block) -> Self {
        Self(block.to_le_bytes())
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}
