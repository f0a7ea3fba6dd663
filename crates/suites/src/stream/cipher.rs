//! What hides values from the server.

use std::fmt;

use privet_paillier::KeySize;

/// A cipher under the client's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// Paillier, a ciphertext an element, multiplied while the client waits; as in PP-Stream.
    Paillier(KeySize),
    /// BFV on masks ahead of time; online the masked values themselves.
    Bfv,
}

impl Cipher {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Paillier(KeySize::Bits2048), Self::Paillier(KeySize::Bits3072), Self::Bfv];

    /// Its name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paillier(_) => "paillier",
            Self::Bfv => "bfv",
        }
    }

    /// Paillier with keys of so many bits.
    pub fn paillier(key_bits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| matches!(cipher, Self::Paillier(size) if size.bits() == key_bits))
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paillier(size) => write!(f, "Paillier with keys of {} bits", size.bits()),
            Self::Bfv => write!(f, "BFV"),
        }
    }
}

impl From<KeySize> for Cipher {
    fn from(size: KeySize) -> Self {
        Self::Paillier(size)
    }
}
