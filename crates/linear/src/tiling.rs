//! How a correlation is cut into ciphertexts: the cheapest of all ways that fit.

use std::sync::LazyLock;

use privet_bfv::Parameters;

use crate::correlation::Correlation;
use crate::error::{Error, Misuse};

/// What one polynomial holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rows and columns of results in a tile.
    pub(crate) tile: [usize; 2],
    /// Groups packed together. Above 1, each group is packed whole.
    pub(crate) groups: usize,
    /// Input channels per group.
    pub(crate) channels: usize,
    /// Output channels per group.
    pub(crate) outputs: usize,
}

/// The numbers of polynomials of a tiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tiles down and right, per image.
    pub(crate) tiles: [usize; 2],
    /// Blocks of groups.
    pub(crate) groups: usize,
    /// Blocks of input channels per block of groups.
    pub(crate) channels: usize,
    /// Blocks of output channels per block of groups.
    pub(crate) outputs: usize,
}

/// What things cost, in nanoseconds: a byte as on a 1 Gbit/s link, work as on two cores of a current server, by
/// `make bench-kernels`.
mod price {
    pub(super) const BYTE: u64 = 8;
    pub(super) const CIPHERTEXT: u64 = 45_000;
    pub(super) const REPLY: u64 = 85_000;
    pub(super) const PRODUCT: u64 = 2_000;
    pub(super) const WEIGHTS: u64 = 6_000;
}

impl Tiling {
    /// The cheapest tiling. Both parties compute it, from public numbers and in integers, so they agree.
    ///
    /// # Errors
    /// [`Misuse::KernelTooLarge`] if not even one result fits a polynomial.
    pub(crate) fn choose(correlation: &Correlation, parameters: &Parameters) -> Result<Self, Error> {
        let degree = parameters.degree();
        let candidates = Self::candidates(correlation, degree);
        candidates.min_by_key(|tiling| tiling.price(correlation, parameters)).ok_or_else(|| {
            let elements = correlation.axes.iter().map(|axis| axis.reach + 1).fold(1, usize::saturating_mul);
            Misuse::KernelTooLarge { elements, degree }.into()
        })
    }

    fn candidates(correlation: &Correlation, degree: usize) -> impl Iterator<Item = Self> + '_ {
        let [rows, columns] = correlation.axes.each_ref().map(|axis| parts(axis.outputs, degree));
        let tiles = rows.flat_map(move |row| columns.clone().map(move |column| [row, column]));
        let fitting = tiles.map(move |tile| (tile, degree / correlation.area(tile))).filter(|(_, room)| *room > 0);
        fitting.flat_map(move |(tile, room)| {
            let split = parts(correlation.channels, room).map(move |channels| {
                let outputs = even(correlation.outputs, room / channels);
                Self { tile, groups: 1, channels, outputs }
            });
            split.chain(merged(correlation, tile, room))
        })
    }

    pub(crate) fn counts(&self, correlation: &Correlation) -> Counts {
        let [rows, columns] = &correlation.axes;
        Counts {
            tiles: [rows.outputs.div_ceil(self.tile[0]), columns.outputs.div_ceil(self.tile[1])],
            groups: correlation.groups.div_ceil(self.groups),
            channels: correlation.channels.div_ceil(self.channels),
            outputs: correlation.outputs.div_ceil(self.outputs),
        }
    }

    fn price(&self, correlation: &Correlation, parameters: &Parameters) -> u64 {
        let Counts { tiles, groups, channels, outputs } = self.counts(correlation);
        let tiles = (correlation.images * tiles[0] * tiles[1]) as u64;
        let [groups, channels, outputs] = [groups, channels, outputs].map(|count| count as u64);
        let each = |bytes: usize, work: u64| bytes as u64 * price::BYTE + work;
        let sent = each(parameters.ciphertext_bytes(), price::CIPHERTEXT);
        let replied = each(parameters.reply_bytes(0), price::REPLY);
        let factors = [
            (tiles, groups * channels, sent),
            (tiles, groups * outputs, replied),
            (tiles, groups * channels * outputs, price::PRODUCT),
            (1, groups * channels * outputs, price::WEIGHTS),
        ];
        factors.into_iter().fold(0, |sum, (a, b, c)| sum.saturating_add(a.saturating_mul(b).saturating_mul(c)))
    }
}

impl Correlation {
    /// Elements of the image that the results of a tile need, as a rectangle.
    pub(crate) fn area(&self, tile: [usize; 2]) -> usize {
        let [rows, columns] = &self.axes;
        (tile[0] + rows.reach).saturating_mul(tile[1] + columns.reach)
    }
}

/// A tiling of several whole groups, if two or more fit.
fn merged(correlation: &Correlation, tile: [usize; 2], room: usize) -> Option<Tiling> {
    let Correlation { channels, outputs, .. } = *correlation;
    let places = room / channels.saturating_mul(outputs);
    let groups = even(correlation.groups, most_merged(places));
    (groups > 1).then_some(Tiling { tile, groups, channels, outputs })
}

/// `0, 1, 3, 4, 9, 10, 12, 13, 27, ...`: numbers whose digits in base 3 are 0 and 1. No two of them have a third as their
/// mean (Erdős and Turán 1936), so `a + b = 2 c` only for `a = b = c`.
pub(crate) fn progression_free() -> impl Iterator<Item = usize> {
    (0_usize..).map(|i| (0..40).rev().fold(0, |value, bit| value * 3 + (i >> bit & 1)))
}

/// How many groups find a place in a polynomial with room for so many: the numbers of [`progression_free`] that are below half.
fn most_merged(places: usize) -> usize {
    static PLACES: LazyLock<Vec<usize>> =
        LazyLock::new(|| progression_free().take_while(|place| *place < 1 << 14).collect());
    PLACES.partition_point(|place| 2 * place < places).max(1)
}

/// The sizes of parts when `whole` is cut into almost equal parts of at most `most`, each size once, falling.
fn parts(whole: usize, most: usize) -> impl Iterator<Item = usize> + Clone {
    std::iter::successors(Some(even(whole, most)), move |&size| {
        // One part more, or as many more as it takes to make them smaller.
        (size > 1).then(|| whole.div_ceil(whole.div_ceil(size) + 1).min(even(whole, size - 1)))
    })
}

/// The size of almost equal parts of `whole`, at most `most` each.
fn even(whole: usize, most: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most.clamp(1, whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_even_sizes() {
        for whole in 1..200_usize {
            let mut expected: Vec<usize> = (1..=whole).map(|pieces| whole.div_ceil(pieces)).collect();
            expected.dedup();
            assert_eq!(parts(whole, usize::MAX).collect::<Vec<_>>(), expected, "parts of {whole}");
            expected.retain(|size| *size <= 17);
            assert_eq!(parts(whole, 17).collect::<Vec<_>>(), expected, "small parts of {whole}");
        }
    }

    #[test]
    fn as_many_groups_are_merged_as_there_are_places_below_half() {
        for places in (0..200).chain([4096, 8192, 16_384]) {
            let counted = progression_free().take_while(|place| 2 * place < places).count().max(1);
            assert_eq!(most_merged(places), counted, "{places}");
        }
    }

    #[test]
    fn no_three_places_are_in_progression() {
        let places: Vec<usize> = progression_free().take(128).collect();
        assert_eq!(places[..9], [0, 1, 3, 4, 9, 10, 12, 13, 27]);
        for (i, a) in places.iter().enumerate() {
            for b in &places[..i] {
                assert!((a + b) % 2 == 1 || !places.contains(&((a + b) / 2)), "{a}, {b}");
            }
        }
        assert!(2 * places[127] < 4096);
    }
}
