//! A function of whole numbers made of lines: which one applies is known to nobody, but shared as a bit for each.
//!
//! Both parties hold bits `e_C`, `e_S` that agree for every line but one, `i`. So what the lines chosen by `e_C` add up to, less
//! what those chosen by `e_S` add up to, is line `i` or its negative: `s (A_i, B_i)` with `s = e_C[i] - e_S[i]`. Neither party
//! knows `i` or the sign.
//!
//! Beyond the table the function is constant, or above it rises like its argument.

use rayon::prelude::*;

use crate::Modulus;
use crate::arch::{self, Choices, kernels};

/// Bits that are looked at together.
const WORD: usize = 64;

/// Words of elements that are worth a thread.
const BLOCKS_A_JOB: usize = 16;

/// `2^n` lines, `n >= 6`, over `2^f` arguments each: line `i` has the value `slopes[i] d + offsets[i]` at distance `d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    slopes: Vec<u64>,
    offsets: Vec<u64>,
    /// Slopes and values at 0 of all lines, the last one first.
    backwards: [Vec<Choices>; 2],
    /// Slope and value at 0 above the table.
    above: [u64; 2],
    /// The same below it.
    below: [u64; 2],
}

/// A party's shares of lines that shared bits select, up to a shared sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Of the slopes.
    pub slopes: Vec<u64>,
    /// Of the values at distance 0.
    pub offsets: Vec<u64>,
    /// Of the signs: how many lines this party's bits select, modulo 4, the lower bit of each number and the upper one; 64 to a word.
    pub counts: [Vec<u64>; 2],
}

impl Lines {
    /// Lines in `ring`, each over `2^step_bits` arguments from 0 on. Above them the value is that of the last argument, or with `rises`
    /// goes on by `2^step_bits` an argument; below 0 it is the first one's.
    ///
    /// # Panics
    /// Unless there are as many slopes as offsets, and a power of two of at least 64.
    pub fn new(slopes: &[i64], offsets: &[i64], step_bits: u32, rises: bool, ring: Modulus) -> Self {
        let count = slopes.len();
        assert!(count == offsets.len() && count >= WORD && count.is_power_of_two(), "whole words of lines");
        let reduced = |values: &[i64]| values.iter().map(|&x| ring.reduce(x.cast_unsigned())).collect::<Vec<_>>();
        let (slopes, offsets) = (reduced(slopes), reduced(offsets));
        let (step, top) = (1_u64 << step_bits, ((count as u64) << step_bits) - 1);
        let last = offsets[count - 1].wrapping_add(slopes[count - 1].wrapping_mul(step - 1));
        let slope = if rises { step } else { 0 };
        let above = [slope, last.wrapping_sub(slope.wrapping_mul(top))].map(|x| ring.reduce(x));
        let below = [0, offsets[0]];
        let at_zero = |i: usize| offsets[i].wrapping_sub(slopes[i].wrapping_mul((i as u64) << step_bits));
        let line = |i: usize| [slopes[i], ring.reduce(at_zero(i))];
        let backwards = [0, 1].map(|part| {
            let words = (0..count).step_by(WORD);
            words.map(|first| Choices(std::array::from_fn(|i| line(count - 1 - first - i)[part]))).collect()
        });
        Self { slopes, offsets, backwards, above, below }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slopes.len()
    }

    /// The sum, over each `j` whose bit is set in one of two circles of bits, of line `index - j` modulo the number of bits, as a signed
    /// number: slope, and value at argument 0, modulo 2^64. Each circle's `index` is public; time and addresses do not depend on its bits,
    /// packed 64 to a word.
    ///
    /// # Panics
    /// Unless each has four times as many bits as lines, or more, and a power of two.
    pub fn chosen(&self, circles: [(&[u64], usize); 2]) -> [u64; 2] {
        // From the bit behind that of line 0 on: as many as half of all for what lies below the table, some for what lies above it, and
        // those of the table, the last line first.
        let circles = circles.map(|(bits, index)| {
            let words = bits.len();
            assert!(
                words.is_power_of_two() && words * WORD >= 4 * self.count(),
                "a bit for each line and as many beyond"
            );
            (bits, index.wrapping_add(1) % (words * WORD))
        });
        let tables = self.backwards.each_ref().map(Vec::as_slice);
        let arch::Chosen { sums, below, above } = (kernels().choose)(circles, tables);
        [0, 1].map(|part| {
            let beyond = below.wrapping_mul(self.below[part]).wrapping_add(above.wrapping_mul(self.above[part]));
            sums[part].wrapping_add(beyond)
        })
    }

    /// For each of `count` elements the lines whose bit is set; `bits`: for each line a bit of every element, 64 to a word. Time and
    /// addresses do not depend on them.
    ///
    /// # Panics
    /// Unless there are words for each line and element.
    pub fn selected(&self, bits: &[&[u64]], count: usize) -> Selected {
        let blocks = count.div_ceil(WORD);
        assert_eq!(bits.len(), self.count(), "bits for each line");
        assert!(bits.iter().all(|bits| bits.len() == blocks), "a bit for each element");
        let (tables, kernels) = ([&self.slopes[..], &self.offsets[..]], kernels());
        let sums =
            (0..blocks).into_par_iter().with_min_len(BLOCKS_A_JOB).map_init(Vec::new, |words: &mut Vec<u64>, block| {
                words.clear();
                words.extend(bits.iter().map(|bits| bits[block]));
                // How many are set, modulo 4, of all elements at once.
                let counts = words.iter().fold([0, 0], |[ones, twos], word| [ones ^ word, twos ^ ones & word]);
                ((kernels.select)(words, tables), counts)
            });
        let sums: Vec<_> = sums.collect();
        let part = |part: usize| sums.iter().flat_map(|(parts, _)| parts[part]).take(count).collect();
        let counts = [0, 1].map(|bit| sums.iter().map(|(_, counts)| counts[bit]).collect());
        Selected { slopes: part(0), offsets: part(1), counts }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shared_bits_choose_a_line_up_to_a_sign(
            values in prop::collection::vec(any::<[i64; 2]>(), 64), theirs in prop::collection::vec(any::<u64>(), 8),
            at in 0_usize..512, index in 0_usize..512, rises: bool,
        ) {
            let (ring, step) = (Modulus::new(37), 3);
            let [slopes, offsets] = [0, 1].map(|i| values.iter().map(|pair| pair[i]).collect::<Vec<i64>>());
            let lines = Lines::new(&slopes, &offsets, step, rises, ring);
            let mut ours = theirs.clone();
            ours[at / 64] ^= 1 << (at % 64);
            // As a signed number of nine bits.
            let line = (((index + 512 - at) % 512) ^ 256) as i64 - 256;
            let nothing = [0; 8];
            let [mine, other] = [&ours, &theirs].map(|bits| lines.chosen([(bits, index), (&nothing, 3)]));
            let sign = if ours[at / 64] >> (at % 64) & 1 == 1 { 1 } else { u64::MAX };
            let [slope, at_zero] = [0, 1].map(|part| mine[part].wrapping_sub(other[part]).wrapping_mul(sign));
            for d in 0..1 << step {
                let x = (line << step) + d;
                let kept = x.clamp(0, (64 << step) - 1);
                let (i, d) = ((kept >> step) as usize, kept & ((1 << step) - 1));
                let over = if rises { (x - kept).max(0) << step } else { 0 };
                let expected = slopes[i].wrapping_mul(d).wrapping_add(offsets[i]).wrapping_add(over);
                let value = slope.wrapping_mul(x as u64).wrapping_add(at_zero);
                prop_assert_eq!(ring.reduce(value), ring.reduce(expected as u64));
            }
        }

        #[test]
        fn lines_are_selected_where_bits_are_set(
            values in prop::collection::vec(any::<[i64; 2]>(), 64), bits in prop::collection::vec(any::<[u64; 2]>(), 64),
            count in 65_usize..=128,
        ) {
            let ring = Modulus::new(37);
            let [slopes, offsets] = [0, 1].map(|i| values.iter().map(|pair| pair[i]).collect::<Vec<i64>>());
            let lines = Lines::new(&slopes, &offsets, 3, false, ring);
            let columns: Vec<&[u64]> = bits.iter().map(|bits| &bits[..]).collect();
            let selected = lines.selected(&columns, count);
            prop_assert_eq!([selected.slopes.len(), selected.offsets.len()], [count; 2]);
            for i in 0..count {
                let set = |line: usize| bits[line][i / 64] >> (i % 64) & 1;
                let sum = |values: &[i64]| (0..64).fold(0, |sum: u64, line| {
                    sum.wrapping_add(ring.reduce(values[line] as u64) * set(line))
                });
                prop_assert_eq!([selected.slopes[i], selected.offsets[i]], [sum(&slopes), sum(&offsets)]);
                let count = [0, 1].map(|bit| (selected.counts[bit][i / 64] >> (i % 64) & 1) << bit);
                prop_assert_eq!(count[0] + count[1], (0..64).map(set).sum::<u64>() % 4);
            }
        }
    }
}
