//! A function of whole numbers made of lines: which one applies is known to nobody, but shared as a bit for each.
//!
//! Both parties hold bits `e_C`, `e_S` that agree for every line but one, `i`. So what the lines chosen by `e_C` add up to, less
//! what those chosen by `e_S` add up to, is line `i` or its negative: `s (A_i, B_i)` with `s = e_C[i] - e_S[i]`. Neither party
//! knows `i` or the sign.
//!
//! Beyond the table the function is constant, or above it rises like its argument.

use std::array;

use rayon::prelude::*;

use crate::Modulus;
use crate::arch::{CIRCLES, Choices, kernels};

/// Bits that are looked at together.
const WORD: usize = 64;

/// Words of elements that are worth a thread.
const BLOCKS_A_JOB: usize = 16;

/// `2^n` lines, `n >= 6`, over `2^f` arguments each: line `i` has the value `slopes[i] d + offsets[i]` at distance `d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    slopes: Vec<u64>,
    offsets: Vec<u64>,
    backwards: Backwards,
    above: [u64; 2],
    below: u64,
    reach: u64,
}

/// Slopes of all lines and their values at 0 less the value below the table, the last one first.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Backwards {
    /// In a ring of more than 32 bits.
    Wide([Vec<Choices<u64>>; 2]),
    /// In any other: twice as many are added at a time.
    Narrow([Vec<Choices<u32>>; 2]),
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
        let (last, below) = (offsets[count - 1].wrapping_add(slopes[count - 1].wrapping_mul(step - 1)), offsets[0]);
        let slope = if rises { step } else { 0 };
        let above = [slope, last.wrapping_sub(slope.wrapping_mul(top)).wrapping_sub(below)].map(|x| ring.reduce(x));
        let at_zero =
            |i: usize| offsets[i].wrapping_sub(slopes[i].wrapping_mul((i as u64) << step_bits)).wrapping_sub(below);
        let line = |i: usize| [slopes[i], ring.reduce(at_zero(i))];
        let backwards = match ring.bits() {
            ..=32 => Backwards::Narrow(backwards(count, |i| line(i).map(|x| x as u32))),
            _ => Backwards::Wide(backwards(count, line)),
        };
        let steepest = slopes.iter().map(|&slope| ring.signed(slope).unsigned_abs()).max().unwrap_or(0);
        Self { slopes, offsets, backwards, above, below, reach: steepest.saturating_mul(step - 1) }
    }

    /// How far from its value at distance 0 a line comes at most.
    pub fn reach(&self) -> u64 {
        self.reach
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slopes.len()
    }

    /// The value below the table.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// Above the table: the slope, and the value at argument 0 less that below the table.
    pub fn above(&self) -> [u64; 2] {
        self.above
    }

    /// For each index the sum, over each `j` whose bit is set in its circle of bits, of line `index - j` modulo the number of lines: slope, and
    /// value at argument 0 less that below the table, modulo a multiple of the ring's size. Indices are public; time and addresses do not
    /// depend on the bits, packed 64 to a word, circle after circle.
    ///
    /// # Panics
    /// Unless there are as many bits as lines for each index, and a place in `sums`.
    pub fn chosen(&self, bits: &[u64], indices: &[u64], sums: &mut [[u64; 2]]) {
        let words = self.count() / WORD;
        assert_eq!((bits.len(), sums.len()), (words * indices.len(), indices.len()), "a bit for each line");
        // From the bit behind that of line 0 on, so that those of the table follow, the last line first.
        let circle = |at: usize| (&bits[words * at..][..words], (indices[at] as usize).wrapping_add(1) % self.count());
        match &self.backwards {
            Backwards::Wide(tables) => {
                let choose = |at| (kernels().choose)(circle(at), tables.each_ref().map(Vec::as_slice));
                sums.iter_mut().enumerate().for_each(|(at, sums)| *sums = choose(at));
            }
            Backwards::Narrow(tables) => {
                for (group, sums) in sums.chunks_mut(CIRCLES).enumerate() {
                    let circles = array::from_fn(|i| circle((group * CIRCLES + i).min(indices.len() - 1)));
                    let chosen = (kernels().choose_narrow)(circles, tables.each_ref().map(Vec::as_slice));
                    sums.iter_mut().zip(chosen).for_each(|(sums, chosen)| *sums = chosen.map(u64::from));
                }
            }
        }
    }

    /// For each of `count` elements the lines whose bit is set, of line `i` at place `i ^ m`; `bits`: for each place a bit of every
    /// element, 64 to a word, `shifts`: the same for each bit of the number `m` of an element, the lowest first. Time and addresses do not
    /// depend on them.
    ///
    /// # Panics
    /// Unless there are words for each line, bit of its number and element.
    pub fn selected(&self, bits: &[&[u64]], shifts: &[&[u64]], count: usize) -> Selected {
        let blocks = count.div_ceil(WORD);
        assert_eq!((bits.len(), 1 << shifts.len()), (self.count(), self.count()), "bits for each line");
        assert!(bits.iter().chain(shifts).all(|bits| bits.len() == blocks), "a bit for each element");
        let (tables, kernels) = ([&self.slopes[..], &self.offsets[..]], kernels());
        let sums =
            (0..blocks).into_par_iter().with_min_len(BLOCKS_A_JOB).map_init(Vec::new, |words: &mut Vec<u64>, block| {
                words.clear();
                words.extend(bits.iter().map(|bits| bits[block]));
                for (bit, shifts) in shifts.iter().enumerate() {
                    swap(words, 1 << bit, shifts[block]);
                }
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

/// Both numbers of each line, the last line first.
fn backwards<T>(count: usize, line: impl Fn(usize) -> [T; 2]) -> [Vec<Choices<T>>; 2] {
    let [mut firsts, mut seconds] = [0, 1].map(|_| Vec::with_capacity(count / WORD));
    for end in (WORD..=count).rev().step_by(WORD) {
        let lines = |part: usize| {
            Choices(array::from_fn(|i| {
                let [first, second] = line(end - 1 - i);
                if part == 0 { first } else { second }
            }))
        };
        firsts.push(lines(0));
        seconds.push(lines(1));
    }
    [firsts, seconds]
}

/// Swaps each word with the one `distance` places on or back, in the bits that are set in `by`.
fn swap(words: &mut [u64], distance: usize, by: u64) {
    for both in words.chunks_exact_mut(2 * distance) {
        let (low, high) = both.split_at_mut(distance);
        for (low, high) in low.iter_mut().zip(high) {
            let swapped = (*low ^ *high) & by;
            *low ^= swapped;
            *high ^= swapped;
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
            values in prop::collection::vec(any::<[i64; 2]>(), 128), server_bits: [u64; 2], at in 0_usize..128,
            index in 0_usize..1000, rises: bool, bits in 29_u32..38,
        ) {
            let (ring, step) = (Modulus::new(bits), 3);
            let [slopes, offsets] = [0, 1].map(|i| values.iter().map(|pair| pair[i]).collect::<Vec<i64>>());
            let lines = Lines::new(&slopes, &offsets, step, rises, ring);
            let mut client_bits = server_bits;
            client_bits[at / 64] ^= 1 << (at % 64);
            let line = (index + 128 - at) % 128;
            let mut sums = [[0; 2]; 2];
            lines.chosen(&[client_bits, server_bits].concat(), &[index as u64; 2], &mut sums);
            let [first, second] = sums;
            let sign = if client_bits[at / 64] >> (at % 64) & 1 == 1 { 1 } else { u64::MAX };
            let [slope, at_zero] = [0, 1].map(|part| first[part].wrapping_sub(second[part]).wrapping_mul(sign));
            for d in 0..1 << step {
                let value = slope.wrapping_mul(((line << step) + d) as u64).wrapping_add(at_zero);
                let expected = slopes[line].wrapping_mul(d as i64).wrapping_add(offsets[line]) as u64;
                prop_assert_eq!(ring.reduce(value.wrapping_add(lines.below())), ring.reduce(expected));
            }
        }

        #[test]
        fn beyond_the_table_values_stay_or_rise(values in prop::collection::vec(any::<[i64; 2]>(), 64), over in 0_u64..100) {
            let (ring, step) = (Modulus::new(37), 3);
            let [slopes, offsets] = [0, 1].map(|i| values.iter().map(|pair| pair[i]).collect::<Vec<i64>>());
            let last = offsets[63].wrapping_add(slopes[63].wrapping_mul(7)) as u64;
            for (rises, more) in [(false, 0), (true, over << step)] {
                let lines = Lines::new(&slopes, &offsets, step, rises, ring);
                prop_assert_eq!(lines.below(), ring.reduce(offsets[0] as u64));
                let [slope, at_zero] = lines.above();
                let value = slope.wrapping_mul((64 << step) - 1 + over).wrapping_add(at_zero).wrapping_add(lines.below());
                prop_assert_eq!(ring.reduce(value), ring.reduce(last.wrapping_add(more)));
            }
        }

        #[test]
        fn lines_are_selected_where_bits_are_set(
            values in prop::collection::vec(any::<[i64; 2]>(), 64), bits in prop::collection::vec(any::<[u64; 2]>(), 64),
            shifts in prop::collection::vec(any::<[u64; 2]>(), 6), count in 65_usize..=128,
        ) {
            let ring = Modulus::new(37);
            let [slopes, offsets] = [0, 1].map(|i| values.iter().map(|pair| pair[i]).collect::<Vec<i64>>());
            let lines = Lines::new(&slopes, &offsets, 3, false, ring);
            let [columns, places] = [&bits, &shifts].map(|bits| bits.iter().map(|bits| &bits[..]).collect::<Vec<&[u64]>>());
            let selected = lines.selected(&columns, &places, count);
            prop_assert_eq!([selected.slopes.len(), selected.offsets.len()], [count; 2]);
            for i in 0..count {
                let bit = |words: &[u64; 2]| words[i / 64] >> (i % 64) & 1;
                let by = (0..6).fold(0, |by, at| by | (bit(&shifts[at]) as usize) << at);
                let set = |line: usize| bit(&bits[line ^ by]);
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
