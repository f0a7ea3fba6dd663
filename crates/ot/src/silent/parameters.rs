//! How large an iteration is: three sets of parameters for LPN with regular noise over GF(2).

use privet_prg::ggm::TREES;

/// One iteration: `outputs` samples of LPN with a secret of `secret` bits and one noisy sample in each of `trees` blocks
/// of `2^depth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Trees, and so the weight of the noise; a multiple of [`TREES`].
    pub(crate) trees: usize,
    /// Levels of a tree.
    pub(crate) depth: usize,
    /// Bits of the LPN secret: a power of two.
    pub(crate) secret: usize,
}

impl Parameters {
    /// For about 2^17 outputs. The cheapest attack known takes 2^130.9 operations (information set decoding).
    pub(crate) const SMALL: Self = Self { trees: 320, depth: 9, secret: 1 << 15 };

    /// For about 2^19.5 outputs. The cheapest attack known takes 2^131.4 operations (information set decoding).
    pub(crate) const MEDIUM: Self = Self { trees: 720, depth: 10, secret: 1 << 16 };

    /// For about 2^22 outputs. The cheapest attack known takes 2^132.4 operations (guessing and quadratic equations).
    pub(crate) const LARGE: Self = Self { trees: 1280, depth: 12, secret: 1 << 18 };

    /// Correlated OTs that an iteration starts from: one for every bit of the secret, one for every level of every tree.
    pub(crate) fn base(&self) -> usize {
        self.secret + self.trees * self.depth
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
    /// 126,976 OTs.
    Small,
    /// 663,552 OTs after 90,112.
    Medium,
    /// 4,964,352 OTs after 548,864.
    Large,
}

impl Size {
    /// Every size, smallest first.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The parameters of the first iteration, of the second and so on; the last stay.
    pub(crate) fn ladder(self) -> &'static [Parameters] {
        const LADDER: [Parameters; 3] = [Parameters::SMALL, Parameters::MEDIUM, Parameters::LARGE];
        match self {
            Self::Small => &LADDER[..1],
            Self::Medium => &LADDER[..2],
            Self::Large => &LADDER,
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
                assert!(parameters.secret.is_power_of_two() && parameters.trees % TREES == 0);
                assert!(parameters.outputs() > next.base() && parameters.free_groups(next) > 0, "{parameters:?}");
            }
        }
    }

    #[test]
    fn the_documented_counts_are_right() {
        let free = |a: Parameters, b: Parameters| a.free_groups(&b) * a.group_outputs();
        let (small, medium, large) = (Parameters::SMALL, Parameters::MEDIUM, Parameters::LARGE);
        assert_eq!(free(small, small), 126_976);
        assert_eq!((free(small, medium), free(medium, medium)), (90_112, 663_552));
        assert_eq!((free(small, medium) + free(medium, large), free(large, large)), (548_864, 4_964_352));
    }
}
