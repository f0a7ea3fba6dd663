//! The choice between accelerated and portable code, made once.

use crate::digit::Digit;

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Columns that a product computes side by side.
pub(crate) const LANES: usize = 32;

/// One row of a panel: the same element of the inner dimension for several columns.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row(pub(crate) [u64; LANES]);

/// Bits of a limb of a number modulo 2^128.
pub(crate) const LIMB_BITS: u32 = 52;

/// Limbs of such a number.
pub(crate) const LIMBS: usize = 3;

/// Sums modulo 2^128 for several columns, limb by limb: each the sum of `limb * 2^(52 index)`, where limbs may have carries
/// above their 52 bits.
#[derive(Clone, Copy)]
pub(crate) struct WideRow(pub(crate) [Row; LIMBS]);

impl WideRow {
    pub(crate) const ZERO: Self = Self([Row([0; LANES]); LIMBS]);
}

/// Arguments: `sums`, `weights`, `stride`, `panels`.
type MultiplyWide = fn(&mut [WideRow], &[&[u64]], usize, &[&[Row]]);

/// Arguments: `out`, `bits`, `x`, `flips`, `shares`.
type AddProducts = fn(&mut [u64], &[u64], &[u64], &[u64], &[u64]);

/// Numbers of which each bit of a word chooses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Choices<T>(pub(crate) [T; 64]);

/// What a bit chooses, and what is added up of it without a look at carries.
pub(crate) trait Choice: Copy {
    /// Nothing.
    const ZERO: Self;

    /// The sum, modulo what the type holds.
    fn plus(self, other: Self) -> Self;

    /// This number where the lowest bit is set, nothing where it is not; without a branch.
    fn where_set(self, bit: u64) -> Self;
}

impl Choice for u64 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn where_set(self, bit: u64) -> Self {
        self & (bit & 1).wrapping_neg()
    }
}

impl Choice for u32 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn where_set(self, bit: u64) -> Self {
        self & (bit as Self & 1).wrapping_neg()
    }
}

/// A circle of bits, a power of two of words, and where to begin.
pub(crate) type Circle<'a> = (&'a [u64], usize);

/// Arguments: `circle`, `tables`.
type Choose = fn(Circle<'_>, [&[Choices<u64>]; 2]) -> [u64; 2];

/// Circles that choose together, so that each part of a table is read once for all of them.
pub(crate) const CIRCLES: usize = 4;

/// Arguments: `circles`, `tables`.
type ChooseNarrow = fn([Circle<'_>; CIRCLES], [&[Choices<u32>]; 2]) -> [[u32; 2]; CIRCLES];

/// Arguments: `bits`, `tables`.
type Select = fn(&[u64], [&[u64]; 2]) -> [[u64; 64]; 2];

/// Arguments: `numbers`, `digit`, `tables`, `less` and `equal`.
type Compare = fn(&[u64], Digit, [&[u64]; 2], [&mut [u64]; 2]);

/// The kernels of one level of acceleration. Their arguments are checked by the modules that call them.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// Which level this is.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the level where a test fails"))]
    pub(crate) name: &'static str,
    /// `sums[r] += sum over t of weights[r * stride + t] * panel[t]`, modulo 2^52 at least: higher bits mean nothing.
    pub(crate) multiply_52: fn(sums: &mut [Row], weights: &[i64], stride: usize, panel: &[Row]),
    /// As `multiply_52`, modulo 2^64.
    pub(crate) multiply: fn(sums: &mut [Row], weights: &[i64], stride: usize, panel: &[Row]),
    /// `sums[r] += sum over t of weights[r * stride + t] * panel[t]`, modulo 2^128. Operands come limb by limb, at most
    /// [`LIMBS`] of them, `panels` of equal length. Carries of `sums` are small before and after.
    pub(crate) multiply_wide: MultiplyWide,
    /// `target[i] += factor * source[i]`.
    pub(crate) accumulate: fn(target: &mut [u64], source: &[i64], factor: u64),
    /// See [`crate::select::signed`].
    pub(crate) signed: fn(out: &mut [u64], bits: &[u64], x: &[u64]),
    /// See [`crate::select::add_products`].
    pub(crate) add_products: AddProducts,
    /// For each table the sum of the numbers whose bit is set in the circle. As many parts of a table as words of the circle.
    pub(crate) choose: Choose,
    /// The same of numbers of 32 bits, modulo 2^32, for several circles.
    pub(crate) choose_narrow: ChooseNarrow,
    /// For each table and each bit of a word, the sum of the numbers in whose word that bit is set; a word for each number of a table.
    pub(crate) select: Select,
    /// See [`crate::digit::compare`].
    pub(crate) compare: Compare,
    /// Packs to `bits` bits each; `out` is exactly as long as that takes.
    pub(crate) pack: fn(out: &mut [u8], values: &[u64], bits: u32),
    /// The inverse of `pack`.
    pub(crate) unpack: fn(out: &mut [u64], bytes: &[u8], bits: u32),
}

privet_prg::choice_of_kernels!();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words that depend on a seed and their place.
    fn words(count: usize, seed: u64) -> Vec<u64> {
        let word = |i: usize| {
            let x = (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ seed.rotate_left(i as u32)
        };
        (0..count).map(word).collect()
    }

    #[test]
    fn packing_is_the_same_everywhere_at_every_width_and_length() {
        for bits in 1..=64 {
            let ring = crate::Modulus::new(bits);
            for count in (0..40).chain([63, 64, 65, 1000]) {
                let values: Vec<u64> = words(count, u64::from(bits)).into_iter().map(|x| ring.reduce(x)).collect();
                // The definition: bit `b` of value `i` is bit `i * bits + b` of the whole.
                let mut expected = vec![0; ring.packed_bytes(count)];
                for (i, value) in values.iter().enumerate() {
                    for b in 0..bits as usize {
                        let at = i * bits as usize + b;
                        expected[at / 8] |= ((value >> b & 1) as u8) << (at % 8);
                    }
                }
                for kernels in every_kernels() {
                    let mut packed = vec![0xff; expected.len()];
                    (kernels.pack)(&mut packed, &values, bits);
                    assert!(packed == expected, "{} packs {count} values of {bits} bits", kernels.name);
                    let mut unpacked = vec![u64::MAX; count];
                    (kernels.unpack)(&mut unpacked, &packed, bits);
                    assert!(unpacked == values, "{} unpacks {count} values of {bits} bits", kernels.name);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn products_are_the_same_everywhere(rows in 0usize..15, inner in 0usize..40, extra in 0usize..3, seed: u64) {
            let stride = inner + extra;
            let weights: Vec<i64> = words(rows * stride, seed).into_iter().map(|w| w as i64 >> (seed % 60)).collect();
            let panel: Vec<Row> =
                (0..inner).map(|t| Row(std::array::from_fn(|lane| words(1, seed ^ (t * 64 + lane) as u64)[0]))).collect();
            let start = Row(std::array::from_fn(|lane| lane as u64));
            let sum = |r: usize, lane: usize| (0..inner).fold(start.0[lane], |sum, t| {
                sum.wrapping_add(panel[t].0[lane].wrapping_mul(weights[r * stride + t] as u64))
            });
            for kernels in every_kernels() {
                for (multiply, mask) in [(kernels.multiply_52, (1 << 52) - 1), (kernels.multiply, u64::MAX)] {
                    let mut sums = vec![start; rows];
                    multiply(&mut sums, &weights, stride, &panel);
                    for (r, row) in sums.iter().enumerate() {
                        for (lane, value) in row.0.iter().enumerate() {
                            prop_assert_eq!(value & mask, sum(r, lane) & mask, "{}", kernels.name);
                        }
                    }
                }
                let mut target = words(stride, !seed);
                let source: Vec<i64> = words(stride, seed).into_iter().map(|w| w as i64).collect();
                (kernels.accumulate)(&mut target, &source, seed);
                for (i, value) in target.iter().enumerate() {
                    let expected = words(stride, !seed)[i].wrapping_add(seed.wrapping_mul(source[i] as u64));
                    prop_assert_eq!(*value, expected, "{}", kernels.name);
                }
            }
        }

        #[test]
        fn wide_products_are_the_same_everywhere(
            rows in 0usize..11, inner in 0usize..150, extra in 0usize..3, limbs in [1usize..4, 1usize..4], seed: u64,
        ) {
            let stride = inner + extra;
            // The top limb of a number of three has 24 bits; all bits are set where carries are largest.
            let limb = |word: u64, index: usize| if seed % 4 == 0 { u64::MAX } else { word } >> [12, 12, 40][index];
            let weights: Vec<Vec<u64>> = (0..limbs[0])
                .map(|index| words(rows * stride, seed ^ index as u64).into_iter().map(|w| limb(w, index)).collect())
                .collect();
            let row = |index: usize, t: usize| words(LANES, !seed ^ (index * 1000 + t) as u64);
            let panels: Vec<Vec<Row>> = (0..limbs[1])
                .map(|index| (0..inner).map(|t| Row(std::array::from_fn(|lane| limb(row(index, t)[lane], index)))).collect())
                .collect();
            let join = |limbs: &mut dyn Iterator<Item = u64>| {
                limbs.enumerate().fold(0u128, |sum, (i, limb)| sum.wrapping_add(u128::from(limb) << (52 * i)))
            };
            for kernels in every_kernels() {
                let mut sums = vec![WideRow([Row([7; LANES]); LIMBS]); rows];
                for _ in 0..2 {
                    let (weights, panels): (Vec<_>, Vec<_>) =
                        (weights.iter().map(Vec::as_slice).collect(), panels.iter().map(Vec::as_slice).collect());
                    (kernels.multiply_wide)(&mut sums, &weights, stride, &panels);
                }
                for (r, sum) in sums.iter().enumerate() {
                    for lane in 0..LANES {
                        let start = join(&mut [7; LIMBS].into_iter());
                        let expected = (0..inner).fold(start, |sum, t| {
                            let weight = join(&mut weights.iter().map(|limb| limb[r * stride + t]));
                            let x = join(&mut panels.iter().map(|panel| panel[t].0[lane]));
                            sum.wrapping_add(weight.wrapping_mul(x).wrapping_mul(2))
                        });
                        prop_assert_eq!(join(&mut sum.0.iter().map(|limb| limb.0[lane])), expected, "{}", kernels.name);
                    }
                }
            }
        }

        #[test]
        fn choices_are_the_same_everywhere(size in 0_u32..7, begin: usize, seed: u64) {
            let bits = 64 << size;
            let (circle, begin) = (words(1 << size, seed), begin % bits);
            let tables = [seed, !seed].map(|seed| words(bits, seed));
            let set = |i: usize| circle[(begin + i) % bits / 64] >> ((begin + i) % 64) & 1;
            let expected = tables.each_ref().map(|table| {
                table.iter().zip((0..).map(set)).fold(0_u64, |sum, (x, set)| sum.wrapping_add(x * set))
            });
            let parts = tables.map(|table| table.as_chunks().0.iter().map(|part| Choices(*part)).collect::<Vec<_>>());
            let narrow = parts.each_ref().map(|parts| parts.iter().map(|part| Choices(part.0.map(|x| x as u32))).collect::<Vec<_>>());
            for kernels in every_kernels() {
                let chosen = (kernels.choose)((&circle, begin), parts.each_ref().map(|parts| &parts[..]));
                prop_assert_eq!(chosen, expected, "{}", kernels.name);
                // One that begins elsewhere among them, so that no two are mistaken for one another.
                for at in 0..CIRCLES {
                    let circles = std::array::from_fn(|i| (&circle[..], if i == at { begin } else { bits - 1 - begin }));
                    let chosen = (kernels.choose_narrow)(circles, narrow.each_ref().map(|parts| &parts[..]));
                    prop_assert_eq!(chosen[at], expected.map(|sum| sum as u32), "{}", kernels.name);
                }
            }
        }

        #[test]
        fn numbers_are_selected_the_same_everywhere(count in 0_usize..100, seed: u64) {
            let (bits, tables) = (words(count, seed), [1, 2].map(|i| words(count, seed ^ i)));
            let expected = tables.each_ref().map(|table| std::array::from_fn(|bit| {
                let numbers = table.iter().zip(&bits);
                numbers.fold(0, |sum: u64, (x, word)| sum.wrapping_add(x * (word >> bit & 1)))
            }));
            for kernels in every_kernels() {
                let sums = (kernels.select)(&bits, tables.each_ref().map(|table| &table[..]));
                prop_assert_eq!(sums, expected, "{}", kernels.name);
            }
        }

        #[test]
        fn digits_are_compared_the_same_everywhere(count in 0usize..200, bits in 1_u32..=7, low in 0_u32..57, at: u32, seed: u64) {
            let numbers = words(count, seed);
            let offset = if bits >= 6 { 0 } else { (at % (64 >> bits)) << bits };
            let digit = Digit { low, bits, offset };
            let tables = [words(count, !seed), if bits == 7 { words(count, seed ^ 9) } else { Vec::new() }];
            let table = |i: usize| match bits {
                7 => u128::from(tables[0][i]) | u128::from(tables[1][i]) << 64,
                _ => u128::from(tables[0][i] >> offset) & ((1 << (1 << bits)) - 1),
            };
            for kernels in every_kernels() {
                let mut results = [vec![3; count.div_ceil(64)], vec![4; count.div_ceil(64)]];
                let [less, equal] = &mut results;
                (kernels.compare)(&numbers, digit, tables.each_ref().map(|table| &table[..]), [less, equal]);
                for (i, number) in numbers.iter().enumerate() {
                    let rest = table(i) >> (number >> low & ((1 << bits) - 1));
                    let bits = results.each_ref().map(|words| words[i / 64] >> (i % 64) & 1);
                    prop_assert_eq!(bits, [u64::from((rest >> 1).count_ones() & 1), rest as u64 & 1], "{}", kernels.name);
                }
            }
        }

        #[test]
        fn selections_are_the_same_everywhere(count in 0usize..200, seed: u64) {
            let (x, shares) = (words(count, seed), words(count, !seed));
            let (bits, flips) = (words(count.div_ceil(64), seed ^ 1), words(count.div_ceil(64), seed ^ 2));
            let bit = |words: &[u64], i: usize| words[i / 64] >> (i % 64) & 1 == 1;
            let sign = |flip: bool, x: u64| if flip { x.wrapping_neg() } else { x };
            for kernels in every_kernels() {
                let mut out = vec![7; count];
                (kernels.signed)(&mut out, &bits, &x);
                let expected: Vec<u64> = (0..count).map(|i| sign(bit(&bits, i), x[i])).collect();
                prop_assert_eq!(&out, &expected, "{}", kernels.name);
                (kernels.add_products)(&mut out, &bits, &x, &flips, &shares);
                let product = |i: usize| if bit(&bits, i) { x[i] } else { 0 };
                let expected: Vec<u64> = (0..count)
                    .map(|i| expected[i].wrapping_add(product(i)).wrapping_add(sign(bit(&flips, i), shares[i])))
                    .collect();
                prop_assert_eq!(&out, &expected, "{}", kernels.name);
            }
        }
    }
}
