//! Groups that the values of comparison functions are in.

use privet_prg::Block;
use privet_ring::Modulus;

/// A finite commutative group with a compact form and a map from pseudorandom blocks to uniform elements.
pub trait Group: Sync {
    /// An element; the default is zero.
    type Element: Copy + Default + Send + Sync;

    /// Bytes of an element in a key.
    fn bytes(&self) -> usize;
    /// Blocks that [`Group::sample`] takes.
    fn blocks(&self) -> usize;
    /// A uniform element from uniform blocks.
    fn sample(&self, blocks: &[Block]) -> Self::Element;
    /// `a + b`.
    fn add(&self, a: Self::Element, b: Self::Element) -> Self::Element;
    /// `-a`.
    fn negate(&self, a: Self::Element) -> Self::Element;
    /// `a` if `bit` is 1, zero if it is 0; without a branch.
    fn keep(&self, a: Self::Element, bit: u64) -> Self::Element;
    /// Writes `a` to [`Group::bytes`] bytes.
    fn write(&self, a: Self::Element, out: &mut [u8]);
    /// Reads what [`Group::write`] wrote; any bytes are an element.
    fn read(&self, bytes: &[u8]) -> Self::Element;
}

/// Vectors of `K` elements of Z_2^n; each takes `n / 8` bytes, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector<const K: usize>(pub Modulus);

impl<const K: usize> Vector<K> {
    fn element_bytes(&self) -> usize {
        self.0.packed_bytes(1)
    }
}

impl<const K: usize> Group for Vector<K> {
    type Element = Words<K>;

    fn bytes(&self) -> usize {
        K * self.element_bytes()
    }

    fn blocks(&self) -> usize {
        K.div_ceil(2)
    }

    fn sample(&self, blocks: &[Block]) -> Words<K> {
        Words(std::array::from_fn(|i| self.0.reduce((blocks[i / 2] >> (64 * (i % 2))) as u64)))
    }

    fn add(&self, a: Words<K>, b: Words<K>) -> Words<K> {
        Words(std::array::from_fn(|i| self.0.reduce(a.0[i].wrapping_add(b.0[i]))))
    }

    fn negate(&self, a: Words<K>) -> Words<K> {
        Words(a.0.map(|a| self.0.reduce(a.wrapping_neg())))
    }

    fn keep(&self, a: Words<K>, bit: u64) -> Words<K> {
        Words(a.0.map(|a| a & bit.wrapping_neg()))
    }

    fn write(&self, a: Words<K>, out: &mut [u8]) {
        let width = self.element_bytes();
        out.chunks_exact_mut(width).zip(a.0).for_each(|(out, a)| out.copy_from_slice(&a.to_le_bytes()[..width]));
    }

    fn read(&self, bytes: &[u8]) -> Words<K> {
        let width = self.element_bytes();
        Words(std::array::from_fn(|i| {
            let mut word = [0; 8];
            word[..width].copy_from_slice(&bytes[i * width..][..width]);
            self.0.reduce(u64::from_le_bytes(word))
        }))
    }
}

/// An element of [`Vector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<const K: usize>(pub [u64; K]);

impl<const K: usize> Default for Words<K> {
    fn default() -> Self {
        Self([0; K])
    }
}

/// A bit and a number modulo 2^128: a value and its message authentication code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedBit;

impl Group for TaggedBit {
    type Element = (bool, u128);

    fn bytes(&self) -> usize {
        17
    }

    fn blocks(&self) -> usize {
        2
    }

    fn sample(&self, blocks: &[Block]) -> (bool, u128) {
        (blocks[1] & 1 == 1, blocks[0])
    }

    fn add(&self, a: (bool, u128), b: (bool, u128)) -> (bool, u128) {
        (a.0 ^ b.0, a.1.wrapping_add(b.1))
    }

    fn negate(&self, a: (bool, u128)) -> (bool, u128) {
        (a.0, a.1.wrapping_neg())
    }

    fn keep(&self, a: (bool, u128), bit: u64) -> (bool, u128) {
        (a.0 & (bit == 1), a.1 & u128::from(bit).wrapping_neg())
    }

    fn write(&self, a: (bool, u128), out: &mut [u8]) {
        out[0] = u8::from(a.0);
        out[1..].copy_from_slice(&a.1.to_le_bytes());
    }

    fn read(&self, bytes: &[u8]) -> (bool, u128) {
        let mut tag = [0; 16];
        tag.copy_from_slice(&bytes[1..17]);
        (bytes[0] & 1 == 1, u128::from_le_bytes(tag))
    }
}
