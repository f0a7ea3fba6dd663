//! Gates over a channel: every value under every mask on small rings, and laws on wide ones.

use std::io::Write;

use privet_fss::{
    Above, Carried, Error, Extend, ExtendBounded, Gate, KeyBytes, KeyFile, Lift, Party, Piecewise, Relu, Role, Seeds,
    Select, Sign, Source, Truncate, argmax, leaves, max_pool,
};
use privet_prg::{Prg, Seed};
use privet_ring::tournament::{Ties, matches};
use privet_ring::{Bits, Lines, Modulus};
use privet_seal::Stored;
use proptest::prelude::*;

use crate::support::{alone, both, deal, prg, run_gate, share};

/// Every value of the ring many times over, so that random masks take every value beside it.
fn everything(bits: u32) -> Vec<u64> {
    let times = (20_000 >> bits).max(20);
    (0..times).flat_map(|_| 0..1 << bits).collect()
}

fn check_relu(bits: u32, wide: u32, values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Relu::new(bits, wide));
    let [client, server] =
        run_gate(&gate, values, ring, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    let expected: Vec<u64> = values.iter().map(|x| ring.signed(*x).max(0) as u64).collect();
    assert_eq!(Modulus::new(wide).add(&client, &server), expected, "{bits} bits into {wide}");
}

fn check_sign(bits: u32, values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Sign::new(bits));
    let [client, server] =
        run_gate(&gate, values, ring, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    let expected: Vec<bool> = values.iter().map(|x| ring.signed(*x) >= 0).collect();
    assert_eq!(client.xor(&server), Bits::from_bools(&expected), "{bits} bits");
}

fn check_truncate(bits: u32, dropped: u32, values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Truncate::new(bits, dropped));
    let [client, server] =
        run_gate(&gate, values, ring, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    let expected: Vec<u64> = values.iter().map(|x| x >> dropped).collect();
    assert_eq!(Modulus::new(bits - dropped).add(&client, &server), expected, "{dropped} of {bits} bits");
}

fn check_extend(bits: u32, wide: u32, values: &[u64], seed: u64) {
    let (ring, output) = (Modulus::new(bits), Modulus::new(wide));
    let gate = Extend::new(bits, wide);
    let [client, server] =
        run_gate(&gate, values, ring, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    let expected: Vec<u64> = values.iter().map(|x| output.reduce(ring.signed(*x) as u64)).collect();
    assert_eq!(output.add(&client, &server), expected, "{bits} bits into {wide}");
}

/// Values are made to be non-negative.
fn check_extend_bounded(bits: u32, wide: u32, values: &[u64], seed: u64) {
    let (ring, output) = (Modulus::new(bits), Modulus::new(wide));
    let gate = ExtendBounded::non_negative(bits, wide);
    let values: Vec<u64> = values.iter().map(|x| x & (ring.mask() >> 1)).collect();
    let [client, server] =
        run_gate(&gate, &values, ring, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    assert_eq!(output.add(&client, &server), values, "{bits} bits into {wide}");
}

fn check_select(bits: u32, values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Select::new(bits));
    let mut prg = prg(seed);
    let choices: Vec<bool> = values.iter().map(|_| prg.word() & 1 == 1).collect();
    let mask: Vec<bool> = values.iter().map(|_| prg.word() & 1 == 1).collect();
    let mask = Bits::from_bools(&mask);
    let shares = [mask.clone(), mask.xor(&Bits::from_bools(&choices))];
    let [client, server] = run_gate(&gate, values, ring, &mut prg, |party, seed, body, x| {
        gate.evaluate(party, seed, body, &shares[party.role as usize], x)
    });
    let expected: Vec<u64> = values.iter().zip(choices).map(|(x, bit)| if bit { *x } else { 0 }).collect();
    assert_eq!(ring.add(&client, &server), expected, "{bits} bits");
}

/// Lines with whatever slopes and offsets, and what they and what goes on beyond them give for signed `x`.
fn check_piecewise(bits: u32, [step_bits, index_bits]: [u32; 2], above: Above, wide: u32, values: &[u64], seed: u64) {
    let (ring, output) = (Modulus::new(bits), Modulus::new(wide));
    let gate = Piecewise::new(bits, [step_bits, index_bits], above, wide);
    let mut prg = prg(seed);
    let mut table = || (0..1 << index_bits).map(|_| prg.word() as i64).collect::<Vec<_>>();
    let (slopes, mut offsets) = (table(), table());
    if above == Above::RisingWhole {
        // The last argument's value is as that of the first, so that what lies above is a multiple of what an argument counts.
        let [first, last] = [offsets[0], slopes[(1 << index_bits) - 1].wrapping_mul((1 << step_bits) - 1)];
        offsets[(1 << index_bits) - 1] = first.wrapping_sub(last);
    }
    // Where no argument is below the table, what is taken for one comes out as those above.
    let values: Vec<u64> =
        values.iter().map(|x| if above == Above::OnlyConstant { x & (ring.mask() >> 1) } else { *x }).collect();
    let lines = Lines::new(&slopes, &offsets, step_bits, above.rises(), output);
    let [client, server] =
        run_gate(&gate, &values, ring, &mut prg, |party, seed, body, x| gate.evaluate(party, seed, body, x, &lines));
    let expected: Vec<u64> = values
        .iter()
        .map(|x| {
            let x = ring.signed(ring.reduce(*x));
            let argument = x.clamp(0, (1 << (index_bits + step_bits)) - 1);
            let (line, distance) = ((argument >> step_bits) as usize, argument & ((1 << step_bits) - 1));
            let excess = if above.rises() { (x - argument).max(0) << step_bits } else { 0 };
            let value = slopes[line].wrapping_mul(distance).wrapping_add(offsets[line]).wrapping_add(excess);
            output.reduce(value as u64)
        })
        .collect();
    assert_eq!(
        output.add(&client, &server),
        expected,
        "2^{index_bits} lines over 2^{step_bits} of {bits} bits into {wide}, {above:?}"
    );
}

/// Every way that a function goes on above its table.
const ABOVE: [Above; 4] = [Above::Constant, Above::OnlyConstant, Above::Rising, Above::RisingWhole];

#[test]
fn lines_are_right_for_every_value_of_small_rings() {
    for (bits, step_bits) in [(9, 1), (10, 1), (10, 2), (11, 2)] {
        for (seed, wide) in [bits - 2, bits, bits + 1, 37, 64].into_iter().enumerate() {
            for above in ABOVE {
                check_piecewise(bits, [step_bits, 6], above, wide, &everything(bits), seed as u64);
            }
        }
    }
}

#[test]
fn lines_are_right_for_every_size_of_table() {
    for (index_bits, above) in (6..=12).flat_map(|index_bits| [2, 5, 14].map(|above| (index_bits, above))) {
        let (table, ring) = (index_bits + 3, Modulus::new(index_bits + 3 + above));
        // Around both ends of the table and of the ring, around where a digit of the line's number carries, and anywhere in the table.
        let ends = [0, 1 << table, 1 << (ring.bits() - 1), 8 << (index_bits / 2)];
        let around = ends.into_iter().flat_map(|end: u64| (0..9).map(move |i| end.wrapping_add(i).wrapping_sub(5)));
        let within = (0..500_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - table));
        let values: Vec<u64> = around.chain(within).map(|x| ring.reduce(x)).cycle().take(3 * 536 + 1).collect();
        for above in ABOVE {
            check_piecewise(ring.bits(), [3, index_bits], above, 40, &values, 1);
        }
    }
}

#[test]
fn relu_is_right_for_every_value_of_small_rings() {
    for bits in 1..=10 {
        for wide in [bits, bits + 1, 37, 64] {
            check_relu(bits, wide, &everything(bits), u64::from(bits));
        }
    }
}

/// Enough values of the ring that they are compared digit by digit: every one of a small ring many times, random ones of a wide one.
fn many(bits: u32) -> Vec<u64> {
    let (ring, mut prg) = (Modulus::new(bits), prg(u64::from(bits)));
    let edges = [0, 1, ring.mask(), ring.mask() >> 1, (ring.mask() >> 1) + 1];
    let count = if bits < 12 { 30_000 } else { 10_001 };
    (0..count).map(|i| if i % 8 < 5 { edges[i % 8] } else { ring.reduce(prg.word()) }).collect()
}

#[test]
fn relu_is_right_for_many_values() {
    for (bits, wide) in [(10, 10), (11, 37), (22, 22), (25, 37), (40, 40), (64, 64)] {
        let values = many(bits);
        assert_eq!(Relu::new(bits, wide).message_bytes(values.len()).len(), 3);
        check_relu(bits, wide, &values, u64::from(bits));
    }
}

#[test]
fn many_values_of_one_bit_have_nothing_to_compare() {
    // More than trees would be worth: below the only bit there is no digit.
    let values: Vec<u64> = (0..200_000).map(|i| i & 1).collect();
    let gate = Relu::new(1, 9);
    assert_eq!(gate.message_bytes(values.len()).len(), 2);
    check_relu(1, 9, &values, 1);
}

#[test]
fn a_relu_of_many_values_refuses_short_keys_and_messages_of_another_length() {
    let (gate, count) = (Relu::new(25, 37), 4096);
    let x = vec![0; count];
    refuses_misfits(&gate, count, Role::Server, |party, seed, body| gate.evaluate(party, seed, body, &x));
    let (key, replies) = (deal(&gate, count, &mut prg(1)), replies(&gate, count));
    let [tables, products] = [16 * count, 16 * count + 94 * count / 8];
    for bytes in [0, tables - 1, products - 1, key.bodies[1].len() - 1] {
        let mut body = &key.bodies[1][..bytes];
        let result = alone(Role::Server, &replies, |party| gate.evaluate(party, &key.seeds.server, &mut body, &x));
        assert!(matches!(result, Err(Error::KeyTooShort { .. })), "{bytes} bytes: {result:?}");
    }
}

#[test]
fn signs_are_right_for_every_value_of_small_rings() {
    (1..=10).for_each(|bits| check_sign(bits, &everything(bits), u64::from(bits)));
}

#[test]
fn truncation_is_exact_for_every_value_of_small_rings() {
    for bits in 2..=10 {
        (1..bits).for_each(|dropped| check_truncate(bits, dropped, &everything(bits), u64::from(bits)));
    }
}

#[test]
fn extension_is_exact_for_every_value_of_small_rings() {
    for bits in 1..=10 {
        for wide in [bits + 1, 37, 64] {
            check_extend(bits, wide, &everything(bits), u64::from(bits));
            check_extend_bounded(bits, wide, &everything(bits), u64::from(bits));
        }
    }
}

#[test]
fn the_multiplexer_is_right_for_every_value_of_small_rings() {
    (1..=10).for_each(|bits| check_select(bits, &everything(bits), u64::from(bits)));
}

#[test]
fn carries_of_many_values_are_exact() {
    let values = |bits: u32, count: usize| many(bits).into_iter().cycle().take(count).collect::<Vec<_>>();
    check_truncate(37, 12, &values(37, 120_001), 1);
    check_truncate(12, 11, &values(12, 260_001), 2);
    for (bits, wide) in [(8, 37), (25, 37), (25, 64)] {
        check_extend(bits, wide, &values(bits, 70_001), u64::from(bits));
    }
    // Some of these are by bits: three messages each.
    assert_eq!(Truncate::new(37, 12).message_bytes(120_001).len(), 3);
    assert_eq!(Extend::new(25, 37).message_bytes(70_001).len(), 3);
    assert_eq!(Extend::new(25, 37).message_bytes(30_000).len(), 2);
}

#[test]
fn keys_have_the_bytes_of_their_formulas() {
    let bytes = |gate: &dyn Gate| {
        let KeyBytes { words, corrections } = gate.key_bytes(64);
        [words, corrections]
    };
    // Sixteen bytes for the hashes and for each level of a key; of the corrections eight bytes for each bit of one element's secrets.
    assert_eq!(bytes(&Relu::new(25, 37)), [16 + 64 * 18 * 16, 8 * (2 * 37 + 3 * 12)]);
    assert_eq!(bytes(&Relu::new(37, 37)), [16 + 64 * 30 * 16, 8 * 2 * 37]);
    assert_eq!(bytes(&Relu::new(64, 64)), [16 + 64 * 57 * 16, 8 * 2 * 64]);
    // Of many elements: tables of five digits of 5 and 4 bits, of 144 and 96 bits, 37 products, and the secrets.
    let many = |gate: &dyn Gate| {
        let KeyBytes { words, corrections } = gate.key_bytes(8192);
        [words, corrections]
    };
    assert_eq!(many(&Relu::new(25, 37)), [0, 8192 * 18 + 1024 * (37 + 2 * 37 + 3 * 12)]);
    assert_eq!(many(&Relu::new(22, 22)), [0, 8192 * 12 + 1024 * (37 + 2 * 22)]);
    assert_eq!(bytes(&Sign::new(37)), [16 + 64 * 30 * 16, 8]);
    assert_eq!(bytes(&Select::new(37)), [0, 8 * 2 * 37]);
    // Tables of two digits of 6 bits and 5 secrets; of digits of 7, 6, 6 and 6 bits and 23 secrets.
    assert_eq!(bytes(&Truncate::new(37, 12)), [0, 64 * 16 + 8 * 5 * 25]);
    assert_eq!(bytes(&Extend::new(25, 37)), [0, 64 * 40 + 8 * 23 * 12]);
    // Of very many, tables of five digits of 5 bits, 37 products, and a secret; tables of four digits of 3 bits and 15 products.
    let corrections = |gate: &dyn Gate| gate.key_bytes(1 << 17).corrections;
    assert_eq!(corrections(&Extend::new(25, 37)), (1 << 17) * 20 + (1 << 14) * (37 + 12));
    assert_eq!(corrections(&Truncate::new(37, 12)), (1 << 17) * 4 + (1 << 14) * (15 + 25));
    // Tables of digits of 5, 4, 4, 4, 2 and 2 bits, 15 products of those below the top and 13 of the top, 4 modulo the number of lines, a
    // unit vector of 256 bits, the sign, two sets of secrets, and of what rises four more.
    let lines = |above, wide| Piecewise::new(21, [9, 8], above, wide);
    let (compared, tables) = (15 + 13 + 4 * 8, 64 * (11 + 32));
    let secrets = 37 + 2 * (2 * 37 + 2 * 16);
    assert_eq!(bytes(&lines(Above::Constant, 37)), [0, tables + 8 * (compared + secrets + 37)]);
    assert_eq!(bytes(&lines(Above::Rising, 37)), [0, tables + 8 * (compared + secrets + 37 + 2 * 28 + 2 * 7)]);
    assert_eq!(bytes(&lines(Above::RisingWhole, 37)), [0, tables + 8 * (compared + secrets + 28 + 2 * 28 + 2 * 7)]);
    // Nobody asks about the sign: five products less.
    assert_eq!(bytes(&lines(Above::OnlyConstant, 37)), [0, tables + 8 * (compared - 5 + secrets)]);
    // What rises counts in 20 bits: parties have shares of the mask.
    let secrets = 29 + 2 * (2 * 29 + 2 * 8);
    assert_eq!(bytes(&lines(Above::RisingWhole, 29)), [0, tables + 8 * (compared + secrets + 20 + 20)]);
    // Digits of 3, 5, 5, 2 and 2 bits; a point function over 10 bits in four levels in place of a vector.
    let compared = 5 + 13 + 10;
    assert_eq!(
        bytes(&Piecewise::new(17, [3, 10], Above::Constant, 17)),
        [16 + 64 * 4 * 16, 64 * 10 + 8 * (compared + 5 * 17 + 17)]
    );
    assert_eq!(bytes(&ExtendBounded::non_negative(25, 37)), [0, 8 * 12]);
    // SIGMA's 556 bytes for a ReLU of 37 bits and 991 for one of 64, of the party that gets more.
    assert!(Relu::new(37, 37).key_bytes(1).of(Role::Server) <= 556);
    assert!(Relu::new(64, 64).key_bytes(1).of(Role::Server) <= 991);
}

#[test]
fn an_empty_batch_gives_nothing() {
    check_relu(25, 37, &[], 1);
    check_sign(25, &[], 1);
    check_select(25, &[], 1);
    check_extend_bounded(25, 37, &[], 1);
    check_piecewise(18, [8, 6], Above::Rising, 37, &[], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn gates_are_right_on_any_ring(
        bits in 2_u32..=64, more in 0_u32..=40, cut in any::<prop::sample::Index>(), words in prop::collection::vec(any::<u64>(), 1..150),
        seed: u64,
    ) {
        let ring = Modulus::new(bits);
        // Small values and edges are as frequent as large ones.
        let edges = [0, 1, ring.mask(), ring.mask() >> 1, (ring.mask() >> 1) + 1];
        let values: Vec<u64> = words.iter().enumerate().map(|(i, word)| match i % 3 {
            0 => ring.reduce(*word),
            1 => edges[*word as usize % edges.len()],
            _ => ring.reduce(((*word as i64) >> (word % 64)) as u64),
        }).collect();
        let wide = (bits + more).min(64);
        check_relu(bits, wide, &values, seed);
        check_sign(bits, &values, seed);
        check_select(bits, &values, seed);
        if bits > 8 {
            let step_bits = bits - 8 - cut.index((bits as usize - 8).min(6)) as u32;
            check_piecewise(bits, [step_bits, 6], ABOVE[seed as usize % 4], wide, &values, seed);
        }
        check_truncate(bits, 1 + cut.index(bits as usize - 1) as u32, &values, seed);
        if wide > bits {
            check_extend(bits, wide, &values, seed);
            check_extend_bounded(bits, wide, &values, seed);
        }
    }

    #[test]
    fn maxima_are_those_of_their_groups(
        bits in 2_u32..=64, words in prop::collection::vec(any::<u64>(), 1..60), sizes in prop::collection::vec(1_usize..10, 1..12),
        seed: u64,
    ) {
        let ring = Modulus::new(bits);
        // Differences must fit the ring.
        let signed: Vec<i64> = words.iter().map(|word| ring.signed(ring.reduce(*word)) >> 1).collect();
        let values: Vec<u64> = signed.iter().map(|x| ring.reduce(*x as u64)).collect();
        let mut prg = prg(seed);
        let groups: Vec<Vec<usize>> =
            sizes.iter().map(|size| (0..*size).map(|_| prg.below(words.len() as u64) as usize).collect()).collect();

        let levels = matches(sizes.iter().map(|&size| (size, 1)));
        prop_assert_eq!(levels.iter().sum::<usize>(), sizes.iter().map(|size| size - 1).sum::<usize>());
        let relu = Relu::new(bits, bits);
        let (masters, bodies) = deal_all(levels.iter().map(|&count| (&relu as &dyn Gate, count)));
        let [client, server] = share(&values, ring, &mut prg);
        let results = both([(&masters[0], &bodies[0], client), (&masters[1], &bodies[1], server)], |party, (seed, body, x)| {
            max_pool(party, bits, &mut Prg::from_seed(seed), &mut &body[..], &x, &groups.clone().into())
        });
        prop_assert_eq!(results[0].1.rounds as usize, 2 * levels.len());
        let expected: Vec<u64> = groups
            .iter()
            .map(|group| ring.reduce(group.iter().map(|i| signed[*i]).max().expect("a member") as u64))
            .collect();
        prop_assert_eq!(ring.add(&results[0].0, &results[1].0), expected);
    }

    #[test]
    fn winners_are_where_the_largest_elements_are(
        bits in 3_u32..=64, words in prop::collection::vec(0_u64..4, 1..40), size in 1_usize..12, last: bool, seed: u64,
    ) {
        let (ring, index_ring) = (Modulus::new(bits), Modulus::new(37));
        let groups: Vec<&[u64]> = words.chunks_exact(size).collect();
        let ties = if last { Ties::Last } else { Ties::First };
        let levels = matches(groups.iter().map(|group| (group.len(), 1)));
        let (sign, select, select_index) = (Sign::new(bits), Select::new(bits), Select::new(37));
        let gates = levels.iter().flat_map(|&count| [&sign as &dyn Gate, &select, &select_index].map(|gate| (gate, count)));
        let (masters, bodies) = deal_all(gates);
        let values: Vec<u64> = words.iter().map(|word| ring.reduce(word.wrapping_sub(2))).collect();
        let [client, server] = share(&values, ring, &mut prg(seed));
        let results = both([(&masters[0], &bodies[0], client), (&masters[1], &bodies[1], server)], |party, (seed, body, x)| {
            let (mut body, x) = (&body[..], x.chunks_exact(size).map(<[u64]>::to_vec).collect::<Vec<_>>());
            let positions = argmax(party, &mut Prg::from_seed(seed), &mut body, &x, ties, [ring, index_ring])?;
            assert!(body.is_empty(), "{} bytes of the key are left", body.len());
            Ok(positions)
        });
        prop_assert_eq!(results[0].1.rounds as usize, 2 * levels.len());
        // Values were lowered by 2, so signed order is that of the words.
        let place = |group: &&[u64]| {
            let most = group.iter().max().expect("a member");
            let mut places = group.iter().enumerate().filter(|(_, x)| *x == most).map(|(i, _)| i as u64);
            if last { places.next_back() } else { places.next() }.expect("a place")
        };
        prop_assert_eq!(index_ring.add(&results[0].0, &results[1].0), groups.iter().map(place).collect::<Vec<_>>());
    }

    #[test]
    fn bits_become_numbers(bits in 1_u32..=64, values: Vec<bool>, seed: u64) {
        let (ring, gate) = (Modulus::new(bits), Lift::new(bits));
        let words: Vec<u64> = values.iter().map(|&bit| u64::from(bit)).collect();
        let [client, server] = run_gate(&gate, &words, Modulus::new(1), &mut prg(seed), |party, seed, body, x| {
            gate.evaluate(party, seed, body, &Bits::from_lowest(x.iter().copied()))
        });
        prop_assert_eq!(ring.add(&client, &server), words);
    }

    #[test]
    fn trees_end_in_one_leaf(depth in 1_u32..=5, trees in 1_usize..70, seed: u64) {
        let (ring, to, prg) = (Modulus::new(9), Modulus::new(37), &mut prg(seed));
        let nodes = (1 << depth) - 1;
        let x: Vec<u64> = (0..trees * nodes).map(|_| ring.reduce((prg.word() % 5).wrapping_sub(2))).collect();
        let (sign, select, lift) = (Sign::new(9), Select::new(1), Lift::new(37));
        let levels = (1..depth).map(|level| (&select as &dyn Gate, trees << level));
        let gates = [(&sign as &dyn Gate, trees * nodes)].into_iter().chain(levels);
        let (masters, bodies) = deal_all(gates.chain([(&lift as &dyn Gate, trees << depth)]));
        let [client, server] = share(&x, ring, prg);
        let results = both([(&masters[0], &bodies[0], client), (&masters[1], &bodies[1], server)], |party, (seed, body, x)| {
            let mut body = &body[..];
            let outputs = leaves(party, &mut Prg::from_seed(seed), &mut body, &x, depth, [ring, to])?;
            assert!(body.is_empty(), "{} bytes of the key are left", body.len());
            Ok(outputs)
        });
        prop_assert_eq!(results[0].1.rounds, u64::from(depth) + 1);
        let mut expected = vec![0; trees << depth];
        for tree in 0..trees {
            let step = |way: usize, level: u32| {
                let node = (1 << level) - 1 + way;
                way | usize::from(ring.signed(x[node * trees + tree]) < 0) << level
            };
            expected[(0..depth).fold(0, step) * trees + tree] = 1;
        }
        prop_assert_eq!(to.add(&results[0].0, &results[1].0), expected);
    }
}

/// Deals one batch after the other; both parties' master seeds and bodies.
fn deal_all<'a>(gates: impl Iterator<Item = (&'a dyn Gate, usize)>) -> ([Seed; 2], [Vec<u8>; 2]) {
    let (mut bodies, masters) = ([Vec::new(), Vec::new()], [1, 2].map(Seed::from_block));
    let mut streams = masters.each_ref().map(Prg::from_seed);
    for (gate, count) in gates {
        let seeds = Seeds { client: streams[0].seed(), server: streams[1].seed() };
        let mut dealt = Vec::new();
        let corrections = gate.deal(count, &seeds, &mut dealt).expect("dealt");
        bodies[0].extend(&dealt);
        bodies[1].extend(dealt);
        bodies[1].extend(corrections);
    }
    (masters, bodies)
}

#[test]
fn a_key_in_a_file_does_as_well() {
    let (ring, gate, mut prg) = (Modulus::new(25), Relu::new(25, 37), prg(1));
    let values: Vec<u64> = (0..5000).map(|_| ring.reduce(prg.word())).collect();
    let key = deal(&gate, values.len(), &mut prg);
    let [client, server] = share(&values, ring, &mut prg);
    let files = key.bodies.each_ref().map(|body| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(body).expect("room on the disk");
        KeyFile::new(Stored::plain(file))
    });
    let [client_file, server_file] = files;
    let inputs = [(&key.seeds.client, client_file, client), (&key.seeds.server, server_file, server)];
    let results = both(inputs, |party, (seed, mut body, x)| gate.evaluate(party, seed, &mut body, &x));
    let expected: Vec<u64> = values.iter().map(|x| ring.signed(*x).max(0) as u64).collect();
    assert_eq!(Modulus::new(37).add(&results[0].0, &results[1].0), expected);
}

#[test]
fn a_batch_of_several_parts_is_right_from_a_file_too() {
    let (ring, gate, mut prg) = (Modulus::new(21), Extend::new(21, 40), prg(1));
    let values: Vec<u64> = (0..9001).map(|_| ring.reduce(prg.word())).collect();
    let key = deal(&gate, values.len(), &mut prg);
    assert!(key.bodies[0].is_empty(), "the client's key is its seed");
    let [client, server] = share(&values, ring, &mut prg);
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&key.bodies[1]).expect("room on the disk");
    let bodies: [Box<dyn Source + Send>; 2] =
        [Box::new(&key.bodies[0][..]), Box::new(KeyFile::new(Stored::plain(file)))];
    let [client_body, server_body] = bodies;
    let inputs = [(&key.seeds.client, client_body, client), (&key.seeds.server, server_body, server)];
    let results = both(inputs, |party, (seed, mut body, x)| gate.evaluate(party, seed, &mut *body, &x));
    let expected: Vec<u64> = values.iter().map(|x| Modulus::new(40).reduce(ring.signed(*x) as u64)).collect();
    assert_eq!(Modulus::new(40).add(&results[0].0, &results[1].0), expected);
}

/// Replies of the lengths that a gate says.
fn replies(gate: &dyn Gate, count: usize) -> Vec<Vec<u8>> {
    gate.message_bytes(count).into_iter().map(|bytes| vec![0; bytes]).collect()
}

#[test]
fn a_carry_refuses_short_keys() {
    let (gate, count, mut prg) = (Truncate::new(37, 12), 100, prg(1));
    let (key, replies) = (deal(&gate, count, &mut prg), replies(&gate, count));
    let evaluate = |mut body: &[u8]| {
        alone(Role::Server, &replies, |party| gate.evaluate(party, &key.seeds.server, &mut body, &vec![0; count]))
    };
    let (body, tables) = (&key.bodies[1][..], 16 * count);
    // The control: the whole key.
    assert!(evaluate(body).is_ok());
    for short in [tables - 1, tables, body.len() - 1] {
        assert!(matches!(evaluate(&body[..short]), Err(Error::KeyTooShort { .. })), "{short} bytes");
    }
}

#[test]
fn a_key_for_fewer_elements_is_refused() {
    let (gate, mut prg) = (Relu::new(25, 37), prg(1));
    let (key, replies) = (deal(&gate, 63, &mut prg), replies(&gate, 64));
    for (role, seed, body) in
        [(Role::Client, &key.seeds.client, &key.bodies[0]), (Role::Server, &key.seeds.server, &key.bodies[1])]
    {
        let result = alone(role, &replies, |party| gate.evaluate(party, seed, &mut &body[..], &[0; 64]));
        assert!(matches!(result, Err(Error::KeyTooShort { .. })), "{role:?}");
    }
}

/// Whether each message of another length than the gate says ends a party's run, whichever it is of those that it waits for.
fn refuses_misfits<T>(
    gate: &dyn Gate,
    count: usize,
    role: Role,
    evaluate: impl Fn(&mut Party<'_>, &Seed, &mut dyn Source) -> Result<T, Error>,
) {
    let key = deal(gate, count, &mut prg(1));
    let (seed, body) = match role {
        Role::Client => (&key.seeds.client, &key.bodies[0]),
        Role::Server => (&key.seeds.server, &key.bodies[1]),
    };
    let run = |replies: &[Vec<u8>]| alone(role, replies, |party| evaluate(party, seed, &mut &body[..]));
    let fitting = replies(gate, count);
    // The control: messages that fit.
    assert!(run(&fitting).is_ok());
    for wrong in 0..fitting.len() {
        let bytes = fitting[wrong].len();
        for length in [0, bytes - 1, bytes + 1, 2 * bytes] {
            let mut replies = fitting.clone();
            replies[wrong] = vec![0xff; length];
            let error = run(&replies).err();
            let is_refused = matches!(error, Some(Error::Channel(privet_channel::Error::PeerMisbehaved(_))));
            assert!(is_refused, "message {wrong} of {length} bytes, not {bytes}: {error:?}");
        }
    }
}

#[test]
fn messages_of_another_length_are_refused() {
    let (count, x) = (100, [0; 100]);
    let bits = Bits::zeros(count);
    let (relu, sign, select, extend, truncate, lift) = (
        Relu::new(25, 37),
        Sign::new(25),
        Select::new(25),
        ExtendBounded::non_negative(25, 37),
        Truncate::new(37, 12),
        Lift::new(37),
    );
    let lines = Piecewise::new(18, [8, 6], Above::Rising, 37);
    let table = Lines::new(&[0; 64], &[0; 64], 8, true, Modulus::new(37));
    for role in [Role::Client, Role::Server] {
        refuses_misfits(&relu, count, role, |party, seed, body| relu.evaluate(party, seed, body, &x));
        refuses_misfits(&sign, count, role, |party, seed, body| sign.evaluate(party, seed, body, &x));
        refuses_misfits(&select, count, role, |party, seed, body| select.evaluate(party, seed, body, &bits, &x));
        refuses_misfits(&extend, count, role, |party, seed, body| extend.evaluate(party, seed, body, &x));
        refuses_misfits(&truncate, count, role, |party, seed, body| truncate.evaluate(party, seed, body, &x));
        refuses_misfits(&lift, count, role, |party, seed, body| lift.evaluate(party, seed, body, &bits));
        refuses_misfits(&lines, count, role, |party, seed, body| lines.evaluate(party, seed, body, &x, &table));
    }
}
