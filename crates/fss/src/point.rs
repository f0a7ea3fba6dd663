//! Comparisons: words that turn two parties' roots into shares of `point <= x`.
//!
//! A key for the point `a` of a `bits`-bit domain is a half-tree ([`privet_prg::paths`]) over all bits but the last seven,
//! and a leaf of 128 bits below: `words(bits) = max(bits - 7, 0) + 1` correction words of 16 bytes, the same for both
//! parties, and a root for each that is random but for its lowest bit (0 for the client, 1 for the server). Below the
//! path's end the two parties' leaves differ by a block of the dealer's choice; anywhere else they are equal.
//!
//! Leaves differ by ones from position `a % 128` on. A party adds up its lowest bits of the left siblings along the path to
//! `x`, and the leaf's bit at `x % 128`; the two sums differ if and only if `a <= x`. (Left siblings cover all that is smaller
//! than `x`'s leaf, and at most one of them is an ancestor of `a`.) This is the prefix parity of Grotto (CCS 2023) and
//! SIGMA's comparison.
//!
//! Words lie in groups of 32 keys, level by level, as [`privet_prg::paths`] has them, so that a batch is read in one
//! stream. One comparison takes `words(bits)` AES calls for each party, and twice as many for the dealer.

use privet_prg::paths::{self, GROUP};
use privet_prg::{Block, KEYS_A_PART, TreeHash, TreeHashes};
use rayon::prelude::*;

/// Bits of the domain that a leaf covers.
pub const LEAF_BITS: u32 = 7;

/// Correction words of one key over `bits` bits, 16 bytes each.
pub const fn words(bits: u32) -> usize {
    bits.saturating_sub(LEAF_BITS) as usize + 1
}

/// Makes the words of `points.len()` keys.
///
/// `hashes`: those of the batch, from its first key on. `roots`: the client's and the server's, `[n]` each, of which the lowest
/// bits differ. `points`: below `2^bits`, `[n]`. Returns `n * words(bits)` words in groups.
///
/// # Panics
/// If the lengths differ.
pub fn plant(bits: u32, hashes: &TreeHashes, roots: [&[Block]; 2], points: &[u64]) -> Vec<[u8; 16]> {
    plant_leaves(bits, hashes, roots, points, |point| Block::MAX << (point & 127), &mut vec![false; points.len()])
}

/// As [`plant`], but of leaves that differ in the bit of the point alone: words of point functions, for [`everywhere`]. `at_client`
/// says of each key whether the client's bit of the point is the one that is set.
///
/// # Panics
/// If the lengths differ.
pub fn plant_points(
    bits: u32,
    hashes: &TreeHashes,
    roots: [&[Block]; 2],
    points: &[u64],
    at_client: &mut [bool],
) -> Vec<[u8; 16]> {
    plant_leaves(bits, hashes, roots, points, |point| 1 << (point & 127), at_client)
}

fn plant_leaves(
    bits: u32,
    hashes: &TreeHashes,
    roots: [&[Block]; 2],
    points: &[u64],
    difference: impl Fn(u64) -> Block + Sync,
    at_client: &mut [bool],
) -> Vec<[u8; 16]> {
    let levels = words(bits);
    assert_eq!(at_client.len(), points.len(), "a bit for each point");
    assert!(roots.iter().all(|roots| roots.len() == points.len()), "a root of each party for each point");
    let hashes = hashes.parts(points.len());
    let mut planted = vec![[0; 16]; points.len() * levels];
    let groups = planted.par_chunks_mut(GROUP * levels).zip(points.par_chunks(GROUP));
    groups.zip(at_client.par_chunks_mut(GROUP)).enumerate().for_each(|(group, ((out, points), at_client))| {
        let range = group * GROUP..group * GROUP + points.len();
        let hash = &hashes[group * GROUP / KEYS_A_PART];
        plant_group(hash, [&roots[0][range.clone()], &roots[1][range]], points, &difference, out, at_client);
    });
    planted
}

fn plant_group(
    hash: &TreeHash,
    roots: [&[Block]; 2],
    points: &[u64],
    difference: impl Fn(u64) -> Block,
    out: &mut [[u8; 16]],
    at_client: &mut [bool],
) {
    let count = points.len();
    let (turns, leaves) = out.split_at_mut(out.len() - count);
    let mut nodes = [[0; GROUP]; 2];
    let mut differences = [0; GROUP];
    let mut path = [0; GROUP];
    for i in 0..count {
        nodes[0][i] = roots[0][i];
        differences[i] = roots[0][i] ^ roots[1][i];
        path[i] = points[i] >> LEAF_BITS;
    }
    paths::plant(hash, &mut nodes[0][..count], &differences[..count], &path[..count], turns.len() / count, turns);
    let mut marked = [0; GROUP];
    for i in 0..count {
        marked[i] = (nodes[0][i] & 1).wrapping_neg();
        nodes[1][i] = nodes[0][i] ^ differences[i];
    }
    paths::hash(hash, nodes.as_flattened_mut());
    for (i, leaf) in leaves.iter_mut().enumerate() {
        let word = nodes[0][i] ^ nodes[1][i] ^ difference(points[i]);
        at_client[i] = (nodes[0][i] ^ word & marked[i]) >> (points[i] & 127) & 1 == 1;
        *leaf = word.to_le_bytes();
    }
}

/// One party's bits of point functions everywhere: for each key its shares of whether the point is `x`, for all `x` below
/// `2^bits`.
///
/// `hash`: that of the keys. `roots`: this party's, `[n]`. `words`: `n * words(bits)`, as [`plant_points`] made them. `out`:
/// `[n, 2^(bits - 6)]`, 64 bits to a word. No address and no branch depends on any of them. `2^(bits - 6) - 1` AES calls a key.
///
/// # Panics
/// If the lengths do not fit, or `bits` is below 7.
pub fn everywhere(bits: u32, hash: &TreeHash, roots: &[Block], words: &[[u8; 16]], out: &mut [u64]) {
    assert!(bits >= LEAF_BITS, "whole leaves");
    let (leaves, rest) = out.as_chunks_mut();
    assert!(rest.is_empty(), "the leaves of each key");
    paths::leaves(hash, roots, self::words(bits), words, leaves);
}

/// One party's bits of `n` comparisons: for each key, its share of whether its point is at most `x`.
///
/// `hashes`: those of the batch, from the first of these keys on. `nodes`: this party's roots, used up, `[n]`. `x`: public, below
/// `2^bits`, `[n]`. `words`: `n * words(bits)`. `out`: one bit in each word, `[n]`.
///
/// # Panics
/// If the lengths do not fit.
pub fn at_most(bits: u32, hashes: &TreeHashes, nodes: &mut [Block], x: &[u64], words: &[[u8; 16]], out: &mut [u64]) {
    let levels = self::words(bits);
    assert_eq!(out.len(), nodes.len(), "a bit for each key");
    assert_eq!(x.len(), nodes.len(), "an input for each key");
    assert_eq!(words.len(), nodes.len() * levels, "the words of each key");
    // Enough work for a thread: some ten thousand AES calls.
    let keys = KEYS_A_PART;
    let parts = nodes.par_chunks_mut(keys).zip(x.par_chunks(keys)).zip(words.par_chunks(keys * levels));
    parts.zip(out.par_chunks_mut(keys)).enumerate().for_each(|(part, (((nodes, x), words), out))| {
        let hash = hashes.part(part);
        let groups = nodes.chunks_mut(GROUP).zip(x.chunks(GROUP)).zip(words.chunks(GROUP * levels));
        for (((nodes, x), words), out) in groups.zip(out.chunks_mut(GROUP)) {
            let (mut path, mut left) = ([0; GROUP], [0; GROUP]);
            let (path, left) = (&mut path[..nodes.len()], &mut left[..nodes.len()]);
            // The leaf is one more left turn.
            path.iter_mut().zip(x).for_each(|(path, x)| *path = x >> LEAF_BITS << 1);
            paths::walk(&hash, nodes, path, levels, words, left);
            for i in 0..nodes.len() {
                out[i] = ((nodes[i] >> (x[i] & 127)) ^ left[i]) as u64 & 1;
            }
        }
    });
}
