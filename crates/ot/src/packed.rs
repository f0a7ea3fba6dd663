//! Ring elements of a few whole bytes, side by side: a product is used modulo `2^k`, and of most the `k` is far below 64.

use std::ops::Range;

use privet_prg::{Prg, Wiped, wipe};
use privet_ring::{BLOCK, Modulus};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Whole bytes of a ring element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u8);

impl Width {
    /// How many there are.
    pub(crate) const COUNT: usize = 8;

    /// Every width, the narrowest first.
    pub const ALL: [Self; Self::COUNT] = [Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7), Self(8)];

    /// That of a whole word.
    pub const WORD: Self = Self(8);

    /// That of elements of so many bits.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub const fn of(bits: u32) -> Self {
        Self(Modulus::new(bits).bits().div_ceil(8) as u8)
    }

    /// How many bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Its place among all widths.
    pub(crate) const fn index(self) -> usize {
        self.bytes() - 1
    }

    /// The ring of all that fits.
    pub const fn ring(self) -> Modulus {
        Modulus::new(8 * self.0 as u32)
    }
}

/// Ring elements of one width, wiped on drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    width: Width,
    pub(crate) bytes: Vec<u8>,
}

impl Packed {
    /// No elements.
    pub(crate) fn none(width: Width) -> Self {
        Self { width, bytes: Vec::new() }
    }

    /// As many zeros.
    pub(crate) fn zeros(width: Width, count: usize) -> Self {
        Self { width, bytes: vec![0; count * width.bytes()] }
    }

    /// Uniform elements.
    pub(crate) fn random(width: Width, count: usize, prg: &mut Prg) -> Self {
        let mut elements = Self::zeros(width, count);
        prg.fill(&mut elements.bytes);
        elements
    }

    /// These elements, modulo what fits the width.
    pub fn of(width: Width, elements: &[u64]) -> Self {
        Self { width, bytes: width.ring().pack(elements) }
    }

    /// The bytes of `count` more elements, zeros as yet. Where there is no room for them, the memory before is wiped.
    pub(crate) fn grow(&mut self, count: usize) -> &mut [u8] {
        let start = self.bytes.len();
        let needed = start + count * self.width.bytes();
        if self.bytes.capacity() < needed {
            let mut grown = Vec::with_capacity(needed.max(2 * start));
            grown.extend_from_slice(&self.bytes);
            drop(Self { width: self.width, bytes: std::mem::replace(&mut self.bytes, grown) });
        }
        self.bytes.resize(needed, 0);
        &mut self.bytes[start..]
    }

    /// Bytes of each.
    pub fn width(&self) -> Width {
        self.width
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All of them, where they lie.
    pub fn all(&self) -> PackedRef<'_> {
        PackedRef { width: self.width, bytes: &self.bytes }
    }
}

impl Zeroize for Packed {
    /// With what lies behind the last element; the memory is given back.
    fn zeroize(&mut self) {
        drop(Wiped::from(std::mem::take(&mut self.bytes)));
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for Packed {}

/// Some elements of [`Packed`].
#[derive(Clone, Copy, Debug)]
pub struct PackedRef<'a> {
    width: Width,
    bytes: &'a [u8],
}

impl PackedRef<'_> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.bytes.len() / self.width.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Those of a range.
    ///
    /// # Panics
    /// Unless there are as many.
    pub fn slice(self, range: Range<usize>) -> Self {
        let width = self.width.bytes();
        Self { bytes: &self.bytes[range.start * width..range.end * width], ..self }
    }

    /// A copy of all of them.
    pub(crate) fn copied(self) -> Packed {
        Packed { width: self.width, bytes: self.bytes.to_vec() }
    }

    /// Those of a range as words.
    ///
    /// # Panics
    /// Unless there are as many, and no more than [`BLOCK`].
    pub fn widen(self, range: Range<usize>, room: &mut Room) -> &[u64] {
        let words = &mut room.0[..range.len()];
        self.width.ring().unpack_into(words, self.slice(range).bytes);
        words
    }

    /// One as a word.
    ///
    /// # Panics
    /// Unless there are as many.
    pub fn get(self, index: usize) -> u64 {
        let (width, mut word) = (self.width.bytes(), [0; 8]);
        word[..width].copy_from_slice(&self.bytes[index * width..(index + 1) * width]);
        u64::from_le_bytes(word)
    }

    /// All of them as words, one after the other.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// All of them as words.
    pub fn to_words(self) -> Wiped<u64> {
        let mut words = Wiped::from(vec![0; self.len()]);
        self.width.ring().unpack_into(&mut words, self.bytes);
        words
    }
}

/// Room for the words of a block of elements, wiped on drop.
pub struct Room(pub(crate) [u64; BLOCK]);

impl Room {
    /// Nothing in it.
    #[expect(clippy::new_without_default, reason = "it is as good as new where it is made, and never empty")]
    pub fn new() -> Self {
        Self([0; BLOCK])
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}
