//! A function of whole numbers made of lines: which one applies is known to nobody, but shared as a bit for each.
//!
//! Both parties hold bits `e_C`, `e_S` that agree for every line but one, `i`. So what the lines chosen by `e_C` add up to, less
//! what those chosen by `e_S` add up to, is line `i` or its negative: `s (A_i, B_i)` with `s = e_C[i] - e_S[i]`. Neither party
//! knows `i` or the sign.

use crate::Modulus;

/// Bits that are looked at together.
const WORD: usize = 64;

/// `2^n` lines, `n >= 6`: line `i` has the value `slopes[i] d + offsets[i]` at distance `d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    slopes: Vec<u64>,
    offsets: Vec<u64>,
    /// Both twice over and backwards, entry `j` that of line `-j`, so that a rotated table is a slice.
    backwards: [Vec<u64>; 2],
}

/// A party's share of a line that is chosen by shared bits, up to a shared sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Of the slope.
    pub slope: u64,
    /// Of the value at distance 0.
    pub offset: u64,
    /// Of the sign: how many lines this party's bits choose.
    pub count: u64,
}

impl Lines {
    /// Lines in `ring`.
    ///
    /// # Panics
    /// Unless there are as many slopes as offsets, and a power of two of at least 64.
    pub fn new(slopes: &[i64], offsets: &[i64], ring: Modulus) -> Self {
        let count = slopes.len();
        assert!(count == offsets.len() && count >= WORD && count.is_power_of_two(), "whole words of lines");
        let reduced = |values: &[i64]| values.iter().map(|&x| ring.reduce(x.cast_unsigned())).collect::<Vec<_>>();
        let (slopes, offsets) = (reduced(slopes), reduced(offsets));
        let turn = |values: &[u64]| (0..2 * count).map(|j| values[(2 * count - j) % count]).collect();
        let backwards = [turn(&slopes), turn(&offsets)];
        Self { slopes, offsets, backwards }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slopes.len()
    }

    /// The sum of lines `index - j` for each `j` whose bit in `bits` is set, modulo 2^64. `index` is public; time and addresses do
    /// not depend on `bits`, one for each line, packed 64 to a word.
    ///
    /// # Panics
    /// Unless there is a bit for each line.
    pub fn chosen(&self, bits: &[u64], index: usize) -> Chosen {
        assert_eq!(bits.len() * WORD, self.count(), "a bit for each line");
        let start = (self.count() - index % self.count()) % self.count();
        let tables = self.backwards.each_ref().map(|table| table[start..start + self.count()].as_chunks::<WORD>().0);
        let mut sum = Chosen::default();
        for ((&word, slopes), offsets) in bits.iter().zip(tables[0]).zip(tables[1]) {
            sum.count = sum.count.wrapping_add(u64::from(word.count_ones()));
            for bit in 0..WORD {
                let mask = (word >> bit & 1).wrapping_neg();
                sum.slope = sum.slope.wrapping_add(slopes[bit] & mask);
                sum.offset = sum.offset.wrapping_add(offsets[bit] & mask);
            }
        }
        sum
    }

    /// Adds line `index` to the sum of every element whose bit is set; 64 elements to a word. Time and addresses do not depend on
    /// the bits.
    ///
    /// # Panics
    /// Unless there is a word for each 64 sums.
    pub fn add(&self, index: usize, bits: &[u64], sums: &mut [Chosen]) {
        assert_eq!(bits.len(), sums.len().div_ceil(WORD), "a bit for each sum");
        for (&word, sums) in bits.iter().zip(sums.chunks_mut(WORD)) {
            for (bit, sum) in sums.iter_mut().enumerate() {
                let mask = (word >> bit & 1).wrapping_neg();
                sum.count = sum.count.wrapping_add(mask & 1);
                sum.slope = sum.slope.wrapping_add(self.slopes[index] & mask);
                sum.offset = sum.offset.wrapping_add(self.offsets[index] & mask);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shared_bits_choose_a_line_up_to_a_sign(
            values in prop::collection::vec(any::<[i64; 2]>(), 128), theirs: [u64; 2], at in 0_usize..128, index in 0_usize..128,
        ) {
            let ring = Modulus::new(37);
            let [slopes, offsets] = [0, 1].map(|i| values.iter().map(|pair| pair[i]).collect::<Vec<i64>>());
            let lines = Lines::new(&slopes, &offsets, ring);
            let mut ours = theirs;
            ours[at / 64] ^= 1 << (at % 64);
            let line = (index + 128 - at) % 128;
            let [mine, other] = [ours, theirs].map(|bits| lines.chosen(&bits, index));
            let sign = mine.count.wrapping_sub(other.count);
            prop_assert!(sign == 1 || sign == u64::MAX);
            let found = |part: fn(&Chosen) -> u64| ring.reduce(part(&mine).wrapping_sub(part(&other)).wrapping_mul(sign));
            prop_assert_eq!(found(|chosen| chosen.slope), ring.reduce(slopes[line] as u64));
            prop_assert_eq!(found(|chosen| chosen.offset), ring.reduce(offsets[line] as u64));

            // The same by one line after the other, of which `index - j` is chosen by bit `j`.
            let mut sum = [Chosen::default()];
            for j in 0..128 {
                lines.add((index + 128 - j) % 128, &[ours[j / 64] >> (j % 64) & 1], &mut sum);
            }
            let reduced = |chosen: &Chosen| [chosen.slope, chosen.offset, chosen.count].map(|x| ring.reduce(x));
            prop_assert_eq!(reduced(&sum[0]), reduced(&mine));
        }
    }
}
