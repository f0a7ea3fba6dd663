//! How large an iteration is: five sets of parameters for LPN with regular noise over GF(2).

use privet_prg::ggm::TREES;
use privet_prg::sparse::{LANES, PARTS};

/// LPN instances of an iteration, of which each has one of the trees that are grown side by side.
pub(crate) const INSTANCES: usize = LANES;

/// One iteration: [`INSTANCES`] instances of LPN under one public matrix, each with a secret of [`PARTS`] parts of `2^part_bits` bits and
/// one noisy sample in each of `trees` blocks of `2^depth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Trees of an instance, and so the weight of its noise.
    pub(crate) trees: usize,
    /// Levels of a tree.
    pub(crate) depth: usize,
    /// Logarithm of the bits of a part of the LPN secret, of which each sample adds up one.
    pub(crate) part_bits: usize,
}

impl Parameters {
    /// For about 2^19.5 outputs: with which every size begins.
    pub(crate) const TINY: Self = Self { trees: 720, depth: 8, part_bits: 11 };

    /// For about 2^21 outputs.
    pub(crate) const SMALL: Self = Self { trees: 864, depth: 9, part_bits: 12 };

    /// For about 2^22 outputs.
    pub(crate) const MEDIUM: Self = Self { trees: 1024, depth: 10, part_bits: 13 };

    /// For about 2^23.5 outputs.
    pub(crate) const LARGE: Self = Self { trees: 1216, depth: 11, part_bits: 14 };

    /// For about 2^24.5 outputs.
    pub(crate) const HUGE: Self = Self { trees: 1472, depth: 12, part_bits: 15 };

    /// Bits of the LPN secret of an instance.
    pub(crate) fn secret(&self) -> usize {
        PARTS << self.part_bits
    }

    /// Correlated OTs that an iteration starts from: one for every bit of the secret, one for every level of every tree.
    pub(crate) fn base(&self) -> usize {
        INSTANCES * (self.secret() + self.trees * self.depth)
    }

    /// Groups of trees that are grown together, one of each instance.
    pub(crate) fn groups(&self) -> usize {
        self.trees
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
    /// 1,540,096 OTs after 508,928.
    Small,
    /// 3,760,128 OTs after 303,104.
    Medium,
    /// 9,117,696 OTs after 3,653,632.
    Large,
    /// 22,462,464 OTs after 2,850,816.
    Huge,
}

impl Size {
    /// Every size, smallest first.
    pub const ALL: [Self; 4] = [Self::Small, Self::Medium, Self::Large, Self::Huge];

    /// The parameters of the first iteration, of the second and so on; the last stay.
    pub(crate) fn ladder(self) -> &'static [Parameters] {
        match self {
            Self::Small => &[Parameters::TINY, Parameters::SMALL],
            Self::Medium => &[Parameters::TINY, Parameters::MEDIUM],
            Self::Large => &[Parameters::TINY, Parameters::MEDIUM, Parameters::LARGE],
            Self::Huge => &[Parameters::TINY, Parameters::MEDIUM, Parameters::HUGE],
        }
    }

    /// Correlated OTs of which an iteration at its largest keeps the blocks, in whole groups of whatever rung makes them.
    pub(crate) fn kept(self) -> usize {
        self.ladder().iter().map(|rung| rung.base() + rung.group_outputs()).max().unwrap_or(0)
    }
}

#[cfg(test)]
impl Parameters {
    /// Samples of an instance.
    pub(crate) fn samples(&self) -> usize {
        self.trees << self.depth
    }

    /// Samples of all instances.
    pub(crate) fn outputs(&self) -> usize {
        INSTANCES * self.samples()
    }
}

#[cfg(test)]
mod tests {
    use privet_prg::sparse::ROWS;

    use super::*;

    #[test]
    fn every_iteration_feeds_the_next_and_leaves_something() {
        for size in Size::ALL {
            let ladder = size.ladder();
            for (at, parameters) in ladder.iter().enumerate() {
                let next = ladder.get(at + 1).unwrap_or(parameters);
                assert!(parameters.part_bits <= 16 && parameters.group_outputs() >= INSTANCES * ROWS, "{parameters:?}");
                assert!(parameters.outputs() > next.base() && parameters.free_groups(next) > 0, "{parameters:?}");
            }
        }
    }

    #[test]
    fn the_documented_counts_are_right() {
        let free = |a: Parameters, b: Parameters| a.free_groups(&b) * a.group_outputs();
        for (size, before, each) in [
            (Size::Small, 508_928, 1_540_096),
            (Size::Medium, 303_104, 3_760_128),
            (Size::Large, 3_653_632, 9_117_696),
            (Size::Huge, 2_850_816, 22_462_464),
        ] {
            let ladder = size.ladder();
            let last = ladder[ladder.len() - 1];
            let climbed: usize = ladder.windows(2).map(|rungs| free(rungs[0], rungs[1])).sum();
            assert_eq!((climbed, free(last, last)), (before, each), "{size:?}");
        }
    }
}
