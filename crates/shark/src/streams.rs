//! What a party's seed of a run expands to: one stream for each purpose, read in the order of the run's steps.

use privet_fss::Role;
use privet_prg::{Block, Prg, Seed};

/// The streams of one party.
pub(crate) struct Streams {
    role: Role,
    shares: Prg,
    codes: Prg,
    roots: Prg,
    flips: Prg,
    hashes: Prg,
}

impl Streams {
    pub(crate) fn new(role: Role, seed: &Seed) -> Self {
        let mut prg = Prg::from_seed(seed);
        let mut stream = || Prg::from_seed(&prg.seed());
        Self { role, shares: stream(), codes: stream(), roots: stream(), flips: stream(), hashes: stream() }
    }

    /// This party's next `count` random shares of values.
    pub(crate) fn shares(&mut self, count: usize) -> Vec<u128> {
        filled(count, |out| self.fill_shares(out))
    }

    /// As [`Streams::shares`], to `out`.
    pub(crate) fn fill_shares(&mut self, out: &mut [u128]) {
        self.shares.fill_blocks(out);
    }

    /// The client's next `count` shares of codes.
    pub(crate) fn codes(&mut self, count: usize) -> Vec<u128> {
        filled(count, |out| self.fill_codes(out))
    }

    /// As [`Streams::codes`], to `out`.
    pub(crate) fn fill_codes(&mut self, out: &mut [u128]) {
        self.codes.fill_blocks(out);
    }

    /// This party's next roots: the lowest bit says whose they are, all others are random.
    pub(crate) fn roots(&mut self, count: usize) -> Vec<Block> {
        let mark = Block::from(self.role == Role::Server);
        let mut roots = filled(count, |out| self.roots.fill_blocks(out));
        roots.iter_mut().for_each(|root| *root = *root & !1 | mark);
        roots
    }

    /// This party's part of the public seed of the next batch's tree hashes: the dealer adds up both.
    pub(crate) fn hashes(&mut self) -> Block {
        self.hashes.block()
    }

    /// This party's next `count` words for bits that hide a comparison's result.
    pub(crate) fn flips(&mut self, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        self.flips.fill_words(&mut words);
        words
    }
}

fn filled(count: usize, fill: impl FnOnce(&mut [u128])) -> Vec<u128> {
    let mut blocks = vec![0; count];
    fill(&mut blocks);
    blocks
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_streams_agree() {
        let mut firsts = HashSet::new();
        for seed in [1, 2].map(Seed::from_block) {
            let mut streams = Streams::new(Role::Client, &seed);
            let flips = streams.flips(2);
            // The lowest bit of a root is no part of the stream.
            let words = [streams.shares(1)[0], streams.codes(1)[0], streams.roots(1)[0]].map(|word| word & !1);
            firsts.extend(words);
            firsts.insert((u128::from(flips[1]) << 64 | u128::from(flips[0])) & !1);
        }
        assert_eq!(firsts.len(), 8);
    }

    #[test]
    fn no_two_roots_agree() {
        let roots = [(Role::Client, 1), (Role::Server, 2)]
            .map(|(role, seed)| Streams::new(role, &Seed::from_block(seed)).roots(100));
        let distinct: HashSet<Block> = roots.iter().flatten().map(|root| root >> 1).collect();
        assert_eq!(distinct.len(), 200);
        assert!(roots[0].iter().zip(&roots[1]).all(|(client, server)| client & 1 == 0 && server & 1 == 1));
    }
}
