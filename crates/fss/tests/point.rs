//! Point functions and comparisons: known answers, whole small domains, laws on 64 bits, and what one party sees.

use privet_fss::point::{self, Table};
use privet_prg::{Block, Prg, Seed, paths::GROUP};
use proptest::prelude::*;

fn prg(seed: u64) -> Prg {
    Prg::from_seed(&Seed::from_block(Block::from(seed)))
}

/// Both parties' roots of `count` keys.
fn roots(count: usize, prg: &mut Prg) -> [Vec<Block>; 2] {
    [0, 1].map(|mark| (0..count).map(|_| prg.block() & !1 | mark).collect())
}

type Evaluate = fn(u32, &mut [Block], &[u64], &[[u8; 16]], &mut [u64]);

/// Both parties' bits at `x`, added up.
fn opened(evaluate: Evaluate, bits: u32, roots: &[Vec<Block>; 2], x: &[u64], words: &[[u8; 16]]) -> Vec<u64> {
    let [client, server] = roots.each_ref().map(|roots| {
        let mut out = vec![7; x.len()];
        evaluate(bits, &mut roots.clone(), x, words, &mut out);
        assert!(out.iter().all(|bit| *bit <= 1));
        out
    });
    client.iter().zip(server).map(|(client, server)| client ^ server).collect()
}

#[test]
fn words_are_the_known_answers() {
    // From `known_answers.py`.
    let roots = [[0x0123_4567_89ab_cdef_0123_4567_89ab_cdee], [0xfedc_ba98_7654_3210_0f1e_2d3c_4b5a_6979]];
    let answers: [(Table, u32, u64, &[Block]); 3] = [
        (
            Table::Step,
            10,
            0x2a7,
            &[
                0xfcf5_d2b1_4e42_68bb_f504_51fc_ebec_a635,
                0x0b1f_6554_dea7_b9a5_22a4_0c59_e437_cb47,
                0x0dd2_9ab4_0a6d_452b_be80_6876_cd7f_a8f0,
                0x185f_6b28_0aef_3a45_e637_f460_e7d7_a2e6,
            ],
        ),
        (
            Table::Point,
            9,
            0x0b5,
            &[
                0x030a_2d4e_b1bd_9744_fb39_39a7_291d_02a2,
                0xc33e_55b1_0528_5817_8830_b18a_de3e_6962,
                0x16f1_623a_bab6_e359_a719_2b13_6dce_1175,
            ],
        ),
        (Table::Step, 3, 5, &[0x030a_2d4e_b1bd_9744_0afb_ae03_1413_59d5]),
    ];
    for (table, bits, at, expected) in answers {
        let words = point::plant(table, bits, [&roots[0], &roots[1]], &[at]);
        assert_eq!(words.iter().map(|word| Block::from_le_bytes(*word)).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn small_domains_are_right_everywhere() {
    for bits in 0..=10 {
        let size = 1_usize << bits;
        let points: Vec<u64> = (0..1 << bits).collect();
        let roots = roots(size, &mut prg(u64::from(bits)));
        let planted = |table| point::plant(table, bits, [&roots[0], &roots[1]], &points);
        let (at, from) = (planted(Table::Point), planted(Table::Step));
        assert_eq!(at.len(), size * (bits.saturating_sub(7) as usize + 1));
        for x in 0..1 << bits {
            let inputs = vec![x; size];
            let is_point: Vec<u64> = points.iter().map(|point| u64::from(*point == x)).collect();
            let is_above: Vec<u64> = points.iter().map(|point| u64::from(*point <= x)).collect();
            assert_eq!(opened(point::equal, bits, &roots, &inputs, &at), is_point, "{bits} bits at {x}");
            assert_eq!(opened(point::at_most, bits, &roots, &inputs, &from), is_above, "{bits} bits at {x}");
        }
    }
}

#[test]
fn the_whole_domain_has_one_point() {
    for bits in 0..=12 {
        let mut prg = prg(u64::from(bits));
        for _ in 0..20 {
            let (roots, at) = (roots(1, &mut prg), prg.below(1 << bits));
            let words = point::plant(Table::Point, bits, [&roots[0], &roots[1]], &[at]);
            let [client, server] = roots.map(|roots| point::everywhere(bits, roots[0], &words));
            assert_eq!(client.len(), 1 << bits.saturating_sub(7));
            for (i, (client, server)) in client.iter().zip(server).enumerate() {
                let expected = if at >> 7 == i as u64 { 1 << (at & 127) } else { 0 };
                assert_eq!(client ^ server, expected, "leaf {i} for {at} of {bits} bits");
            }
        }
    }
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
        let planted = |table| point::plant(table, bits, [&roots[0], &roots[1]], &points);
        let (at, from) = (planted(Table::Point), planted(Table::Step));
        let equal = opened(point::equal, bits, &roots, &x, &at);
        let at_most = opened(point::at_most, bits, &roots, &x, &from);
        for i in 0..keys {
            prop_assert_eq!(equal[i], u64::from(points[i] == x[i]));
            prop_assert_eq!(at_most[i], u64::from(points[i] <= x[i]));
        }
        // A key does not depend on those that it is dealt with.
        let own = [roots[0][keys - 1], roots[1][keys - 1]];
        let alone = point::plant(Table::Step, bits, [&own[..1], &own[1..]], &points[keys - 1..]);
        prop_assert_eq!(alone, point::words_of(keys - 1, keys, bits, &from));
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
    for table in [Table::Step, Table::Point] {
        for at in [0, (1 << bits) - 1, 0x555] {
            let [client, server] = roots(keys, &mut prg(at));
            let words = point::plant(table, bits, [&client, &server], &vec![at; keys]);
            // 768 bits: six deviations happen once in half a million runs of fixed seeds.
            assert!(worst_bit(&words, levels) < 6.0, "{table:?} at {at}");
            // Nor does a party's own leaf, which is what it reads its bits from.
            for roots in [&client, &server] {
                for x in [at, at ^ 1, at ^ 1 << (bits - 1)] {
                    let mut out = vec![0; keys];
                    point::equal(bits, &mut roots.clone(), &vec![x; keys], &words, &mut out);
                    let ones = out.iter().sum::<u64>() as f64;
                    assert!((ones - keys as f64 / 2.0).abs() < 3.0 * (keys as f64).sqrt(), "{table:?} at {at}: {ones}");
                }
            }
            // The control: roots that are not drawn afresh show in the words.
            let [client, server] = [client[0], server[0]].map(|root| vec![root; keys]);
            let words = point::plant(table, bits, [&client, &server], &vec![at; keys]);
            assert!(worst_bit(&words, levels) > 6.0);
        }
    }
}
