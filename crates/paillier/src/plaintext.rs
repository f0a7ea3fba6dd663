//! Signed integers that are encrypted.

use zeroize::Zeroizing;

/// A signed integer below half the public key, in two's complement; wiped on drop, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Plaintext {
    /// Least significant first; the top bit of the last word is the sign.
    words: Zeroizing<Vec<u64>>,
}

impl Plaintext {
    /// From words in two's complement, least significant first, at least one.
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        debug_assert!(!words.is_empty());
        Self { words: Zeroizing::new(words) }
    }

    /// Word `i` of the number, continued by its sign.
    pub(crate) fn word(&self, i: usize) -> u64 {
        self.words.get(i).copied().unwrap_or_else(|| self.sign())
    }

    /// All bits if negative, none otherwise.
    pub(crate) fn sign(&self) -> u64 {
        let top = self.words.last().copied().unwrap_or(0);
        (top as i64 >> 63) as u64
    }

    /// Words that the number was made of.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// The value, if 64 bits hold it.
    pub fn to_i64(&self) -> Option<i64> {
        let value = self.word(0) as i64;
        let sign = (value >> 63) as u64;
        self.words.iter().skip(1).all(|&word| word == sign).then_some(value)
    }
}

impl From<i64> for Plaintext {
    fn from(value: i64) -> Self {
        Self::from_words(vec![value as u64])
    }
}

impl std::fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plaintext(..)")
    }
}
