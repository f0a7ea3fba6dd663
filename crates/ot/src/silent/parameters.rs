//! How large an iteration is: four sets of parameters for LPN with regular noise over GF(2).

use privet_prg::ggm::TREES;
use privet_prg::sparse::PARTS;

/// One iteration: `outputs` samples of LPN with a secret of [`PARTS`] parts of `2^part_bits` bits and one noisy sample in each of
/// `trees` blocks of `2^depth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Trees, and so the weight of the noise; a multiple of [`TREES`].
    pub(crate) trees: usize,
    /// Levels of a tree.
    pub(crate) depth: usize,
    /// Logarithm of the bits of a part of the LPN secret, of which each sample adds up one.
    pub(crate) part_bits: usize,
}

impl Parameters {
    /// For about 2^17 outputs.
    pub(crate) const SMALL: Self = Self { trees: 320, depth: 9, part_bits: 12 };

    /// For about 2^19.5 outputs.
    pub(crate) const MEDIUM: Self = Self { trees: 720, depth: 10, part_bits: 13 };

    /// For about 2^21.5 outputs.
    pub(crate) const LARGE: Self = Self { trees: 1440, depth: 11, part_bits: 14 };

    /// For about 2^22 outputs.
    pub(crate) const HUGE: Self = Self { trees: 1280, depth: 12, part_bits: 15 };

    /// Bits of the LPN secret.
    pub(crate) fn secret(&self) -> usize {
        PARTS << self.part_bits
    }

    /// Correlated OTs that an iteration starts from: one for every bit of the secret, one for every level of every tree.
    pub(crate) fn base(&self) -> usize {
        self.secret() + self.trees * self.depth
    }

    /// Groups of [`TREES`] trees that are grown together.
    pub(crate) fn groups(&self) -> usize {
        self.trees / TREES
    }

    /// Samples of one group.
    pub(crate) fn group_outputs(&self) -> usize {
        TREES << self.depth
    }

    /// Blocks that the sender sends for one group: the first level needs none.
    pub(crate) fn group_blocks(&self) -> usize {
        TREES * (self.depth - 1)
    }

    /// Groups left to the caller, if the rest is what an iteration of `next` starts from.
    pub(crate) fn free_groups(&self, next: &Self) -> usize {
        self.groups() - next.base().div_ceil(self.group_outputs())
    }
}

/// How far a silent extension climbs: how many OTs an iteration gives once it is at its largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Size {
    /// 110,592 OTs.
    Small,
    /// 630,784 OTs after 57,344.
    Medium,
    /// 2,736,128 OTs after 581,632.
    Large,
    /// 4,833,280 OTs after 3,121,152.
    Huge,
}

impl Size {
    /// Every size, smallest first.
    pub const ALL: [Self; 4] = [Self::Small, Self::Medium, Self::Large, Self::Huge];

    /// The parameters of the first iteration, of the second and so on; the last stay.
    pub(crate) fn ladder(self) -> &'static [Parameters] {
        const LADDER: [Parameters; 4] = [Parameters::SMALL, Parameters::MEDIUM, Parameters::LARGE, Parameters::HUGE];
        match self {
            Self::Small => &LADDER[..1],
            Self::Medium => &LADDER[..2],
            Self::Large => &LADDER[..3],
            Self::Huge => &LADDER,
        }
    }

    /// Samples of the largest iteration, those for the next one included.
    pub(crate) fn outputs(self) -> usize {
        self.ladder().last().map_or(0, Parameters::outputs)
    }
}

impl Parameters {
    /// Samples.
    pub(crate) fn outputs(&self) -> usize {
        self.trees << self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_iteration_feeds_the_next_and_leaves_something() {
        for size in Size::ALL {
            let ladder = size.ladder();
            for (at, parameters) in ladder.iter().enumerate() {
                let next = ladder.get(at + 1).unwrap_or(parameters);
                assert!(parameters.part_bits <= 16 && parameters.trees % TREES == 0);
                assert!(parameters.outputs() > next.base() && parameters.free_groups(next) > 0, "{parameters:?}");
            }
        }
    }

    #[test]
    fn the_documented_counts_are_right() {
        let free = |a: Parameters, b: Parameters| a.free_groups(&b) * a.group_outputs();
        let [small, medium, large, huge] = [Parameters::SMALL, Parameters::MEDIUM, Parameters::LARGE, Parameters::HUGE];
        assert_eq!(free(small, small), 110_592);
        assert_eq!((free(small, medium), free(medium, medium)), (57_344, 630_784));
        let before = free(small, medium) + free(medium, large);
        assert_eq!((before, free(large, large)), (581_632, 2_736_128));
        assert_eq!((before + free(large, huge), free(huge, huge)), (3_121_152, 4_833_280));
    }
}
