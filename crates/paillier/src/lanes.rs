//! Numbers eight side by side, and numbers one after the other.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::arch::{LANES, Row, kernels};

/// Eight numbers side by side, limb by limb; wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Lanes(pub(crate) Vec<Row>);

impl Lanes {
    /// Zero in every lane.
    pub(crate) fn zero(limbs: usize) -> Self {
        Self(vec![Row::ZERO; limbs])
    }

    /// The same number in every lane.
    pub(crate) fn broadcast(limbs: &[u64]) -> Self {
        Self(limbs.iter().map(|&limb| Row([limb; LANES])).collect())
    }

    /// A number for each lane.
    pub(crate) fn gather<'a>(limbs: usize, number: impl FnMut(usize) -> &'a [u64]) -> Self {
        let mut lanes = Self::zero(limbs);
        lanes.fill(number);
        lanes
    }

    /// Replaces every lane's number.
    pub(crate) fn fill<'a>(&mut self, number: impl FnMut(usize) -> &'a [u64]) {
        (kernels().gather)(&mut self.0, &std::array::from_fn(number));
    }

    /// Puts a number into a lane.
    pub(crate) fn set(&mut self, lane: usize, limbs: &[u64]) {
        for (row, &limb) in self.0.iter_mut().zip(limbs) {
            row.0[lane] = limb;
        }
    }

    /// The number of a lane.
    pub(crate) fn copy_to(&self, lane: usize, limbs: &mut [u64]) {
        for (limb, row) in limbs.iter_mut().zip(&self.0) {
            *limb = row.0[lane];
        }
    }

    /// The number of a lane.
    pub(crate) fn lane(&self, lane: usize) -> Vec<u64> {
        self.0.iter().map(|row| row.0[lane]).collect()
    }
}

/// Numbers of the same count of limbs, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Residues {
    limbs: usize,
    words: Vec<u64>,
}

impl Residues {
    /// `count` zeros.
    pub(crate) fn zero(limbs: usize, count: usize) -> Self {
        Self { limbs, words: vec![0; limbs * count] }
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.limbs
    }

    /// The limbs of a number.
    pub(crate) fn at(&self, index: usize) -> &[u64] {
        &self.words[index * self.limbs..(index + 1) * self.limbs]
    }

    /// The limbs of a number.
    pub(crate) fn at_mut(&mut self, index: usize) -> &mut [u64] {
        &mut self.words[index * self.limbs..(index + 1) * self.limbs]
    }

    /// The numbers, one slice of limbs each.
    pub(crate) fn iter(&self) -> std::slice::ChunksExact<'_, u64> {
        self.words.chunks_exact(self.limbs)
    }

    /// All limbs of eight numbers at a time, and fewer at the end.
    pub(crate) fn eights(&self) -> std::slice::Chunks<'_, u64> {
        self.words.chunks(LANES * self.limbs)
    }

    /// As [`Residues::eights`], to be written.
    pub(crate) fn eights_mut(&mut self) -> std::slice::ChunksMut<'_, u64> {
        self.words.chunks_mut(LANES * self.limbs)
    }

    /// The numbers at `range`.
    pub(crate) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self { limbs: self.limbs, words: self.words[range.start * self.limbs..range.end * self.limbs].to_vec() }
    }

    /// The last `count` numbers, taken away.
    pub(crate) fn split_off(&mut self, count: usize) -> Self {
        let words = self.words.split_off(self.words.len() - count * self.limbs);
        Self { limbs: self.limbs, words }
    }

    /// Puts numbers of the same size behind these.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.words.append(&mut other.words);
    }
}

/// Up to eight numbers side by side; lanes without one repeat the last.
pub(crate) fn load(limbs: usize, numbers: &[u64]) -> Lanes {
    let count = numbers.len() / limbs;
    Lanes::gather(limbs, |lane| &numbers[lane.min(count - 1) * limbs..][..limbs])
}

/// As many lanes as there is room for.
pub(crate) fn store(lanes: &Lanes, numbers: &mut [u64]) {
    if numbers.len() == LANES * lanes.0.len() {
        (kernels().scatter)(numbers, &lanes.0);
        return;
    }
    for (lane, number) in numbers.chunks_exact_mut(lanes.0.len()).enumerate() {
        lanes.copy_to(lane, number);
    }
}
