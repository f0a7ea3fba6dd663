//! One iteration: LPN samples `A * secret + noise`, computed on the blocks that authenticate them.
//!
//! Both parties apply the same public matrix `A`, a one to a row in each of [`sparse::PARTS`] parts, to their blocks for the bits of
//! the secrets, and add the leaves of their trees. All instances are side by side, so that one read serves a sample of each. Parties go
//! through [`TILE`] rows for a few parts after the other, so that what is read at random stays in the second-level cache if parts are
//! small. The relation `q ^ t = c * delta` is linear, so it carries over, and since `delta` is odd and every `q` even, the choice bit `c`
//! is the lowest bit of `t` all the way.

use std::ops::Range;

use privet_prg::ggm::TREES;
use privet_prg::sparse::Lanes;
use privet_prg::{Block, KeyStream, Seed, TreeHash, sparse};
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::group;
use super::parameters::{INSTANCES, Parameters};

/// Rows of samples that a thread adds to before the next parts: at most a MiB.
const TILE: usize = 1 << 14;

/// Passes over a tile.
const PASSES: usize = sparse::PARTS / sparse::PARTS_A_PASS;

/// Blocks of the matrix from a pass over some samples to the same pass over the next ones.
const STRIDE: u64 = (PASSES * sparse::WORD_BLOCKS) as u64;

/// What an iteration starts from.
pub(super) struct Iteration {
    parameters: Parameters,
    /// The public stream of which the matrix is made.
    matrix: KeyStream,
    /// What it starts from, from place `first` on.
    memory: Zeroizing<Vec<Block>>,
    first: usize,
}

impl Iteration {
    /// `seed`: the iteration's public one, fresh. `base`: from the place given on, at least [`Parameters::base`] blocks of correlated OTs,
    /// used nowhere else.
    pub(super) fn new(parameters: Parameters, seed: &Seed, (memory, first): (Zeroizing<Vec<Block>>, usize)) -> Self {
        Self { parameters, matrix: KeyStream::new(seed), memory, first }
    }

    /// The memory of what it started from.
    pub(super) fn into_memory(self) -> Zeroizing<Vec<Block>> {
        self.memory
    }

    /// Blocks for the LPN secrets, bit after bit for all instances, then for the trees, group after group.
    pub(super) fn base(&self) -> &[Block] {
        &self.memory[self.first..]
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The sender's blocks of `groups`, and the message for them.
    pub(super) fn plant(&self, delta: Block, groups: Range<usize>, out: &mut [Block]) -> Vec<[u8; 16]> {
        let mut message = vec![[0; 16]; groups.len() * self.parameters.group_blocks()];
        out.par_chunks_exact_mut(self.parameters.group_outputs())
            .zip(message.par_chunks_exact_mut(self.parameters.group_blocks()))
            .zip(groups.clone())
            .for_each(|((out, message), index)| {
                group::plant(&self.hash(index), delta, self.tree_base(index), out, message);
            });
        self.encode(groups.start, out);
        message
    }

    /// The receiver's blocks of `groups` from the sender's message for them.
    pub(super) fn grow(&self, groups: Range<usize>, message: &[[u8; 16]], out: &mut [Block]) {
        out.par_chunks_exact_mut(self.parameters.group_outputs())
            .zip(message.par_chunks_exact(self.parameters.group_blocks()))
            .zip(groups.clone())
            .for_each(|((out, message), index)| {
                group::grow(&self.hash(index), self.tree_base(index), message, out);
            });
        self.encode(groups.start, out);
    }

    /// The hash of a group's trees: its key is a block of the stream that no matrix reaches.
    fn hash(&self, group: usize) -> TreeHash {
        let mut key = [0];
        self.matrix.blocks(u64::MAX - group as u64, &mut key);
        TreeHash::new(&key[0].to_le_bytes())
    }

    /// The blocks that the trees of a group start from.
    fn tree_base(&self, group: usize) -> &[Block] {
        let len = TREES * self.parameters.depth;
        &self.base()[INSTANCES * self.parameters.secret() + group * len..][..len]
    }

    /// Adds the matrix times the secrets to the leaves of all groups from `first` on.
    fn encode(&self, first: usize, leaves: &mut [Block]) {
        let secrets: &[Lanes] = self.base()[..INSTANCES * self.parameters.secret()].as_chunks().0;
        let leaves: &mut [[Lanes; sparse::ROWS]] = leaves.as_chunks_mut().0.as_chunks_mut().0;
        let first = (first << self.parameters.depth) / sparse::ROWS;
        let tile = leaves.len().div_ceil(rayon::current_num_threads()).clamp(1, TILE / sparse::ROWS);
        leaves.par_chunks_mut(tile).enumerate().for_each(|(index, leaves)| {
            let first = first + index * tile;
            let parts = secrets.chunks_exact(sparse::PARTS_A_PASS << self.parameters.part_bits);
            for (pass, parts) in parts.enumerate() {
                let first = ((first * PASSES + pass) * sparse::WORD_BLOCKS) as u64;
                sparse::add(leaves, parts, &self.matrix, first, STRIDE);
            }
        });
    }
}

#[cfg(test)]
impl Iteration {
    /// What the samples would be without noise: a control for the tests.
    pub(super) fn encoded(&self) -> Vec<Block> {
        let mut samples = vec![0; self.parameters.outputs()];
        self.encode(0, &mut samples);
        samples
    }
}
