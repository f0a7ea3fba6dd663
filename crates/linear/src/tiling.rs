//! How a correlation is cut into ciphertexts: the cheapest of all ways that fit.

use std::sync::LazyLock;

use privet_bfv::{Panel, Parameters};

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
    /// Up to `2^levels` sums are merged into a reply.
    pub(crate) levels: u32,
    /// Each channel has a block of its own, of as many in a polynomial.
    pub(crate) blocks: Option<usize>,
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
    /// Sums per block of groups: blocks of output channels, or lanes.
    pub(crate) outputs: usize,
    /// Replies per block of groups.
    pub(crate) replies: usize,
}

/// What a tiling costs in all, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Price {
    /// Bytes and work, by [`price`].
    pub(crate) whole: u64,
    /// By [`work`] alone.
    pub(crate) work: u64,
}

/// What a plan saves first; both parties must want the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Saving {
    /// Work: replies are merged where that takes hardly more of it.
    #[default]
    Work,
    /// Bytes: each is worth what a link of 100 Mbit/s takes for it.
    Bytes,
}

impl Saving {
    /// What a byte costs, in nanoseconds.
    fn byte(self) -> u64 {
        match self {
            Self::Work => price::BYTE,
            Self::Bytes => 10 * price::BYTE,
        }
    }

    /// How many of [`WEIGHTS_OF_WORK`] are tried: where bytes are saved work may grow.
    pub(crate) fn weights(self) -> usize {
        match self {
            Self::Work => WEIGHTS_OF_WORK.len(),
            Self::Bytes => 1,
        }
    }
}

/// What things cost, in nanoseconds: a byte as on a 1 Gbit/s link, work as on two cores of a current server, by
/// `make bench-kernels`.
mod price {
    pub(super) const BYTE: u64 = 8;
    pub(super) const CIPHERTEXT: u64 = 45_000;
    pub(super) const REPLY: u64 = 85_000;
    pub(super) const PRODUCT: u64 = 2_000;
    pub(super) const WEIGHTS: u64 = 6_000;
    /// Of blocks with numbers.
    pub(super) const SCALED: u64 = 1_000;
    pub(super) const FOLD: u64 = 85_000;
    /// The keys of a level, made and read.
    pub(super) const LEVEL: u64 = 300_000;
}

/// Work alone, by which merging is held against the plan without it: processor time of both parties in whole layers of ResNet-20 and BERT,
/// halved. A fold waits for memory there, and a reply is without what its results take, which is the same in every plan.
mod work {
    pub(super) const CIPHERTEXT: u64 = 58_000;
    pub(super) const REPLY: u64 = 58_000;
    pub(super) const PRODUCT: u64 = 2_000;
    pub(super) const WEIGHTS: u64 = 4_500;
    pub(super) const SCALED: u64 = 1_000;
    pub(super) const FOLD: u64 = 65_000;
}

/// Most blocks of a polynomial, where channels have their own: smaller images leave too much of them empty, and their sums are better merged.
const MOST_BLOCKS: usize = 32;

/// Up to 32 sums become one reply.
pub(crate) const MOST_LEVELS: u32 = 5;

/// What more work must save, on the link that bytes are priced for: half a nanosecond's work a byte, which handling it takes as well.
const SAVED_BY_WORK: u64 = 16;

/// What work may count for besides, in eighths, where it must not grow.
pub(crate) const WEIGHTS_OF_WORK: [u64; 6] = [0, 1, 2, 4, 8, 16];

/// A tiling with its price for each of [`WEIGHTS_OF_WORK`].
pub(crate) type Choices = [(Tiling, Price); WEIGHTS_OF_WORK.len()];

impl Tiling {
    /// For each number of levels up to `most` and each of [`WEIGHTS_OF_WORK`] the cheapest tiling. Both parties compute
    /// them, from public numbers and in integers, so they agree. Fails with [`Misuse::KernelTooLarge`] if not even one
    /// result fits a polynomial.
    pub(crate) fn choose(
        correlation: &Correlation,
        parameters: &Parameters,
        most: u32,
        saving: Saving,
    ) -> Result<Vec<Choices>, Error> {
        let degree = parameters.degree();
        let mut chosen = Vec::new();
        for levels in 0..=most {
            // What merges less is there as well.
            let mut best: Option<Choices> = chosen.last().copied();
            for tiling in Self::candidates(correlation, degree, levels).filter(|tiling| tiling.suits(parameters)) {
                let priced = (tiling, tiling.price(correlation, parameters, saving));
                let best = best.get_or_insert([priced; WEIGHTS_OF_WORK.len()]);
                for (best, weight) in best.iter_mut().zip(WEIGHTS_OF_WORK).take(saving.weights()) {
                    if priced.1.weighed(weight) < best.1.weighed(weight) {
                        *best = priced;
                    }
                }
            }
            chosen.extend(best);
        }
        match chosen.is_empty() {
            false => Ok(chosen),
            true => {
                let elements = correlation.axes.iter().map(|axis| axis.reach + 1).fold(1, usize::saturating_mul);
                Err(Misuse::KernelTooLarge { elements, degree }.into())
            }
        }
    }

    pub(crate) fn candidates(correlation: &Correlation, degree: usize, levels: u32) -> impl Iterator<Item = Self> + '_ {
        let [rows, columns] = correlation.axes.each_ref().map(|axis| parts(axis.outputs, degree));
        let tiles = rows.flat_map(move |row| columns.clone().map(move |column| [row, column]));
        let fitting = tiles.map(move |tile| (tile, degree / correlation.area(tile))).filter(|(_, room)| *room > 0);
        fitting.flat_map(move |(tile, room)| {
            let split = parts(correlation.channels, room).filter_map(move |channels| {
                let step = step(channels, levels);
                let outputs = even(correlation.outputs, room / step);
                (step <= room).then_some(Self { tile, groups: 1, channels, outputs, levels, blocks: None })
            });
            let apart = (levels == 0).then(|| in_blocks(correlation, tile, degree));
            split.chain(several(correlation, tile, room, levels)).chain(apart.into_iter().flatten())
        })
    }

    /// Whether products under these parameters are made so.
    pub(crate) fn suits(&self, parameters: &Parameters) -> bool {
        self.blocks.is_none() || Panel::takes(parameters)
    }

    /// Coefficients from one element to the next.
    pub(crate) fn step(&self) -> usize {
        step(self.channels, self.levels)
    }

    /// Groups at one place, each with a sum of its own.
    pub(crate) fn lanes(&self) -> usize {
        (self.step() / self.channels).min(self.groups)
    }

    pub(crate) fn counts(&self, correlation: &Correlation) -> Counts {
        let [rows, columns] = &correlation.axes;
        let outputs = correlation.outputs.div_ceil(self.outputs) * self.lanes();
        Counts {
            tiles: [rows.outputs.div_ceil(self.tile[0]), columns.outputs.div_ceil(self.tile[1])],
            groups: correlation.groups.div_ceil(self.groups),
            channels: correlation.channels.div_ceil(self.channels),
            outputs,
            replies: outputs.div_ceil(1 << self.levels),
        }
    }

    pub(crate) fn price(&self, correlation: &Correlation, parameters: &Parameters, saving: Saving) -> Price {
        let Counts { tiles, groups, channels, outputs, replies } = self.counts(correlation);
        let tiles = (correlation.images * tiles[0] * tiles[1]) as u64;
        let [groups, channels, outputs, replies] = [groups, channels, outputs, replies].map(|count| count as u64);
        let byte = |bytes: usize| bytes as u64 * saving.byte();
        // Work is that of a degree of 4096; twice the degree takes about twice as much.
        let longer = if saving == Saving::Bytes { (parameters.degree() as u64 / 4096).max(1) } else { 1 };
        let (sent, replied) = (byte(parameters.ciphertext_bytes()), byte(parameters.reply_bytes(0)));
        let sum = |[ciphertext, reply, fold, product, weights, scaled]: [u64; 6]| {
            let (product, weights) = if self.blocks.is_some() { (scaled, 0) } else { (product, weights) };
            let factors = [
                (tiles, groups * channels, ciphertext),
                (tiles, groups * replies, reply),
                (tiles, groups * (outputs - replies), fold),
                (tiles, groups * channels * outputs, product),
                (1, groups * channels * outputs, weights),
            ];
            let add = |sum: u64, (a, b, c): (u64, u64, u64)| sum.saturating_add(a.saturating_mul(b).saturating_mul(c));
            factors.into_iter().fold(0, add)
        };
        let [ciphertext, reply, fold, product, weights, scaled] =
            [price::CIPHERTEXT, price::REPLY, price::FOLD, price::PRODUCT, price::WEIGHTS, price::SCALED]
                .map(|work| longer * work);
        Price {
            whole: sum([sent + ciphertext, replied + reply, fold, product, weights, scaled]),
            work: sum([work::CIPHERTEXT, work::REPLY, work::FOLD, work::PRODUCT, work::WEIGHTS, work::SCALED]),
        }
    }
}

impl Price {
    /// That of keys for so many levels of merging, of so many bytes each.
    pub(crate) fn of_keys(levels: u32, bytes: usize, saving: Saving) -> Self {
        let levels = u64::from(levels);
        Self { whole: levels * (bytes as u64 * saving.byte() + price::LEVEL), work: levels * price::LEVEL }
    }

    /// Whether it is lower, and takes no more work than another or saves [`SAVED_BY_WORK`] times what it takes more: then it does so on any
    /// link.
    pub(crate) fn pays_beside(&self, other: &Self) -> bool {
        let more = self.work.saturating_sub(other.work);
        self.whole < other.whole && more.saturating_mul(SAVED_BY_WORK) <= other.whole - self.whole
    }

    /// Eight times the whole, and work so many times.
    fn weighed(&self, work: u64) -> u64 {
        self.whole.saturating_mul(8).saturating_add(self.work.saturating_mul(work))
    }

    pub(crate) fn add(self, other: Self) -> Self {
        Self { whole: self.whole.saturating_add(other.whole), work: self.work.saturating_add(other.work) }
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
fn several(correlation: &Correlation, tile: [usize; 2], room: usize, levels: u32) -> Option<Tiling> {
    let Correlation { channels, outputs, .. } = *correlation;
    let step = step(channels, levels);
    let places = room / step.saturating_mul(outputs);
    let groups = even(correlation.groups, most_merged(places) * (step / channels));
    (groups > 1 && places > 0).then_some(Tiling { tile, groups, channels, outputs, levels, blocks: None })
}

/// The tilings of a layer without a kernel that give each channel a block of its own.
fn in_blocks(correlation: &Correlation, tile: [usize; 2], degree: usize) -> impl Iterator<Item = Tiling> + use<> {
    let &Correlation { groups, channels, outputs, .. } = correlation;
    let blocks = degree / correlation.area(tile).next_power_of_two();
    let is_pointwise = groups == 1 && correlation.axes.iter().all(|axis| axis.reach == 0);
    let most = if is_pointwise && blocks <= MOST_BLOCKS { blocks } else { 0 };
    (1..=most).map(move |results| Tiling {
        tile,
        groups: 1,
        channels: even(channels, blocks / results),
        outputs: even(outputs, results),
        levels: 0,
        blocks: Some(blocks),
    })
}

/// Coefficients from one element to the next: the channels, and zeros up to a multiple of `2^levels`.
fn step(channels: usize, levels: u32) -> usize {
    channels.next_multiple_of(1 << levels)
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
            let mut expected: Vec<usize> = (1..=whole).map(|count| whole.div_ceil(count)).collect();
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
