//! What a party's seed expands to: one stream for each purpose, so that each step of a gate reads its own in order.

use privet_prg::{Block, Prg, Seed, wipe};
use privet_ring::{Bits, Modulus};

use crate::Role;

/// Masks that are drawn at once: what lies in the nearest cache.
const BLOCK: usize = 1024;

/// The streams of one party and one batch.
pub(crate) struct Streams {
    role: Role,
    masks: Prg,
    roots: Prg,
    flips: Prg,
    shares: Prg,
    hashes: Prg,
}

impl Streams {
    pub(crate) fn new(role: Role, seed: &Seed) -> Self {
        let mut prg = Prg::from_seed(seed);
        let mut stream = || Prg::from_seed(&prg.seed());
        Self { role, masks: stream(), roots: stream(), flips: stream(), shares: stream(), hashes: stream() }
    }

    /// This party's parts of the next `count` masks in `ring`.
    pub(crate) fn masks(&mut self, count: usize, ring: Modulus) -> Vec<u64> {
        let (mut masks, mut block) = (Vec::with_capacity(count), [0; BLOCK]);
        for first in (0..count).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(count - first)];
            self.masks.fill_words(block);
            masks.extend(block.iter().map(|&mask| ring.reduce(mask)));
        }
        wipe(&mut block);
        masks
    }

    /// This party's next roots: the lowest bit says whose they are, all others are random.
    pub(crate) fn roots(&mut self, roots: &mut [Block]) {
        self.roots.fill_blocks(roots);
        let mark = Block::from(self.role == Role::Server);
        roots.iter_mut().for_each(|root| *root = *root & !1 | mark);
    }

    /// This party's part of the public seed of a batch's tree hashes: the dealer adds up both, so that neither party's part tells the
    /// other anything of what its own seed makes besides.
    pub(crate) fn hashes(&mut self) -> Block {
        self.hashes.block()
    }

    /// The seeds of a batch's parts, in a gate that looks digits up. Of each part the client's streams alone are used.
    pub(crate) fn parts(&mut self, count: usize) -> Vec<Seed> {
        (0..count).map(|_| self.roots.seed()).collect()
    }

    /// The client's streams of the next `count` parts.
    pub(crate) fn part_streams(&mut self, count: usize) -> Vec<Self> {
        self.parts(count).iter().map(|seed| Self::new(Role::Client, seed)).collect()
    }

    /// The client's shares of a part's tables.
    pub(crate) fn pads(&mut self, out: &mut [u64]) {
        self.roots.fill_words(out);
    }

    /// This party's parts of the next `count` bits that hide a comparison's result. Called once for each that an element opens.
    pub(crate) fn flips(&mut self, count: usize) -> Bits {
        bits(&mut self.flips, count)
    }

    /// The client's shares of the next `count` secrets of a bit.
    pub(crate) fn share_bits(&mut self, count: usize) -> Bits {
        bits(&mut self.shares, count)
    }

    /// The client's packed shares of the next secrets, as many as fill `out`.
    pub(crate) fn packed_shares(&mut self, out: &mut [u8]) {
        self.shares.fill(out);
    }

    /// The client's shares of the next `out.len()` secrets, to be reduced by whoever uses them.
    pub(crate) fn shares(&mut self, out: &mut [u64]) {
        self.shares.fill_words(out);
    }
}

fn bits(stream: &mut Prg, count: usize) -> Bits {
    let mut words = vec![0; count.div_ceil(64)];
    stream.fill_words(&mut words);
    Bits::from_words(words, count).expect("as many words as bits ask for")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_streams_agree() {
        let seeds = [1, 2].map(Seed::from_block);
        let mut streams = seeds.each_ref().map(|seed| Streams::new(Role::Client, seed));
        let firsts: HashSet<u64> = (streams.iter_mut())
            .flat_map(|streams| {
                let mut root = [0];
                streams.roots(&mut root);
                let mut share = [0];
                streams.shares(&mut share);
                // The lowest bit of a root is no part of the stream.
                [streams.masks(1, Modulus::new(64))[0], root[0] as u64, streams.flips(64).words()[0], share[0]]
                    .map(|word| word & !1)
            })
            .collect();
        assert_eq!(firsts.len(), 8);
    }

    #[test]
    fn no_two_roots_agree() {
        let seeds = [1, 2].map(Seed::from_block);
        let mut roots = [[0; 100]; 2];
        Streams::new(Role::Client, &seeds[0]).roots(&mut roots[0]);
        Streams::new(Role::Server, &seeds[1]).roots(&mut roots[1]);
        let distinct: HashSet<Block> = roots.as_flattened().iter().map(|root| root >> 1).collect();
        assert_eq!(distinct.len(), 200);
        let differences: HashSet<Block> = roots[0].iter().zip(roots[1]).map(|(a, b)| a ^ b).collect();
        assert_eq!(differences.len(), 100);
        assert!(differences.iter().all(|difference| difference & 1 == 1));
    }
}
