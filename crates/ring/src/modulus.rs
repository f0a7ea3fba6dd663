//! Arithmetic modulo 2^l on `u64`.

/// The ring Z_2^l for `1 <= l <= 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    bits: u32,
}

impl Modulus {
    /// The ring of `bits`-bit integers; panics unless `1 <= bits <= 64`.
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 64, "a ring has 1 to 64 bits");
        Self { bits }
    }

    /// The width l in bits.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// 2^l - 1.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// `value` modulo 2^l.
    pub const fn reduce(self, value: u64) -> u64 {
        value & self.mask()
    }

    /// Reduces every value in place.
    pub fn reduce_all(self, values: &mut [u64]) {
        let mask = self.mask();
        values.iter_mut().for_each(|value| *value &= mask);
    }

    /// The representative in `[-2^(l-1), 2^(l-1))`.
    pub const fn signed(self, value: u64) -> i64 {
        let unused = 64 - self.bits;
        (value << unused) as i64 >> unused
    }

    /// The top bit of `value`: its sign.
    pub const fn sign(self, value: u64) -> u64 {
        value >> (self.bits - 1) & 1
    }

    /// Elementwise `a + b`.
    pub fn add(self, a: &[u64], b: &[u64]) -> Vec<u64> {
        assert_eq!(a.len(), b.len(), "sum of two lengths");
        a.iter().zip(b).map(|(a, b)| self.reduce(a.wrapping_add(*b))).collect()
    }

    /// Elementwise `a - b`.
    pub fn sub(self, a: &[u64], b: &[u64]) -> Vec<u64> {
        assert_eq!(a.len(), b.len(), "difference of two lengths");
        a.iter().zip(b).map(|(a, b)| self.reduce(a.wrapping_sub(*b))).collect()
    }

    /// Bytes that `count` values take when packed to l bits each.
    pub const fn packed_bytes(self, count: usize) -> usize {
        (count * self.bits as usize).div_ceil(8)
    }

    /// Packs reduced values to l bits each, the wire form of a ring vector.
    pub fn pack(self, values: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.packed_bytes(values.len()) + 16);
        let (mut pending, mut held) = (0u128, 0u32);
        for &value in values {
            pending |= u128::from(self.reduce(value)) << held;
            held += self.bits;
            while held >= 64 {
                bytes.extend_from_slice(&(pending as u64).to_le_bytes());
                pending >>= 64;
                held -= 64;
            }
        }
        bytes.extend_from_slice(&(pending as u64).to_le_bytes());
        bytes.truncate(self.packed_bytes(values.len()));
        bytes
    }

    /// Reads `count` packed values.
    ///
    /// # Errors
    /// [`crate::WrongLength`] if `bytes` is not exactly [`Modulus::packed_bytes`] long.
    pub fn unpack(self, bytes: &[u8], count: usize) -> Result<Vec<u64>, crate::WrongLength> {
        let expected = self.packed_bytes(count);
        if bytes.len() != expected {
            return Err(crate::WrongLength { expected, actual: bytes.len() });
        }
        let mut values = Vec::with_capacity(count);
        let (mut pending, mut held) = (0u128, 0u32);
        let mut chunks = bytes.chunks(8);
        for _ in 0..count {
            while held < self.bits {
                let mut word = [0; 8];
                if let Some(chunk) = chunks.next() {
                    word[..chunk.len()].copy_from_slice(chunk);
                }
                pending |= u128::from(u64::from_le_bytes(word)) << held;
                held += 64;
            }
            values.push(self.reduce(pending as u64));
            pending >>= self.bits;
            held -= self.bits;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_round_trips(bits in 1u32..=64, values: Vec<u64>) {
            let ring = Modulus::new(bits);
            let reduced: Vec<u64> = values.iter().map(|&value| ring.reduce(value)).collect();
            let bytes = ring.pack(&values);
            prop_assert_eq!(bytes.len(), ring.packed_bytes(values.len()));
            prop_assert_eq!(ring.unpack(&bytes, values.len()), Ok(reduced));
        }

        #[test]
        fn signed_is_congruent_and_in_range(bits in 1u32..=64, value: u64) {
            let ring = Modulus::new(bits);
            let signed = ring.signed(value);
            prop_assert_eq!(ring.reduce(signed as u64), ring.reduce(value));
            prop_assert_eq!(ring.sign(value) == 1, signed < 0);
        }
    }
}
