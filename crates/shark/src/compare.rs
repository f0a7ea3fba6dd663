//! Comparisons whose result is an authenticated bit: words that turn two roots into shares of `[point <= x] delta`.
//!
//! The tree is that of [`privet_fss::point`] without the leaf block, a level for each bit, with values in the group of 64-bit strings under exclusive
//! or, as [`privet_prg::tags`] adds them up. The value words are such that the two values of the node on the path differ by
//! `delta`; off the path nodes are equal, and so are values. So the two sums differ by `delta` if a left sibling on the way to
//! `x` is on the path, or its end: if the point is at most `x`.
//!
//! A key takes 24 bytes for each bit of the domain, the same for both parties. A domain of no bits has no key: the result
//! is 1.

use privet_fss::Region;
use privet_prg::paths::{self, GROUP};
use privet_prg::tags::{self, LEVEL_BYTES};
use privet_prg::{Block, KEYS_A_PART, TreeHash, TreeHashes};
use rayon::prelude::*;

/// Comparisons that a thread takes at once.
const JOB: usize = KEYS_A_PART;

/// Comparisons whose keys are read at once: what fits the first caches, and comes from memory that is used again and again.
const PART: usize = 2 * GROUP;

/// Bytes of the public seed of a batch's tree hashes.
pub(crate) const HASHES_BYTES: usize = 16;

/// Bytes of one key over `bits` bits.
pub(crate) const fn key_bytes(bits: u32) -> usize {
    LEVEL_BYTES * bits as usize
}

/// Bytes of a batch of `count` keys, with the seed of their hashes.
pub(crate) const fn batch_bytes(bits: u32, count: usize) -> usize {
    HASHES_BYTES + count * key_bytes(bits)
}

/// Makes keys. `hashes`: those of the batch, from the first of these keys on; `roots`: the client's and the server's, of which the lowest bits differ, `[n]` each; `points`: below `2^bits`.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn plant(bits: u32, hashes: &TreeHashes, roots: [&[Block]; 2], points: &[u64], delta: u64) -> Vec<u8> {
    assert!(roots.iter().all(|roots| roots.len() == points.len()), "a root of each party for each point");
    let hashes = hashes.parts(points.len());
    let mut keys = vec![0; points.len() * key_bytes(bits)];
    let groups = keys.par_chunks_mut((GROUP * key_bytes(bits)).max(1)).zip(points.par_chunks(GROUP));
    groups.enumerate().for_each(|(group, (keys, points))| {
        let range = group * GROUP..group * GROUP + points.len();
        plant_group(
            bits,
            &hashes[group * GROUP / KEYS_A_PART],
            [&roots[0][range.clone()], &roots[1][range]],
            points,
            delta,
            keys,
        );
    });
    keys
}

fn plant_group(bits: u32, hash: &TreeHash, roots: [&[Block]; 2], points: &[u64], delta: u64, keys: &mut [u8]) {
    let count = points.len();
    let (mut nodes, mut differences, mut turns) = ([0; GROUP], [0; GROUP], [0; GROUP]);
    let (nodes, differences, turns) = (&mut nodes[..count], &mut differences[..count], &mut turns[..count]);
    nodes.copy_from_slice(roots[0]);
    differences.iter_mut().zip(roots[0].iter().zip(roots[1])).for_each(|(d, (client, server))| *d = client ^ server);
    for (level, keys) in (0..bits).rev().zip(keys.chunks_exact_mut(count * LEVEL_BYTES)) {
        let (words, values) = keys.split_at_mut(16 * count);
        turns.iter_mut().zip(points).for_each(|(turn, point)| *turn = point >> level);
        paths::plant(hash, nodes, differences, turns, 1, words.as_chunks_mut().0);
        let mut hashes = [[0; GROUP]; 2];
        for i in 0..count {
            hashes[0][i] = nodes[i] ^ 2;
            hashes[1][i] = nodes[i] ^ differences[i] ^ 2;
        }
        paths::hash(hash, hashes.as_flattened_mut());
        for (i, value) in values.as_chunks_mut().0.iter_mut().enumerate() {
            *value = ((hashes[0][i] ^ hashes[1][i]) as u64 ^ delta).to_le_bytes();
        }
    }
}

/// This party's words of the bits `[point <= x]`, for each key. Each thread reads its own keys.
///
/// `hashes`: those of the batch; `roots`: this party's, `[n]`; `x`: public, below `2^bits`, `[n]`; `delta`: its share
/// of the key. Fails if the keys cannot be read.
///
/// # Panics
/// If the lengths do not fit.
pub(crate) fn at_most(
    bits: u32,
    hashes: &TreeHashes,
    roots: &[Block],
    x: &[u64],
    keys: &Region<'_>,
    delta: u64,
) -> Result<Vec<u64>, privet_fss::Error> {
    assert_eq!(x.len(), roots.len(), "an input for each key");
    if bits == 0 {
        return Ok(vec![delta; roots.len()]);
    }
    let mut out = vec![0; roots.len()];
    let walk = |job: usize, roots: &[Block], x: &[u64], out: &mut [u64]| {
        let (hash, mut buffer) = (hashes.part(job), vec![0; PART.min(roots.len()) * key_bytes(bits)]);
        let parts = roots.chunks(PART).zip(x.chunks(PART)).zip(out.chunks_mut(PART)).enumerate();
        for (part, ((roots, x), out)) in parts {
            let first = job * JOB + part * PART;
            let keys = keys.read(first * key_bytes(bits), roots.len() * key_bytes(bits), &mut buffer)?;
            tags::walk(&hash, roots, x, bits as usize, keys, out);
        }
        Ok::<_, privet_fss::Error>(())
    };
    if roots.len() <= JOB {
        walk(0, roots, x, &mut out)?;
    } else {
        let jobs = roots.par_chunks(JOB).zip(x.par_chunks(JOB)).zip(out.par_chunks_mut(JOB));
        jobs.enumerate().try_for_each(|(job, ((roots, x), out))| walk(job, roots, x, out))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use privet_fss::Role;
    use privet_prg::Seed;

    use super::*;
    use crate::streams::Streams;

    /// The exclusive or of both parties' words, for keys of `points` read at `x`.
    fn compare(bits: u32, points: &[u64], x: &[u64], delta: u64) -> Vec<u64> {
        let roots = [(Role::Client, 1), (Role::Server, 2)]
            .map(|(role, seed)| Streams::new(role, &Seed::from_block(seed)).roots(points.len()));
        let hashes = TreeHashes::new(&Seed::from_block(3));
        let keys = plant(bits, &hashes, [&roots[0], &roots[1]], points, delta);
        let shares = [5, 5 ^ delta];
        let [client, server] =
            [0, 1].map(|i| at_most(bits, &hashes, &roots[i], x, &Region::Memory(&keys), shares[i]).unwrap());
        client.iter().zip(server).map(|(a, b)| a ^ b).collect()
    }

    #[test]
    fn every_pair_of_small_domains() {
        for bits in 0..7 {
            let (points, x): (Vec<u64>, Vec<u64>) =
                (0..1 << bits).flat_map(|point| (0..1 << bits).map(move |x| (point, x))).unzip();
            let expected: Vec<u64> =
                points.iter().zip(&x).map(|(point, x)| if point <= x { 0xf00d } else { 0 }).collect();
            assert_eq!(compare(bits, &points, &x, 0xf00d), expected, "{bits} bits");
        }
    }

    #[test]
    fn edges_of_wide_domains() {
        for bits in [24, 36, 63, 64] {
            let top = u64::MAX >> (64 - bits);
            let (points, x): (Vec<u64>, Vec<u64>) = [0, 1, top / 2, top / 2 + 1, top - 1, top]
                .iter()
                .flat_map(|a| [0, 1, top / 2, top / 2 + 1, top - 1, top].map(|b| (*a, b)))
                .unzip();
            let expected: Vec<u64> = points.iter().zip(&x).map(|(point, x)| if point <= x { 99 } else { 0 }).collect();
            assert_eq!(compare(bits, &points, &x, 99), expected, "{bits} bits");
        }
    }
}
