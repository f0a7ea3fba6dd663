//! Eight Montgomery products side by side, and the choice between accelerated and portable code, made once.
//!
//! Numbers are in radix 2^52, least significant limb first, because that is what the processor's multiply-and-add
//! (AVX-512 IFMA) takes. Both forms give the same limbs.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Numbers that are computed side by side.
pub(crate) const LANES: usize = 8;

pub(crate) const LIMB_BITS: usize = 52;

/// Limbs come in blocks of this many.
pub(crate) const BLOCK: usize = 4;

/// Most limbs of a number: with more, sums of products would leave 64 bits.
pub(crate) const MOST_LIMBS: usize = 128;

/// The same limb of eight numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Row(pub(crate) [u64; LANES]);

impl Row {
    pub(crate) const ZERO: Self = Self([0; LANES]);
}

impl zeroize::DefaultIsZeroes for Row {}

impl Default for Row {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Arguments: `out`, `a`, `b`, `modulus`, `inverse`.
type Multiply = fn(&mut [Row], &[Row], &[Row], &[Row], &Row);

/// Arguments: `out`, `table`, `digits`.
type Select<T> = fn(&mut [Row], &[T], &Row);

/// The kernels of one level of acceleration.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// Which level this is.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the level where a test fails"))]
    pub(crate) name: &'static str,
    /// `out = (a b + m modulus) / 2^(52 limbs)` for the one `m` below `2^(52 limbs)` that makes the division exact, in
    /// each lane; `inverse` is `-1 / modulus` modulo 2^52. All slices have the same number of limbs, a multiple of
    /// [`BLOCK`] and at most [`MOST_LIMBS`]; all limbs are below 2^52, before and after, provided `a b < 2^(104 limbs)
    /// - m modulus`.
    pub(crate) multiply: Multiply,
    /// Eight numbers side by side: `out` has as many limbs as each.
    pub(crate) gather: fn(out: &mut [Row], numbers: &[&[u64]; LANES]),
    /// Eight numbers one after the other: `out` has eight times the limbs.
    pub(crate) scatter: fn(out: &mut [u64], rows: &[Row]),
    /// In each lane the entry of a table that its digit names. Entries are as long as `out`, one after the other; all
    /// are read, whatever the digits. A digit that names none gives zero.
    pub(crate) select: Select<Row>,
    /// As `select`, from a table that all lanes share.
    pub(crate) select_shared: Select<u64>,
}

privet_prg::choice_of_kernels!();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: u64 = (1 << LIMB_BITS) - 1;

    /// Limbs below 2^52 that depend on a seed; all bits set where carries go furthest.
    fn number(limbs: usize, seed: u64) -> Vec<Row> {
        let word = |i: u64| {
            let x = (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ seed.rotate_left(i as u32)
        };
        let limb = |i: u64| if seed.is_multiple_of(4) { MASK } else { word(i) & MASK };
        (0..limbs as u64).map(|i| Row(std::array::from_fn(|lane| limb(8 * i + lane as u64)))).collect()
    }

    /// An odd modulus that leaves the upper half of its top limb free, and `-1 / modulus` modulo 2^52.
    fn modulus(limbs: usize, seed: u64) -> (Vec<Row>, Row) {
        let mut modulus = number(limbs, seed);
        modulus[0].0.iter_mut().for_each(|limb| *limb |= 1);
        modulus[limbs - 1].0.iter_mut().for_each(|limb| *limb &= MASK >> 26);
        let inverse = Row(modulus[0].0.map(|limb| {
            let inverse = (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(limb))));
            inverse.wrapping_neg() & MASK
        }));
        (modulus, inverse)
    }

    proptest! {
        #[test]
        fn products_are_the_same_everywhere(blocks in 1_usize..=32, seeds: [u64; 3]) {
            let limbs = BLOCK * blocks;
            let (modulus, inverse) = modulus(limbs, seeds[0]);
            let mut a = number(limbs, seeds[1]);
            a[limbs - 1].0.iter_mut().for_each(|limb| *limb &= MASK >> 2);
            let b = number(limbs, seeds[2]);
            let mut expected = vec![Row::ZERO; limbs];
            portable::multiply(&mut expected, &a, &b, &modulus, &inverse);
            prop_assert!(expected.iter().all(|row| row.0.iter().all(|&limb| limb <= MASK)));
            for kernels in every_kernels() {
                let mut out = vec![Row([7; LANES]); limbs];
                (kernels.multiply)(&mut out, &a, &b, &modulus, &inverse);
                prop_assert_eq!(&out, &expected, "{}", kernels.name);
            }
        }
    }

    #[test]
    fn lanes_are_put_together_and_taken_apart_the_same_everywhere() {
        for limbs in (BLOCK..=40).step_by(BLOCK) {
            let numbers: Vec<u64> =
                (0..(LANES * limbs) as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let each: [&[u64]; LANES] = std::array::from_fn(|lane| &numbers[lane * limbs..][..limbs]);
            for kernels in every_kernels() {
                let mut rows = vec![Row::ZERO; limbs];
                (kernels.gather)(&mut rows, &each);
                for (limb, row) in rows.iter().enumerate() {
                    assert_eq!(row.0, each.map(|number| number[limb]), "{}", kernels.name);
                }
                let mut out = vec![7; LANES * limbs];
                (kernels.scatter)(&mut out, &rows);
                assert_eq!(out, numbers, "{}", kernels.name);
            }
        }
    }

    proptest! {
        #[test]
        fn selections_are_the_same_everywhere(blocks in 1_usize..12, entries in 1_usize..40, seed: u64) {
            let limbs = BLOCK * blocks;
            let table = number(limbs * entries, seed | 1);
            let shared: Vec<u64> = table.iter().map(|row| row.0[0]).collect();
            let digits = Row(std::array::from_fn(|lane| (seed >> (8 * lane)) % (entries as u64 + 1)));
            for kernels in every_kernels() {
                let mut out = [vec![Row([7; LANES]); limbs], vec![Row([7; LANES]); limbs]];
                (kernels.select)(&mut out[0], &table, &digits);
                (kernels.select_shared)(&mut out[1], &shared, &digits);
                for (lane, &digit) in digits.0.iter().enumerate() {
                    for (limb, (out, shared)) in out[0].iter().zip(&out[1]).enumerate() {
                        let row = table.get(limbs * digit as usize + limb).copied().unwrap_or(Row::ZERO);
                        prop_assert_eq!(out.0[lane], row.0[lane], "{}", kernels.name);
                        prop_assert_eq!(shared.0[lane], row.0[0], "{}", kernels.name);
                    }
                }
            }
        }
    }

    #[test]
    fn a_product_is_divided_exactly() {
        // In the smallest size, one lane against 128-bit arithmetic: (a b + m n) = out 2^208 with a, b and n of one
        // limb each, so `out` is a b / 2^208 modulo n.
        for kernels in every_kernels() {
            let n = 1_000_003_u64;
            let (a, b) = (123_456_u64, 987_654_u64);
            let row = |x: u64| [vec![Row([x; LANES])], vec![Row::ZERO; 3]].concat();
            let inverse = (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(n))));
            let mut out = row(0);
            (kernels.multiply)(&mut out, &row(a), &row(b), &row(n), &Row([inverse.wrapping_neg() & MASK; LANES]));
            let radix = (0..208).fold(1_u64, |x, _| 2 * x % n);
            for lane in 0..LANES {
                assert!(out[1..].iter().all(|limb| limb.0[lane] == 0), "{}", kernels.name);
                let left = u128::from(out[0].0[lane]) * u128::from(radix) % u128::from(n);
                assert_eq!(left as u64, a * b % n, "{}", kernels.name);
            }
        }
    }
}
