//! Powers in constant time: windows of fixed width, tables read in full.

use zeroize::Zeroizing;

use crate::arch::{LANES, Row, kernels};
use crate::lanes::Lanes;
use crate::modulus::Modulus;

pub(crate) const WINDOW_BITS: usize = 5;

/// Entries of its table.
pub(crate) const ENTRIES: usize = 1 << WINDOW_BITS;

/// `base^exponent` in each lane, in Montgomery's form, for exponents below `2^bits`. Time depends on `bits` alone.
///
/// `exponent` gives the words of a lane's exponent, least significant first.
pub(crate) fn power<'a>(modulus: &Modulus, base: &Lanes, bits: usize, exponent: impl Fn(usize) -> &'a [u64]) -> Lanes {
    let table = powers(modulus, base);
    let limbs = modulus.limbs();
    let mut result = modulus.one().clone();
    let mut factor = Lanes::zero(limbs);
    for window in (0..bits.div_ceil(WINDOW_BITS)).rev() {
        (0..WINDOW_BITS).for_each(|_| modulus.square(&mut result));
        let digits = Row(std::array::from_fn(|lane| digit(exponent(lane), window * WINDOW_BITS, bits)));
        (kernels().select)(&mut factor.0, &table, &digits);
        modulus.multiply(&mut result, &factor);
    }
    result
}

/// `base^0` to `base^31`, one after the other.
fn powers(modulus: &Modulus, base: &Lanes) -> Zeroizing<Vec<Row>> {
    let mut table = Zeroizing::new(Vec::with_capacity(ENTRIES * modulus.limbs()));
    let mut entry = modulus.one().clone();
    for _ in 0..ENTRIES {
        table.extend_from_slice(&entry.0);
        modulus.multiply(&mut entry, base);
    }
    table
}

/// The window of an exponent that begins at bit `at`, without what lies at `bits` and above.
fn digit(exponent: &[u64], at: usize, bits: usize) -> u64 {
    let word = |i: usize| exponent.get(i).copied().map_or(0, u128::from);
    let wide = (word(at / 64) | word(at / 64 + 1) << 64) >> (at % 64);
    wide as u64 & ((1 << WINDOW_BITS.min(bits - at)) - 1)
}

/// The same exponent in every lane.
pub(crate) fn power_uniform(modulus: &Modulus, base: &Lanes, bits: usize, exponent: &[u64]) -> Lanes {
    power(modulus, base, bits, |_| exponent)
}

/// Products of powers of fixed bases: for each base a table of `base^(32^k d)`, shared by all lanes.
pub(crate) struct FixedBases {
    /// Entry after entry, position after position.
    table: Zeroizing<Vec<u64>>,
    limbs: usize,
}

impl FixedBases {
    /// Tables of `positions` windows for each base (in Montgomery's form, up to eight in a batch of lanes, `count` in
    /// all). All lanes must have the same modulus.
    pub(crate) fn new(modulus: &Modulus, bases: &[Lanes], count: usize, positions: usize) -> Self {
        let limbs = modulus.limbs();
        let entry_len = positions * ENTRIES * limbs;
        let mut table = Zeroizing::new(vec![0; count * entry_len]);
        for (bases, tables) in bases.iter().zip(table.chunks_mut(LANES * entry_len)) {
            let mut base = bases.clone();
            for position in 0..positions {
                let powers = powers(modulus, &base);
                for (lane, table) in tables.chunks_mut(entry_len).enumerate() {
                    let table = &mut table[position * ENTRIES * limbs..][..ENTRIES * limbs];
                    table.iter_mut().zip(powers.iter()).for_each(|(word, row)| *word = row.0[lane]);
                }
                (0..WINDOW_BITS).for_each(|_| modulus.square(&mut base));
            }
        }
        Self { table, limbs }
    }

    /// Windows of an exponent, all bases together.
    pub(crate) fn windows(&self) -> usize {
        self.table.len() / (ENTRIES * self.limbs)
    }

    /// The product over all windows of the entries that `digits` names for each lane, each below 32.
    pub(crate) fn product(&self, modulus: &Modulus, digits: &[Row]) -> Lanes {
        debug_assert_eq!(digits.len(), self.windows());
        let mut product = Lanes::zero(self.limbs);
        let mut factor = Lanes::zero(self.limbs);
        for (window, (table, digits)) in self.table.chunks_exact(ENTRIES * self.limbs).zip(digits).enumerate() {
            if window == 0 {
                (kernels().select_shared)(&mut product.0, table, digits);
            } else {
                (kernels().select_shared)(&mut factor.0, table, digits);
                modulus.multiply(&mut product, &factor);
            }
        }
        product
    }
}

/// A uniform digit for each lane and window.
pub(crate) fn random_digits(windows: usize, prg: &mut privet_prg::Prg) -> Zeroizing<Vec<Row>> {
    let mut bytes = Zeroizing::new(vec![0; windows * LANES]);
    prg.fill(&mut bytes);
    let (bytes, _) = bytes.as_chunks::<LANES>();
    Zeroizing::new(bytes.iter().map(|bytes| Row(bytes.map(|byte| u64::from(byte) % ENTRIES as u64))).collect())
}
