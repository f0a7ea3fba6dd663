//! Comparison functions with values in a group: shares of `beta` where `point <= x`, and of zero elsewhere.
//!
//! The tree is that of [`crate::point`] without the leaf block, one level for each bit. Each level has, besides its tree
//! word, a *value word* `W`: a party's value of a node `s` is `V(s) = +-(G(s) + (s & 1) W)`, plus for the client and minus
//! for the server, with `G` a hash apart from that of the tree. `W` is such that the two values of the node on the path
//! add up to `beta`; off the path the nodes are equal and cancel. A party adds up the values of the left siblings along
//! the path to `x` and that of its end: an incremental point function (Boneh and others, IEEE S&P 2021) read by prefixes.
//!
//! `G(s)` is `H(s ^ 2), H(s ^ 4), ...`: at inputs where the tree has no node but by chance.
//!
//! The end of the path is one of the two children at the last level, whose value word thus serves for it too.
//!
//! A key takes `bits * (16 + g)` bytes for a group of `g` bytes (`g` if there is no bit). Keys of a batch lie in groups of
//! 32: all tree words of a level, then its value words, level by level.

use privet_prg::paths::{self, GROUP};
use privet_prg::{Block, KEYS_A_PART, TreeHash, TreeHashes};
use rayon::prelude::*;

use crate::Role;
use crate::group::Group;

/// Bytes of one key over `bits` bits.
pub fn key_bytes<G: Group>(bits: u32, group: &G) -> usize {
    bits as usize * 16 + bits.max(1) as usize * group.bytes()
}

/// Makes keys: for each, `values[i]` from `points[i]` on. `hashes` and `roots` as for [`crate::point::plant`].
///
/// # Panics
/// If the lengths differ.
pub fn plant<G: Group>(
    group: &G,
    bits: u32,
    hashes: &TreeHashes,
    roots: [&[Block]; 2],
    points: &[u64],
    values: &[G::Element],
) -> Vec<u8> {
    assert!(roots.iter().all(|roots| roots.len() == points.len()), "a root of each party for each point");
    assert_eq!(values.len(), points.len(), "a value for each point");
    let hashes = hashes.parts(points.len());
    let groups = roots[0].par_chunks(GROUP).zip(roots[1].par_chunks(GROUP));
    let targets = points.par_chunks(GROUP).zip(values.par_chunks(GROUP));
    let planted: Vec<Vec<u8>> = (groups.zip(targets).enumerate())
        .map(|(index, ((client, server), (points, values)))| {
            plant_group(group, bits, &hashes[index * GROUP / KEYS_A_PART], [client, server], points, values)
        })
        .collect();
    planted.concat()
}

fn plant_group<G: Group>(
    group: &G,
    bits: u32,
    hash: &TreeHash,
    roots: [&[Block]; 2],
    points: &[u64],
    values: &[G::Element],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(points.len() * key_bytes(bits, group));
    let mut nodes = roots[0].to_vec();
    let differences: Vec<Block> = nodes.iter().zip(roots[1]).map(|(client, server)| client ^ server).collect();
    let mut words = vec![[0; 16]; points.len()];
    for level in (0..bits).rev() {
        let turns: Vec<u64> = points.iter().map(|point| point >> level).collect();
        paths::plant(hash, &mut nodes, &differences, &turns, 1, &mut words);
        out.extend_from_slice(words.as_flattened());
        value_words(group, hash, &nodes, &differences, values, &mut out);
    }
    if bits == 0 {
        value_words(group, hash, &nodes, &differences, values, &mut out);
    }
    out
}

/// The words that make the values of two nodes add up to `values`.
fn value_words<G: Group>(
    group: &G,
    hash: &TreeHash,
    nodes: &[Block],
    differences: &[Block],
    values: &[G::Element],
    out: &mut Vec<u8>,
) {
    let mut hashes = [Vec::new(), Vec::new()];
    hash_values(group, hash, nodes.iter().copied(), &mut hashes[0]);
    hash_values(group, hash, nodes.iter().zip(differences).map(|(node, difference)| node ^ difference), &mut hashes[1]);
    let (blocks, width) = (group.blocks(), group.bytes());
    let start = out.len();
    out.resize(start + nodes.len() * width, 0);
    for (i, out) in out[start..].chunks_exact_mut(width).enumerate() {
        let [client, server] = hashes.each_ref().map(|hashes| group.sample(&hashes[i * blocks..][..blocks]));
        let gap = group.add(values[i], group.add(server, group.negate(client)));
        let negative = (nodes[i] & 1 ^ 1) as u64;
        group.write(group.add(group.keep(gap, 1 ^ negative), group.keep(group.negate(gap), negative)), out);
    }
}

/// The blocks that `G` of every node is sampled from.
fn hash_values<G: Group>(group: &G, hash: &TreeHash, nodes: impl Iterator<Item = Block>, blocks: &mut Vec<Block>) {
    let tweaks = 1..=group.blocks() as Block;
    blocks.clear();
    for node in nodes {
        blocks.extend(tweaks.clone().map(|j| node ^ j << 1));
    }
    paths::hash(hash, blocks);
}

/// This party's shares, for each key, of its value if its point is at most `x`, else of zero.
///
/// `hashes`: those of the batch, from the first of these keys on. `roots`: this party's, `[n]`. `x`: public, below `2^bits`, `[n]`.
/// `keys`: what [`plant`] made for as many.
///
/// # Panics
/// If the lengths do not fit.
pub fn at_most<G: Group>(
    group: &G,
    bits: u32,
    role: Role,
    hashes: &TreeHashes,
    roots: &[Block],
    x: &[u64],
    keys: &[u8],
) -> Vec<G::Element> {
    assert_eq!(x.len(), roots.len(), "an input for each key");
    assert_eq!(keys.len(), roots.len() * key_bytes(bits, group), "the bytes of each key");
    let hashes = hashes.parts(roots.len());
    let groups = roots.par_chunks(GROUP).zip(x.par_chunks(GROUP));
    let mut sums: Vec<G::Element> = (groups.zip(keys.par_chunks(GROUP * key_bytes(bits, group))).enumerate())
        .flat_map_iter(|(index, ((roots, x), keys))| {
            read_group(group, bits, &hashes[index * GROUP / KEYS_A_PART], roots, x, keys)
        })
        .collect();
    if role == Role::Server {
        sums.iter_mut().for_each(|sum| *sum = group.negate(*sum));
    }
    sums
}

fn read_group<G: Group>(
    group: &G,
    bits: u32,
    hash: &TreeHash,
    roots: &[Block],
    x: &[u64],
    keys: &[u8],
) -> Vec<G::Element> {
    let (count, width, blocks) = (roots.len(), group.bytes(), group.blocks());
    let (mut nodes, mut left, mut turns) = (roots.to_vec(), vec![0; count], vec![1; count]);
    let mut sums = vec![G::Element::default(); count];
    let mut hashes = Vec::with_capacity(count * blocks);
    let mut add = |nodes: &[Block], turns: &[u64], words: &[u8]| {
        hash_values(group, hash, nodes.iter().copied(), &mut hashes);
        for (i, (word, hashes)) in words.chunks_exact(width).zip(hashes.chunks_exact(blocks)).enumerate() {
            let word = group.keep(group.read(word), (nodes[i] & 1) as u64);
            let value = group.add(group.sample(hashes), word);
            sums[i] = group.add(sums[i], group.keep(value, turns[i] & 1));
        }
    };
    for (level, keys) in (0..bits).rev().zip(keys.chunks_exact(count * (16 + width))) {
        let (words, values) = keys.split_at(16 * count);
        turns.iter_mut().zip(x).for_each(|(turn, x)| *turn = x >> level);
        left.fill(0);
        paths::walk(hash, &mut nodes, &turns, 1, words.as_chunks().0, &mut left);
        add(&left, &turns, values);
    }
    turns.fill(1);
    add(&nodes, &turns, &keys[keys.len() - count * width..]);
    sums
}
