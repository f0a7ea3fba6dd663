//! Comparison functions in every group: whole small domains, and laws on 64 bits.

use privet_fss::group::{Group, TaggedBit, Vector, Words};
use privet_fss::{Role, dcf};
use privet_prg::{Block, Prg, Seed, TreeHashes};
use privet_ring::Modulus;
use proptest::prelude::*;

fn prg(seed: u64) -> Prg {
    Prg::from_seed(&Seed::from_block(Block::from(seed)))
}

/// Deals `values[i]` from `points[i]` on, and adds up what both parties get at each of `inputs`.
fn opened<G: Group>(
    group: &G,
    bits: u32,
    points: &[u64],
    values: &[G::Element],
    inputs: &[Vec<u64>],
    prg: &mut Prg,
) -> Vec<Vec<G::Element>> {
    let roots = [0, 1].map(|mark| points.iter().map(|_| prg.block() & !1 | mark).collect::<Vec<Block>>());
    let hashes = TreeHashes::new(&Seed::from_block(5));
    let keys = dcf::plant(group, bits, &hashes, [&roots[0], &roots[1]], points, values);
    assert_eq!(keys.len(), points.len() * dcf::key_bytes(bits, group));
    let read = |x: &Vec<u64>| {
        let client = dcf::at_most(group, bits, Role::Client, &hashes, &roots[0], x, &keys);
        let server = dcf::at_most(group, bits, Role::Server, &hashes, &roots[1], x, &keys);
        client.into_iter().zip(server).map(|(client, server)| group.add(client, server)).collect()
    };
    inputs.iter().map(read).collect()
}

#[test]
fn small_domains_are_right_everywhere() {
    for bits in 0..=10 {
        let mut prg = prg(u64::from(bits));
        let points: Vec<u64> = (0..1 << bits).collect();
        let inputs: Vec<Vec<u64>> = (0..1 << bits).map(|x| vec![x; points.len()]).collect();
        let group = Vector::<2>(Modulus::new(13));
        let values: Vec<_> = points.iter().map(|_| Words([prg.below(1 << 13), prg.below(1 << 13)])).collect();
        for (x, sums) in opened(&group, bits, &points, &values, &inputs, &mut prg).into_iter().enumerate() {
            for (i, sum) in sums.into_iter().enumerate() {
                let expected = if i <= x { values[i] } else { Words::default() };
                assert_eq!(sum, expected, "{i} at {x} of {bits} bits");
            }
        }
    }
}

#[test]
fn a_key_has_the_bytes_of_its_formula() {
    assert_eq!(dcf::key_bytes(64, &Vector::<1>(Modulus::new(64))), 64 * 24);
    assert_eq!(dcf::key_bytes(37, &Vector::<3>(Modulus::new(37))), 37 * 31);
    assert_eq!(dcf::key_bytes(64, &TaggedBit), 64 * 33);
    assert_eq!(dcf::key_bytes(0, &TaggedBit), 17);
}

proptest! {
    #[test]
    fn laws_hold_on_any_domain_and_ring(
        bits in 0_u32..=64, width in 1_u32..=64, keys in 1_usize..70, close in 0_u32..64, seed: u64,
    ) {
        let mut prg = prg(seed);
        let reduce = |value: u64| if bits == 64 { value } else { value & ((1 << bits) - 1) };
        let points: Vec<u64> = (0..keys).map(|_| reduce(prg.word())).collect();
        let x: Vec<u64> = points.iter().map(|point| match prg.below(3) {
            0 => *point,
            1 => reduce(point ^ prg.word() >> close),
            _ => reduce(prg.word()),
        }).collect();
        let ring = Modulus::new(width);
        let words: Vec<_> = (0..keys).map(|_| Words([0; 3].map(|_: u64| ring.reduce(prg.word())))).collect();
        let tags: Vec<_> = (0..keys).map(|_| (prg.word() & 1 == 1, prg.block())).collect();
        let inputs = [x];
        let in_words = opened(&Vector::<3>(ring), bits, &points, &words, &inputs, &mut prg);
        let in_tags = opened(&TaggedBit, bits, &points, &tags, &inputs, &mut prg);
        for i in 0..keys {
            let reached = points[i] <= inputs[0][i];
            prop_assert_eq!(in_words[0][i], if reached { words[i] } else { Words::default() });
            prop_assert_eq!(in_tags[0][i], if reached { tags[i] } else { (false, 0) });
        }
    }
}
