//! Vectors of bits, packed 64 to a word.

use privet_prg::Wiped;
use zeroize::Zeroize;

/// A packed vector of bits: bit `i` is at position `i % 64` of word `i / 64`; unused high bits of the last word are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

/// A packed vector was given `actual` words or bytes where its length in bits asks for `expected`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a packed bit vector needs {expected} units of storage but {actual} were given")]
pub struct WrongLength {
    /// Words or bytes that the length in bits asks for.
    pub expected: usize,
    /// Words or bytes that were given.
    pub actual: usize,
}

impl Zeroize for Bits {
    /// Wipes the bits, with what lies behind the last one, and gives the memory back.
    fn zeroize(&mut self) {
        drop(Wiped::from(std::mem::take(self).words));
    }
}

impl Bits {
    /// `len` zero bits.
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// Takes packed words; bits at and beyond `len` are cleared.
    ///
    /// # Errors
    /// [`WrongLength`] if `words` is not exactly `len / 64`, rounded up.
    pub fn from_words(words: Vec<u64>, len: usize) -> Result<Self, WrongLength> {
        let expected = len.div_ceil(64);
        if words.len() != expected {
            return Err(WrongLength { expected, actual: words.len() });
        }
        let mut bits = Self { words, len };
        bits.clear_tail();
        Ok(bits)
    }

    /// Packs one bit per entry.
    pub fn from_bools(values: &[bool]) -> Self {
        Self::from_lowest(values.iter().map(|&value| u64::from(value)))
    }

    /// Packs the lowest bit of every value.
    pub fn from_lowest(mut values: impl ExactSizeIterator<Item = u64>) -> Self {
        let len = values.len();
        // Without a branch for each value.
        let mut word =
            |bits: usize| values.by_ref().take(bits).enumerate().fold(0, |word, (i, value)| word | (value & 1) << i);
        let mut words: Vec<u64> = (0..len / 64).map(|_| word(64)).collect();
        if !len.is_multiple_of(64) {
            words.push(word(len % 64));
        }
        Self { words, len }
    }

    /// Reads `len` bits from their wire form, `len / 8` bytes rounded up.
    ///
    /// # Errors
    /// [`WrongLength`] if `bytes` has another length.
    pub fn from_bytes(bytes: &[u8], len: usize) -> Result<Self, WrongLength> {
        let expected = len.div_ceil(8);
        if bytes.len() != expected {
            return Err(WrongLength { expected, actual: bytes.len() });
        }
        let (whole, rest) = bytes.as_chunks();
        let mut words = Vec::with_capacity(len.div_ceil(64));
        words.extend(whole.iter().map(|&word| u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            words.push(u64::from_le_bytes(word));
        }
        let mut bits = Self { words, len };
        bits.clear_tail();
        Ok(bits)
    }

    /// The wire form: `len / 8` bytes rounded up.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 8 * self.words.len()];
        let words = bytes.as_chunks_mut().0.iter_mut().zip(&self.words);
        words.for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        bytes.truncate(self.len.div_ceil(8));
        bytes
    }

    /// Takes all bits away and keeps the memory, which holds them until it is written over. If it has more than twice the room for `len`
    /// bits, it is wiped and given back.
    pub fn clear_for(&mut self, len: usize) {
        if self.words.capacity() / 2 > len.div_ceil(64) {
            self.zeroize();
        }
        self.words.clear();
        self.len = 0;
    }

    /// Makes room for `len` bits in all. The memory before is wiped.
    pub fn reserve(&mut self, len: usize) {
        // One word more, which [`Self::extend`] needs for a moment.
        let words = len.div_ceil(64) + 1;
        if self.words.capacity() < words {
            let mut grown = Vec::with_capacity(words);
            grown.extend_from_slice(&self.words);
            Self { words: std::mem::replace(&mut self.words, grown), len: 0 }.zeroize();
        }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The packed words, to be filled anew.
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// The packed words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bit `i`; panics beyond the end.
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "bit {i} of a vector of {}", self.len);
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Sets bit `i`; panics beyond the end.
    pub fn set(&mut self, i: usize, value: bool) {
        assert!(i < self.len, "bit {i} of a vector of {}", self.len);
        let mask = 1 << (i % 64);
        self.words[i / 64] = (self.words[i / 64] & !mask) | (u64::from(value) << (i % 64));
    }

    /// Exclusive or, in place; both vectors must have the same length.
    pub fn xor_assign(&mut self, other: &Self) {
        assert_eq!(self.len, other.len, "exclusive or of two lengths");
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a ^= b);
    }

    /// Exclusive or of two vectors of the same length.
    pub fn xor(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.xor_assign(other);
        result
    }

    /// Bitwise and of two vectors of the same length.
    pub fn and(&self, other: &Self) -> Self {
        assert_eq!(self.len, other.len, "and of two lengths");
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        Self { words, len: self.len }
    }

    /// Every bit flipped.
    pub fn not(&self) -> Self {
        let mut result = Self { words: self.words.iter().map(|word| !word).collect(), len: self.len };
        result.clear_tail();
        result
    }

    /// A copy of bits `start .. start + len`; panics beyond the end.
    pub fn slice(&self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len, "bits {start}..{} of a vector of {}", start + len, self.len);
        let (first, shift) = (start / 64, start % 64);
        let count = len.div_ceil(64);
        let mut words = self.words[first..first + count].to_vec();
        if shift != 0 {
            for (i, word) in words.iter_mut().enumerate() {
                let next = self.words.get(first + i + 1).copied().unwrap_or(0);
                *word = *word >> shift | next << (64 - shift);
            }
        }
        let mut bits = Self { words, len };
        bits.clear_tail();
        bits
    }

    /// Appends the bits of `other`. Memory that the bits outgrow is wiped.
    pub fn extend(&mut self, other: &Self) {
        if self.words.capacity() <= self.words.len() + other.words.len() {
            self.reserve((self.len + other.len).max(2 * self.len));
        }
        let shift = self.len % 64;
        if shift == 0 {
            self.words.extend_from_slice(&other.words);
        } else {
            let mut partial = self.words.pop().unwrap_or(0);
            self.words.extend(other.words.iter().map(|word| {
                let whole = partial | word << shift;
                partial = word >> (64 - shift);
                whole
            }));
            self.words.push(partial);
        }
        self.len += other.len;
        self.words.truncate(self.len.div_ceil(64));
    }

    /// The bits one by one.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.words[i / 64] >> (i % 64) & 1 == 1)
    }

    fn clear_tail(&mut self) {
        let tail = self.len % 64;
        if tail != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << tail) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_and_joins_agree_with_lists(a: Vec<bool>, b: Vec<bool>, cut: prop::sample::Index) {
            let mut joined = Bits::from_bools(&a);
            joined.extend(&Bits::from_bools(&b));
            let list: Vec<bool> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&joined, &Bits::from_bools(&list));

            let start = cut.index(list.len() + 1);
            let rest = joined.slice(start, list.len() - start);
            prop_assert_eq!(rest.iter().collect::<Vec<_>>(), &list[start..]);
        }

        #[test]
        fn bytes_round_trip(values: Vec<bool>) {
            let bits = Bits::from_bools(&values);
            prop_assert_eq!(Bits::from_bytes(&bits.to_bytes(), values.len()), Ok(bits));
        }
    }

    #[test]
    fn a_wrong_number_of_bytes_is_refused() {
        assert_eq!(Bits::from_bytes(&[0; 3], 10), Err(WrongLength { expected: 2, actual: 3 }));
    }

    #[test]
    fn unused_bits_stay_zero() {
        assert_eq!(Bits::from_bytes(&[0xff], 3).map(|bits| bits.words()[0]), Ok(0b111));
        assert_eq!(Bits::zeros(5).not().words(), [0b11111]);
    }
}
