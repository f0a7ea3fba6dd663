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

use privet_prg::Block;
use privet_prg::paths::{self, GROUP};

use crate::Role;
use crate::group::Group;

/// Bytes of one key over `bits` bits.
pub fn key_bytes<G: Group>(bits: u32, group: &G) -> usize {
    bits as usize * 16 + bits.max(1) as usize * group.bytes()
}

/// Makes keys: for each, `values[i]` from `points[i]` on. `roots` as for [`crate::point::plant`].
///
/// # Panics
/// If the lengths differ.
pub fn plant<G: Group>(group: &G, bits: u32, roots: [&[Block]; 2], points: &[u64], values: &[G::Element]) -> Vec<u8> {
    assert!(roots.iter().all(|roots| roots.len() == points.len()), "a root of each party for each point");
    assert_eq!(values.len(), points.len(), "a value for each point");
    let mut out = Vec::with_capacity(points.len() * key_bytes(bits, group));
    for first in (0..points.len()).step_by(GROUP) {
        let here = first..points.len().min(first + GROUP);
        let roots = [&roots[0][here.clone()], &roots[1][here.clone()]];
        plant_group(group, bits, roots, &points[here.clone()], &values[here], &mut out);
    }
    out
}

fn plant_group<G: Group>(
    group: &G,
    bits: u32,
    roots: [&[Block]; 2],
    points: &[u64],
    values: &[G::Element],
    out: &mut Vec<u8>,
) {
    let mut nodes = roots[0].to_vec();
    let differences: Vec<Block> = nodes.iter().zip(roots[1]).map(|(client, server)| client ^ server).collect();
    let mut words = vec![[0; 16]; points.len()];
    for level in (0..bits).rev() {
        let turns: Vec<u64> = points.iter().map(|point| point >> level).collect();
        paths::plant(&mut nodes, &differences, &turns, 1, &mut words);
        out.extend_from_slice(words.as_flattened());
        value_words(group, &nodes, &differences, values, out);
    }
    if bits == 0 {
        value_words(group, &nodes, &differences, values, out);
    }
}

/// The words that make the values of two nodes add up to `values`.
fn value_words<G: Group>(group: &G, nodes: &[Block], differences: &[Block], values: &[G::Element], out: &mut Vec<u8>) {
    let theirs: Vec<Block> = nodes.iter().zip(differences).map(|(node, difference)| node ^ difference).collect();
    let (client, server) = (hashed(group, nodes), hashed(group, &theirs));
    for i in 0..nodes.len() {
        let gap = group.add(values[i], group.add(server[i], group.negate(client[i])));
        let negative = (nodes[i] & 1 ^ 1) as u64;
        let word = group.add(group.keep(gap, 1 ^ negative), group.keep(group.negate(gap), negative));
        let start = out.len();
        out.resize(start + group.bytes(), 0);
        group.write(word, &mut out[start..]);
    }
}

/// `G` of every node.
fn hashed<G: Group>(group: &G, nodes: &[Block]) -> Vec<G::Element> {
    let blocks = group.blocks();
    let mut inputs: Vec<Block> =
        nodes.iter().flat_map(|node| (1..=blocks as Block).map(move |j| node ^ j << 1)).collect();
    paths::hash(&mut inputs);
    inputs.chunks_exact(blocks).map(|blocks| group.sample(blocks)).collect()
}

/// This party's shares, for each key, of its value if its point is at most `x`, else of zero.
///
/// `roots`: this party's, `[n]`. `x`: public, below `2^bits`, `[n]`. `keys`: what [`plant`] made for as many.
///
/// # Panics
/// If the lengths do not fit.
pub fn at_most<G: Group>(group: &G, bits: u32, role: Role, roots: &[Block], x: &[u64], keys: &[u8]) -> Vec<G::Element> {
    assert_eq!(x.len(), roots.len(), "an input for each key");
    assert_eq!(keys.len(), roots.len() * key_bytes(bits, group), "the bytes of each key");
    let mut sums = Vec::with_capacity(x.len());
    let mut rest = keys;
    for (roots, x) in roots.chunks(GROUP).zip(x.chunks(GROUP)) {
        let (keys, later) = rest.split_at(roots.len() * key_bytes(bits, group));
        rest = later;
        sums.extend(read_group(group, bits, roots, x, keys));
    }
    if role == Role::Server {
        sums.iter_mut().for_each(|sum| *sum = group.negate(*sum));
    }
    sums
}

fn read_group<G: Group>(group: &G, bits: u32, roots: &[Block], x: &[u64], keys: &[u8]) -> Vec<G::Element> {
    let (count, width) = (roots.len(), group.bytes());
    let mut nodes = roots.to_vec();
    let mut sums = vec![G::Element::default(); count];
    let mut add = |nodes: &[Block], turns: &[u64], words: &[u8]| {
        let values = hashed(group, nodes);
        for (i, word) in words.chunks_exact(width).enumerate() {
            let value = group.add(values[i], group.keep(group.read(word), (nodes[i] & 1) as u64));
            sums[i] = group.add(sums[i], group.keep(value, turns[i] & 1));
        }
    };
    for (level, keys) in (0..bits).rev().zip(keys.chunks_exact(count * (16 + width))) {
        let (words, values) = keys.split_at(16 * count);
        let turns: Vec<u64> = x.iter().map(|x| x >> level).collect();
        let mut left = vec![0; count];
        paths::walk(&mut nodes, &turns, 1, words.as_chunks().0, &mut left);
        add(&left, &turns, values);
    }
    add(&nodes, &vec![1; count], &keys[keys.len() - count * width..]);
    sums
}
