//! Four trees that are grown together: single-point correlated OT by half-trees, without a message of the receiver.
//!
//! Figure of the single-point COT of Half-Tree (EUROCRYPT 2023), semi-honest: the children of a node add up to the node,
//! and the first level to `delta`, so every level of the sender's tree adds up to `delta`. Per level the receiver learns
//! the sum of the side that its path does not take, from which it sets right the one node that it could not grow; its
//! node on the path is always the sum of all its others, and so at the leaves the sender's leaf plus `delta`.
//!
//! Level `l` takes one correlated OT `q ^ t = b * delta`: the path goes to the side `1 - b`, so noise positions are
//! uniform because choice bits are. The sender sends `q` plus the sum of the left children. On the first level the left
//! node is `q` itself, so that nothing is to be sent: the known node is `t`.

use privet_prg::ggm::{self, Correction, TREES};
use privet_prg::{Block, TreeHash};

/// A path that no leaf has: all of a sender's leaves have even blocks.
const NOWHERE: [u64; TREES] = [u64::MAX; TREES];

/// The sender's leaves, all with their lowest bit cleared, and its message.
///
/// `hash`: that of these trees alone. `base`: its blocks `q` of shape `[depth, TREES]`; `leaves`: shape `[2^depth, TREES]`; `message`: shape
/// `[depth - 1, TREES]`.
pub(super) fn plant(hash: &TreeHash, delta: Block, base: &[Block], leaves: &mut [Block], message: &mut [[u8; 16]]) {
    let (base, _) = base.as_chunks::<TREES>();
    let (message, _) = message.as_chunks_mut::<TREES>();
    for g in 0..TREES {
        leaves[g] = base[0][g];
        leaves[TREES + g] = base[0][g] ^ delta;
    }
    for (level, (base, message)) in base[1..].iter().zip(message).enumerate() {
        let sums = ggm::grow(hash, &mut leaves[..(4 * TREES) << level], &Correction::NONE);
        for g in 0..TREES {
            message[g] = (sums[g] ^ base[g]).to_le_bytes();
        }
    }
    ggm::mark(leaves, &Correction::NONE, &NOWHERE);
}

/// The receiver's leaves: the sender's, but for one per tree which differs by `delta`, and which alone has its lowest
/// bit set. Shapes as in [`plant`]; the lowest bits of `base` are the choice bits.
pub(super) fn grow(hash: &TreeHash, base: &[Block], message: &[[u8; 16]], leaves: &mut [Block]) {
    let (base, _) = base.as_chunks::<TREES>();
    let (message, _) = message.as_chunks::<TREES>();
    let (mut paths, mut correction) = ([0; TREES], Correction::NONE);
    for g in 0..TREES {
        leaves[g] = base[0][g];
        leaves[TREES + g] = base[0][g];
        paths[g] = !(base[0][g] as u64) & 1;
    }
    for (level, (base, message)) in base[1..].iter().zip(message).enumerate() {
        let sums = ggm::grow(hash, &mut leaves[..(4 * TREES) << level], &correction);
        // The node on the path is the sum of all others, so both sides have the same sum: `sums`.
        let differences = std::array::from_fn(|g| Block::from_le_bytes(message[g]) ^ base[g] ^ sums[g]);
        correction = Correction { paths, differences };
        for g in 0..TREES {
            paths[g] |= (!(base[g] as u64) & 1) << (level + 1);
        }
    }
    ggm::mark(leaves, &correction, &paths);
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};

    use super::*;

    #[test]
    fn leaves_differ_by_delta_at_the_noise_alone() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([5; 16]));
        let delta = prg.block() | 1;
        for depth in [2, 3, 9, 12] {
            let (mut q, mut t) = (Vec::new(), Vec::new());
            let mut paths = [0_usize; TREES];
            for level in 0..depth {
                for path in &mut paths {
                    let (block, choice) = (prg.block() & !1, prg.word() & 1);
                    q.push(block);
                    t.push(block ^ if choice == 1 { delta } else { 0 });
                    *path |= (1 - choice as usize) << level;
                }
            }
            let mut message = vec![[0; 16]; TREES * (depth - 1)];
            let (mut all, mut punctured) = (vec![0; TREES << depth], vec![1; TREES << depth]);
            let hash = TreeHash::new(&[9; 16]);
            plant(&hash, delta, &q, &mut all, &mut message);
            grow(&hash, &t, &message, &mut punctured);
            for (i, (sender_leaf, receiver_leaf)) in all.iter().zip(&punctured).enumerate() {
                let noisy = i / TREES == paths[i % TREES];
                assert_eq!(sender_leaf ^ receiver_leaf, if noisy { delta } else { 0 }, "leaf {i} of depth {depth}");
                assert_eq!((sender_leaf & 1, receiver_leaf & 1), (0, u128::from(noisy)));
            }
            let mut distinct = all.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), all.len());
        }
    }
}
