//! Comparisons: known answers, whole small domains, laws on 64 bits, and what one party sees.

use std::collections::HashMap;

use privet_fss::point;
use privet_prg::paths::{self, GROUP};
use privet_prg::{Block, KEYS_A_PART, Prg, Seed, TreeHashes};
use proptest::prelude::*;

fn prg(seed: u64) -> Prg {
    Prg::from_seed(&Seed::from_block(Block::from(seed)))
}

/// The hashes of a batch.
fn hashes() -> TreeHashes {
    TreeHashes::new(&Seed::from_block(5))
}

/// Both parties' roots of `count` keys.
fn roots(count: usize, prg: &mut Prg) -> [Vec<Block>; 2] {
    [0, 1].map(|mark| (0..count).map(|_| prg.block() & !1 | mark).collect())
}

/// Both parties' bits at `x`, added up.
fn opened(bits: u32, roots: &[Vec<Block>; 2], x: &[u64], words: &[[u8; 16]]) -> Vec<u64> {
    let [client, server] = roots.each_ref().map(|roots| {
        let mut out = vec![7; x.len()];
        point::at_most(bits, &hashes(), &mut roots.clone(), x, words, &mut out);
        assert!(out.iter().all(|bit| *bit <= 1));
        out
    });
    client.iter().zip(server).map(|(client, server)| client ^ server).collect()
}

#[test]
fn words_are_the_known_answers() {
    // From `known_answers.py`.
    let roots = [[0x0123_4567_89ab_cdef_0123_4567_89ab_cdee], [0xfedc_ba98_7654_3210_0f1e_2d3c_4b5a_6979]];
    let answers: [(u32, u64, &[Block]); 2] = [
        (
            10,
            0x2a7,
            &[
                0xa42d_198f_224b_abe5_0840_cc17_f2d7_4698,
                0xd40b_6b95_be3f_35d6_9f57_b5ff_d668_8fd2,
                0xd538_376e_e54e_a321_b5df_e942_a5e4_fb8a,
                0x42dc_3b01_2423_e42c_d13e_b26e_6066_49fe,
            ],
        ),
        (3, 5, &[0x5bd2_e670_ddb4_541a_f7bf_33e8_0d28_b978]),
    ];
    for (bits, at, expected) in answers {
        let words = point::plant(bits, &hashes(), [&roots[0], &roots[1]], &[at]);
        assert_eq!(words.iter().map(|word| Block::from_le_bytes(*word)).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn small_domains_are_right_everywhere() {
    for bits in 0..=10 {
        let size = 1_usize << bits;
        let points: Vec<u64> = (0..1 << bits).collect();
        let roots = roots(size, &mut prg(u64::from(bits)));
        let words = point::plant(bits, &hashes(), [&roots[0], &roots[1]], &points);
        assert_eq!(words.len(), size * (bits.saturating_sub(7) as usize + 1));
        for x in 0..1 << bits {
            let inputs = vec![x; size];
            let is_above: Vec<u64> = points.iter().map(|point| u64::from(*point <= x)).collect();
            assert_eq!(opened(bits, &roots, &inputs, &words), is_above, "{bits} bits at {x}");
        }
    }
}

/// The words of key `i` of a batch of `keys`, level by level, out of its group.
fn words_of(i: usize, keys: usize, bits: u32, words: &[[u8; 16]]) -> Vec<[u8; 16]> {
    let levels = point::words(bits);
    let first = i / GROUP * GROUP;
    let width = GROUP.min(keys - first);
    (0..levels).map(|level| words[first * levels + level * width + i - first]).collect()
}

proptest! {
    #[test]
    fn laws_hold_on_any_domain(bits in 0_u32..=64, keys in 1_usize..100, close in 0_u32..64, seed: u64) {
        let mut prg = prg(seed);
        let roots = roots(keys, &mut prg);
        let reduce = |value: u64| if bits == 64 { value } else { value & ((1 << bits) - 1) };
        let points: Vec<u64> = (0..keys).map(|_| reduce(prg.word())).collect();
        // Inputs that share leading bits with their point, and the points themselves.
        let x: Vec<u64> = points.iter().map(|point| match prg.below(3) {
            0 => *point,
            1 => reduce(point ^ prg.word() >> close),
            _ => reduce(prg.word()),
        }).collect();
        let words = point::plant(bits, &hashes(), [&roots[0], &roots[1]], &points);
        let at_most = opened(bits, &roots, &x, &words);
        for i in 0..keys {
            prop_assert_eq!(at_most[i], u64::from(points[i] <= x[i]));
        }
        // A key does not depend on those that it is dealt with.
        let last_roots = [roots[0][keys - 1], roots[1][keys - 1]];
        let alone = point::plant(bits, &hashes(), [&last_roots[..1], &last_roots[1..]], &points[keys - 1..]);
        prop_assert_eq!(alone, words_of(keys - 1, keys, bits, &words));
    }
}

/// The largest deviation, in standard deviations, of the number of ones in any bit of any word from a half.
fn worst_bit(words: &[[u8; 16]], levels: usize) -> f64 {
    let keys = words.len() / levels;
    let mut ones = vec![0_u32; 128 * levels];
    for (i, word) in words.iter().enumerate() {
        let level = i / GROUP % levels;
        for bit in 0..128 {
            ones[128 * level + bit] += u32::from(word[bit / 8] >> (bit % 8) & 1);
        }
    }
    let deviation = |ones: &u32| (f64::from(*ones) - keys as f64 / 2.0).abs() / (keys as f64 / 4.0).sqrt();
    ones.iter().map(deviation).fold(0.0, f64::max)
}

#[test]
fn words_do_not_tell_the_point_but_would_without_fresh_roots() {
    let (bits, keys) = (12, 128 * GROUP);
    let levels = point::words(bits);
    for at in [0, (1 << bits) - 1, 0x555] {
        let [client, server] = roots(keys, &mut prg(at));
        let words = point::plant(bits, &hashes(), [&client, &server], &vec![at; keys]);
        // 768 bits: six deviations happen once in half a million runs of fixed seeds.
        assert!(worst_bit(&words, levels) < 6.0, "at {at}");
        // Nor does a party's own leaf, which is what it reads its bits from.
        for roots in [&client, &server] {
            for x in [at, at ^ 1, at ^ 1 << (bits - 1)] {
                let mut out = vec![0; keys];
                point::at_most(bits, &hashes(), &mut roots.clone(), &vec![x; keys], &words, &mut out);
                let ones = out.iter().sum::<u64>() as f64;
                assert!((ones - keys as f64 / 2.0).abs() < 3.0 * (keys as f64).sqrt(), "at {at}: {ones}");
            }
        }
        // The control: roots that are not drawn afresh show in the words.
        let [client, server] = [client[0], server[0]].map(|root| vec![root; keys]);
        let words = point::plant(bits, &hashes(), [&client, &server], &vec![at; keys]);
        assert!(worst_bit(&words, levels) > 6.0);
    }
}

/// Keys whose differences a party finds with as many trials, if nodes have 16 unknown bits only; `planted`: makes the words of a part
/// of the keys. A party knows its own root `s` and the first word, which for a right turn is `H(s) ^ H(s ^ d)`: so whatever it
/// hashes, it compares with all keys at once.
fn matching_keys(trials: Block, planted: impl Fn(usize) -> (TreeHashes, Vec<Block>)) -> Vec<usize> {
    let (first, _) = planted(0);
    let mut targets = HashMap::new();
    for part in 0..PARTS {
        let (_, sums) = planted(part);
        targets.extend(sums.into_iter().enumerate().map(|(i, sum)| (sum, part * KEYS_A_PART + i)));
    }
    let mut hashed: Vec<Block> = (0..trials).map(|trial| trial << 1 | 1).collect();
    paths::hash(&first.part(0), &mut hashed);
    hashed.iter().filter_map(|sum| targets.get(sum).copied()).collect()
}

const PARTS: usize = 16;

#[test]
fn a_trial_tells_of_the_trees_of_one_part_alone() {
    let bits = 8;
    let mut prg = prg(11);
    let keys = PARTS * KEYS_A_PART;
    let roots = [0, 1].map(|mark| (0..keys).map(|_| Block::from(prg.below(1 << 15)) << 1 | mark).collect::<Vec<_>>());
    // The part of keys under these hashes, and what the client knows of `H` at the server's roots.
    let part = |index: usize, hashes: TreeHashes| {
        let range = index * KEYS_A_PART..(index + 1) * KEYS_A_PART;
        let part_roots = [&roots[0][range.clone()], &roots[1][range]];
        let words = point::plant(bits, &hashes, part_roots, &[128; KEYS_A_PART]);
        let mut sums = part_roots[0].to_vec();
        paths::hash(&hashes.part(0), &mut sums);
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum ^= Block::from_le_bytes(words_of(i, KEYS_A_PART, bits, &words)[0]);
        }
        (hashes, sums)
    };
    // The control: all parts under one hash, as if it were the same for all keys ever dealt.
    let control = matching_keys(1 << 10, |index| part(index, hashes()));
    // One of 32 differences of each part is tried.
    assert!(control.len() > 8 * KEYS_A_PART / 32, "{} found", control.len());
    let matches = matching_keys(1 << 10, |index| part(index, hashes().behind(index * KEYS_A_PART)));
    assert!(!matches.is_empty() && matches.iter().all(|key| *key < KEYS_A_PART), "{matches:?}");
}
