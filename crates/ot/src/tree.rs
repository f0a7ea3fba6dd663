//! Puncturable PRF: 128 base OTs become `128 / k` groups of `2^k` seeds of which one party lacks one seed per group.
//!
//! The tree of Goldreich, Goldwasser and Micali, punctured by one base OT per level as in SoftSpokenOT (Roy, CRYPTO
//! 2022): the planter sends, per level, the exclusive or of all left and of all right children, each under
//! the base-OT key that the other party has only if its path goes the other way.
//!
//! Seed `x` of a group has the bits of `x` as its path, most significant first; the missing one is `delta`'s part for
//! that group. The punctured side numbers nodes relative to the missing one (`y = x ^ delta`), so that its memory
//! accesses do not depend on `delta`, and node 0 is the one it lacks.

use privet_prg::{Block, KeyStream, Prg, Seed};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use crate::base;

/// Bytes of the planter's message: two blocks per base OT.
pub(crate) const MESSAGE_BYTES: usize = 2 * base::COUNT * 16;

/// Seeds of all groups, group after group.
pub(crate) type Seeds = Zeroizing<Vec<Block>>;

/// Plants one tree per group of `k` base OTs, of which this party knows both keys. Returns all `128 / k * 2^k` seeds and
/// the message for the other party.
pub(crate) fn plant(k: usize, keys: &[[Block; 2]], prg: &mut Prg) -> (Seeds, Vec<u8>) {
    let mut seeds = Zeroizing::new(Vec::with_capacity((keys.len() / k) << k));
    let mut message = vec![[0; 2]; keys.len()];
    for (keys, message) in keys.chunks_exact(k).zip(message.chunks_exact_mut(k)) {
        let mut nodes = Zeroizing::new(vec![prg.block()]);
        for (keys, sums) in keys.iter().zip(message.iter_mut()).rev() {
            nodes = Zeroizing::new(nodes.iter().flat_map(|&node| children(node)).collect());
            *sums = [keys[1] ^ sum_of(&nodes, 0), keys[0] ^ sum_of(&nodes, 1)];
        }
        seeds.extend_from_slice(&nodes);
    }
    (seeds, message.as_flattened().iter().flat_map(|block| block.to_le_bytes()).collect())
}

/// Grows the trees of the other party from the base-OT keys chosen by the bits of `delta` and its message of
/// [`MESSAGE_BYTES`]. Returns the seeds in relative order; the first of each group is unknown and zero.
pub(crate) fn grow(k: usize, delta: Block, keys: &[Block], message: &[u8]) -> Seeds {
    let (blocks, _) = message.as_chunks::<16>();
    let (sums, _) = blocks.as_chunks::<2>();
    let mut seeds = Zeroizing::new(Vec::with_capacity((keys.len() / k) << k));
    for (group, (keys, sums)) in keys.chunks_exact(k).zip(sums.chunks_exact(k)).enumerate() {
        // Below node 0 everything is meaningless; node 1 is then set right by the sum.
        let mut nodes = Zeroizing::new(vec![0]);
        for (level, (key, sums)) in keys.iter().zip(sums).enumerate().rev() {
            let on_path = Choice::from((delta >> (group * k + level) & 1) as u8);
            nodes = Zeroizing::new(nodes.iter().flat_map(|&node| relative_children(node, on_path)).collect());
            let sum =
                Block::conditional_select(&Block::from_le_bytes(sums[1]), &Block::from_le_bytes(sums[0]), on_path)
                    ^ key;
            nodes[0] = 0;
            nodes[1] = 0;
            nodes[1] = sum ^ sum_of(&nodes, 1);
        }
        nodes[0] = 0;
        seeds.extend_from_slice(&nodes);
    }
    seeds
}

/// The exclusive or of all left (0) or all right (1) children of a level.
fn sum_of(nodes: &[Block], side: usize) -> Block {
    nodes.iter().skip(side).step_by(2).fold(0, |sum, node| sum ^ node)
}

fn children(node: Block) -> [Block; 2] {
    let mut children = [0; 2];
    KeyStream::new(&Seed::from_block(node)).blocks(0, &mut children);
    children
}

fn relative_children(node: Block, swap: Choice) -> [Block; 2] {
    let [mut left, mut right] = children(node);
    Block::conditional_swap(&mut left, &mut right, swap);
    [left, right]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_party_has_every_seed_but_one() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([1; 16]));
        for k in [1, 2, 4, 8] {
            let delta = prg.block();
            let keys: Vec<[Block; 2]> = (0..128).map(|_| [prg.block(), prg.block()]).collect();
            let chosen: Vec<Block> = keys.iter().enumerate().map(|(i, keys)| keys[(delta >> i & 1) as usize]).collect();
            let (all, message) = plant(k, &keys, &mut prg);
            assert_eq!(message.len(), MESSAGE_BYTES);
            let punctured = grow(k, delta, &chosen, &message);
            assert_eq!((all.len(), punctured.len()), ((128 / k) << k, (128 / k) << k));
            for (group, (all, punctured)) in all.chunks(1 << k).zip(punctured.chunks(1 << k)).enumerate() {
                let missing = (delta >> (group * k)) as usize & ((1 << k) - 1);
                assert_eq!(punctured[0], 0);
                for y in 1..1 << k {
                    assert_eq!(punctured[y], all[y ^ missing], "k {k}, group {group}, seed {y}");
                }
                // Nothing known opens the missing seed: it is no sum of what was sent either.
                assert!(!punctured.contains(&all[missing]));
            }
        }
    }

    #[test]
    fn a_party_that_takes_another_path_than_it_chose_gets_no_missing_seed() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([2; 16]));
        for k in [1, 2, 4, 8] {
            let delta = prg.block();
            let keys: Vec<[Block; 2]> = (0..128).map(|_| [prg.block(), prg.block()]).collect();
            let chosen: Vec<Block> = keys.iter().enumerate().map(|(i, keys)| keys[(delta >> i & 1) as usize]).collect();
            let (all, message) = plant(k, &keys, &mut prg);
            // The sibling of every missing seed: its path differs in the last level alone.
            let last_levels = (0..128 / k).fold(0, |bits, group| bits | 1 << (group * k));
            let punctured = grow(k, delta ^ last_levels, &chosen, &message);
            for (group, all) in all.chunks(1 << k).enumerate() {
                let missing = (delta >> (group * k)) as usize & ((1 << k) - 1);
                assert!(!punctured.contains(&all[missing]), "k {k}, group {group}");
            }
        }
    }
}
