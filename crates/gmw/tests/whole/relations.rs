//! Every protocol against its definition: the shares that come out add up to the function of those that went in.

use crate::pair::{half, join, part, prg, run, share, share_bits};
use privet_gmw::{Error, Party, Piecewise, Rounds, Sign, cost};
use privet_ring::tournament::Ties;
use privet_ring::{Bits, Lines, Modulus};
use proptest::prelude::*;

fn rounds() -> impl Strategy<Value = Rounds> {
    prop_oneof![Just(Rounds::Linear), Just(Rounds::Log), Just(Rounds::Blocks)]
}

/// Signed values that leave two bits of room in a ring of `bits` bits, extremes among them.
fn values(bits: u32) -> impl Strategy<Value = Vec<i64>> {
    let bound = 1i64 << (bits - 2);
    prop::collection::vec(prop_oneof![1 - bound..bound, Just(0), Just(1 - bound), Just(bound - 1), Just(-1)], 1..90)
}

/// Signed values of all of a ring of `bits` bits, extremes among them.
fn whole(bits: u32) -> impl Strategy<Value = Vec<i64>> {
    let top = 1i64 << (bits - 1);
    let extremes = prop_oneof![Just(0), Just(-1), Just(-top), Just(top - 1), Just(top / 2), Just(-top / 2 - 1)];
    prop::collection::vec(prop_oneof![2 => -top..top, 1 => extremes], 1..60)
}

#[test]
fn lanes_take_every_value() {
    for n in [32_767, 32_768, 32_769, 50_003, 65_536, 70_001] {
        let (ring, prg) = (Modulus::new(26), &mut prg(n));
        let x: Vec<i64> = (0..n).map(|_| ring.signed(ring.reduce(prg.word())) >> 1).collect();
        let xs = share(&x, ring, prg);
        let rounds = Rounds::Blocks;
        let out = run(&cost::relu(x.len(), 26, rounds).demand, rounds, prg, |party| {
            privet_gmw::relu(party, part(&xs, party), ring)
        });
        assert!(join(&out, ring) == x.iter().map(|&x| x.max(0)).collect::<Vec<_>>(), "{n} values");
        let out = run(&cost::truncate_exactly(x.len(), 9, 26, rounds).demand, rounds, prg, |party| {
            privet_gmw::truncate_exactly(party, part(&xs, party), 9, ring)
        });
        assert!(join(&out, Modulus::new(17)) == x.iter().map(|&x| x >> 9).collect::<Vec<_>>(), "{n} values");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn and_of_shared_bits(x: Vec<bool>, y: Vec<bool>, seed: u64) {
        let n = x.len().min(y.len());
        let prg = &mut prg(seed);
        let (xs, ys) = (share_bits(&x[..n], prg), share_bits(&y[..n], prg));
        let [a, b] = run(&cost::and(n).demand, Rounds::Linear, prg, |party| {
            privet_gmw::and(party, half(&xs, party), half(&ys, party))
        });
        let expected: Vec<bool> = x.iter().zip(&y).map(|(x, y)| x & y).collect();
        prop_assert_eq!(a.xor(&b), Bits::from_bools(&expected));
    }

    #[test]
    fn and_of_shared_bits_with_a_common_operand(bits: Vec<[bool; 5]>, single in 0_usize..100, seed: u64) {
        let prg = &mut prg(seed);
        let column = |i: usize, len: usize| -> Vec<bool> { bits.iter().map(|row| row[i]).take(len).collect() };
        let lengths = [single, single, usize::MAX, usize::MAX, usize::MAX];
        let clear: Vec<Vec<bool>> = lengths.into_iter().enumerate().map(|(i, len)| column(i, len)).collect();
        let shares: Vec<[Bits; 2]> = clear.iter().map(|column| share_bits(column, prg)).collect();
        let demand = cost::and_with_pairs(clear[0].len(), bits.len()).demand;
        let [(a, [a0, a1]), (b, [b0, b1])] = run(&demand, Rounds::Linear, prg, |party| {
            let [x, y, shared, left, right] = [0, 1, 2, 3, 4].map(|i| half(&shares[i], party));
            privet_gmw::and_with_pairs(party, x, y, shared, [left, right])
        });
        let product = |i: usize, j: usize| {
            Bits::from_bools(&clear[i].iter().zip(&clear[j]).map(|(x, y)| x & y).collect::<Vec<_>>())
        };
        prop_assert_eq!([a.xor(&b), a0.xor(&b0), a1.xor(&b1)], [product(0, 1), product(2, 3), product(2, 4)]);
    }

    #[test]
    fn and_of_privately_held_bits(x: Vec<bool>, y: Vec<bool>, seed: u64) {
        let n = x.len().min(y.len());
        let inputs = [Bits::from_bools(&x[..n]), Bits::from_bools(&y[..n])];
        let [a, b] = run(&cost::private_and(n).demand, Rounds::Linear, &mut prg(seed), |party| {
            privet_gmw::private_and(party, half(&inputs, party))
        });
        prop_assert_eq!(a.xor(&b), inputs[0].and(&inputs[1]));
    }

    #[test]
    fn lines_of_signed_values(
        index_bits in 6u32..=9, step in 1u32..=5, more in 2u32..12, to in 12u32..=40, values: Vec<u64>,
        [nonnegative, rises, flat, whole]: [bool; 4], rounds in rounds(), seed: u64,
    ) {
        let (prg, bits) = (&mut prg(seed), index_bits + step);
        let of = Piecewise::new(bits + more, [bits, index_bits], nonnegative, rises, to);
        let (from, to, last) = (Modulus::new(of.ring), Modulus::new(to), (1 << bits) - 1);
        let mut table = |bits: u32| (0..1 << index_bits).map(|_| prg.word() as i64 >> (64 - bits)).collect::<Vec<_>>();
        let (mut slopes, mut offsets) = (table(if flat { 8 } else { 34 }), table(34));
        if whole {
            *slopes.last_mut().unwrap() = 1 << step;
            *offsets.last_mut().unwrap() = offsets[0] + (5 << step);
        }
        let lines = Lines::new(&slopes, &offsets, step, rises, Modulus::new(40));
        let of = of.narrowed(&lines);
        prop_assert!(of.whole || !(rises && whole));
        let edges = [0, -1, last, last + 1, (from.mask() / 2) as i64, -1 - (from.mask() / 2) as i64];
        let values = values.iter().map(|x| from.signed(from.reduce(*x))).chain(edges);
        let values: Vec<i64> = values.map(|x| if nonnegative { x.max(0) } else { x }).collect();
        let shares = share(&values, from, prg);
        let cost = cost::piecewise(values.len(), &of, rounds);
        let results = run(&cost.demand, rounds, prg, |party| {
            let outputs = privet_gmw::piecewise(party, part(&shares, party), &of, &lines)?;
            assert_eq!(party.stock.left(), Default::default(), "the formula asks for more than is used");
            Ok(outputs)
        });
        let expected: Vec<i64> = values.iter().map(|&x| {
            let within = x.clamp(0, last);
            let (line, distance) = ((within >> step) as usize, within & ((1 << step) - 1));
            let beyond = if rises { (x - within).max(0) << step } else { 0 };
            let value = slopes[line].wrapping_mul(distance).wrapping_add(offsets[line]).wrapping_add(beyond);
            to.signed(to.reduce(value as u64))
        }).collect();
        prop_assert_eq!(join(&results, to), expected);
    }

    #[test]
    fn carry_of_private_summands(bits in 1u32..=63, pairs: Vec<(u64, u64)>, rounds in rounds(), seed: u64) {
        let ring = Modulus::new(bits);
        let (x, y): (Vec<u64>, Vec<u64>) = pairs.iter().map(|&(x, y)| (ring.reduce(x), ring.reduce(y))).unzip();
        let expected: Vec<bool> = x.iter().zip(&y).map(|(x, y)| (x + y) >> bits == 1).collect();
        let summands = [x, y];
        let [a, b] = run(&cost::carry(summands[0].len(), bits, rounds).demand, rounds, &mut prg(seed), |party| {
            privet_gmw::carry(party, part(&summands, party), bits)
        });
        prop_assert_eq!(a.xor(&b), Bits::from_bools(&expected));
    }

    #[test]
    fn mux_multiplies_by_the_bit(bits in 1u32..=64, pairs: Vec<(bool, i64)>, seed: u64) {
        let (ring, prg) = (Modulus::new(bits), &mut prg(seed));
        let (select, x): (Vec<bool>, Vec<i64>) = pairs.into_iter().unzip();
        let (selects, xs) = (share_bits(&select, prg), share(&x, ring, prg));
        let out = run(&cost::mux(x.len(), bits).demand, Rounds::Linear, prg, |party| {
            privet_gmw::mux(party, half(&selects, party), part(&xs, party), ring)
        });
        let expected: Vec<i64> = select.iter().zip(&x).map(|(&b, &x)| if b { ring.signed(x as u64) } else { 0 }).collect();
        prop_assert_eq!(join(&out, ring), expected);
    }

    #[test]
    fn relu_keeps_what_is_positive((bits, x) in (4u32..=64).prop_flat_map(|bits| (Just(bits), values(bits))), rounds in rounds(), seed: u64) {
        let (ring, prg) = (Modulus::new(bits), &mut prg(seed));
        let xs = share(&x, ring, prg);
        let out = run(&cost::relu(x.len(), bits, rounds).demand, rounds, prg, |party| {
            privet_gmw::relu(party, part(&xs, party), ring)
        });
        prop_assert_eq!(join(&out, ring), x.iter().map(|&x| x.max(0)).collect::<Vec<_>>());
    }

    #[test]
    fn truncation_and_extension_are_one_bit_off_at_most((bits, x) in (20u32..=64).prop_flat_map(|bits| (Just(bits), values(bits))), drop in 1u32..=14, seed: u64) {
        let (wide, narrow, prg) = (Modulus::new(bits), Modulus::new(bits - drop), &mut prg(seed));
        let xs = share(&x, wide, prg);
        let demand = cost::extend(x.len(), bits - drop, bits, Sign::Unknown, Rounds::Linear).demand;
        let out = run(&demand, Rounds::Linear, prg, |party| {
            let short = privet_gmw::drop_low_bits(party.role, part(&xs, party), drop, wide);
            privet_gmw::extend(party, &short, narrow, wide, Sign::Unknown)
        });
        for (got, &x) in join(&out, wide).into_iter().zip(&x) {
            let floor = x >> drop;
            prop_assert!(got == floor || got == floor + 1, "{got} for floor {floor}");
        }
    }

    #[test]
    fn exact_truncation_is_the_floor((bits, x) in (20u32..=64).prop_flat_map(|bits| (Just(bits), values(bits))), drop in 1u32..=14, rounds in rounds(), seed: u64) {
        let (wide, narrow, prg) = (Modulus::new(bits), Modulus::new(bits - drop), &mut prg(seed));
        let xs = share(&x, wide, prg);
        let demand = cost::truncate_exactly(x.len(), drop, bits, rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::truncate_exactly(party, part(&xs, party), drop, wide));
        prop_assert_eq!(join(&out, narrow), x.iter().map(|&x| x >> drop).collect::<Vec<_>>());
    }

    #[test]
    fn exact_truncation_takes_any_width((bits, drop) in (8u32..=64).prop_flat_map(|bits| (Just(bits), 1..bits)), rounds in rounds(), seed: u64) {
        let (wide, narrow, prg) = (Modulus::new(bits), Modulus::new(bits - drop), &mut prg(seed));
        let top = 1i64 << (bits - 2);
        let mut x: Vec<i64> = vec![0, 1, -1, top - 1, 1 - top, (1 << (drop - 1)) - 1, -1 << (drop - 1)];
        x.extend((0..9).map(|_| wide.signed(wide.reduce(prg.word())) / 4));
        // Shares that wrap around and shares that do not, and low parts that carry and that do not.
        let clients = [0, 1, wide.reduce(u64::MAX), 1 << (bits - 1), (1 << drop) - 1];
        for client in clients.map(|client| wide.reduce(client)) {
            let clients = vec![client; x.len()];
            let servers: Vec<u64> = x.iter().map(|&x| wide.reduce((x as u64).wrapping_sub(client))).collect();
            let demand = cost::truncate_exactly(x.len(), drop, bits, rounds).demand;
            let shares = [clients, servers];
            let out = run(&demand, rounds, prg, |party| privet_gmw::truncate_exactly(party, part(&shares, party), drop, wide));
            prop_assert_eq!(join(&out, narrow), x.iter().map(|&x| narrow.signed(narrow.reduce((x >> drop) as u64))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn extension_takes_every_value_of_the_ring(
        (bits, x) in (2u32..=62).prop_flat_map(|bits| (Just(bits), whole(bits))), more in 1u32..=38, rounds in rounds(), seed: u64
    ) {
        let (narrow, wide, prg) = (Modulus::new(bits), Modulus::new((bits + more).min(64)), &mut prg(seed));
        let positive: Vec<i64> = x.iter().map(|&x| x.max(0)).collect();
        for (sign, x) in [(Sign::Unknown, &x), (Sign::NonNegative, &positive)] {
            let xs = share(x, narrow, prg);
            let demand = cost::extend(x.len(), bits, wide.bits(), sign, rounds).demand;
            let out = run(&demand, rounds, prg, |party| privet_gmw::extend(party, part(&xs, party), narrow, wide, sign));
            prop_assert_eq!(&join(&out, wide), x);
        }
    }

    #[test]
    fn exact_steps_take_every_value_of_the_ring(
        (bits, x) in (4u32..=63).prop_flat_map(|bits| (Just(bits), whole(bits))), rounds in rounds(), seed: u64
    ) {
        let (ring, drop, prg) = (Modulus::new(bits), bits / 2, &mut prg(seed));
        let xs = share(&x, ring, prg);
        let demand = cost::relu(x.len(), bits, rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::relu(party, part(&xs, party), ring));
        prop_assert_eq!(join(&out, ring), x.iter().map(|&x| x.max(0)).collect::<Vec<_>>());
        let demand = cost::truncate_exactly(x.len(), drop, bits, rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::truncate_exactly(party, part(&xs, party), drop, ring));
        prop_assert_eq!(join(&out, Modulus::new(bits - drop)), x.iter().map(|&x| x >> drop).collect::<Vec<_>>());
        // A match wraps where a difference leaves the ring, for every sharing alike.
        let wins = |a: i64, b: i64| ring.signed(ring.reduce(a.wrapping_sub(b) as u64)) >= 0;
        let pairs: Vec<[i64; 2]> = x.iter().zip(x.iter().rev()).map(|(&a, &b)| [a, b]).collect();
        let xs = share(&pairs.concat(), ring, prg);
        let groups: Vec<Vec<usize>> = (0..pairs.len()).map(|i| vec![2 * i, 2 * i + 1]).collect();
        let demand = cost::max_pool(groups.iter().map(|group| (group.len(), 1)), bits, rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::max_pool(party, part(&xs, party), &groups.clone().into(), ring));
        prop_assert_eq!(join(&out, ring), pairs.iter().map(|&[a, b]| if wins(a, b) { a } else { b }).collect::<Vec<_>>());
        let demand = cost::argmax(pairs.len(), 2, bits, 9, rounds).demand;
        let out = run(&demand, rounds, prg, |party| {
            let vectors: Vec<Vec<u64>> = part(&xs, party).chunks(2).map(<[u64]>::to_vec).collect();
            privet_gmw::argmax(party, &vectors, Ties::First, ring, Modulus::new(9))
        });
        prop_assert_eq!(join(&out, Modulus::new(9)), pairs.iter().map(|&[a, b]| i64::from(!wins(a, b))).collect::<Vec<_>>());
    }

    #[test]
    fn max_pool_finds_the_largest(groups in prop::collection::vec(prop::collection::vec(-8000i64..8000, 1..10), 1..20), rounds in rounds(), seed: u64) {
        let (ring, prg) = (Modulus::new(16), &mut prg(seed));
        let flat: Vec<i64> = groups.iter().flatten().copied().collect();
        let mut next = 0;
        let indices: Vec<Vec<usize>> = groups.iter().map(|group| { next += group.len(); (next - group.len()..next).collect() }).collect();
        let xs = share(&flat, ring, prg);
        let demand = cost::max_pool(groups.iter().map(|group| (group.len(), 1)), 16, rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::max_pool(party, part(&xs, party), &indices.clone().into(), ring));
        prop_assert_eq!(join(&out, ring), groups.iter().map(|group| group.iter().copied().max().unwrap_or(0)).collect::<Vec<_>>());
    }

    #[test]
    fn argmax_breaks_ties_as_asked(size in 1usize..9, count in 1usize..6, last: bool, rounds in rounds(), seed: u64) {
        let (ring, index_ring, prg) = (Modulus::new(12), Modulus::new(37), &mut prg(seed));
        let groups: Vec<Vec<i64>> = (0..count).map(|_| (0..size).map(|_| (prg.word() % 4) as i64 - 2).collect()).collect();
        let shares: Vec<[Vec<u64>; 2]> = groups.iter().map(|group| share(group, ring, prg)).collect();
        let ties = if last { Ties::Last } else { Ties::First };
        let demand = cost::argmax(count, size, 12, 37, rounds).demand;
        let out = run(&demand, rounds, prg, |party| {
            let vectors: Vec<Vec<u64>> = shares.iter().map(|share| half(share, party).clone()).collect();
            privet_gmw::argmax(party, &vectors, ties, ring, index_ring)
        });
        let expected = |group: &Vec<i64>| {
            let best = group.iter().max();
            let index = if last { group.iter().rposition(|x| Some(x) == best) } else { group.iter().position(|x| Some(x) == best) };
            index.map(|at| at as i64)
        };
        prop_assert_eq!(join(&out, index_ring).into_iter().map(Some).collect::<Vec<_>>(), groups.iter().map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn steps_are_signs_as_numbers(bits in 2u32..=12, x in whole(12), to in 8u32..=64, rounds in rounds(), seed: u64) {
        let (ring, to, prg) = (Modulus::new(bits), Modulus::new(to), &mut prg(seed));
        let x: Vec<i64> = x.into_iter().map(|x| ring.signed(ring.reduce(x.cast_unsigned()))).collect();
        let xs = share(&x, ring, prg);
        let demand = cost::step(x.len(), bits, to.bits(), rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::step(party, part(&xs, party), ring, to));
        prop_assert_eq!(join(&out, to), x.into_iter().map(|x| i64::from(x >= 0)).collect::<Vec<_>>());
    }

    #[test]
    fn trees_end_in_one_leaf(depth in 1u32..=5, trees in 1usize..70, rounds in rounds(), seed: u64) {
        let (ring, to, prg) = (Modulus::new(9), Modulus::new(37), &mut prg(seed));
        let nodes = (1 << depth) - 1;
        let x: Vec<i64> = (0..trees * nodes).map(|_| (prg.word() % 5).cast_signed() - 2).collect();
        let xs = share(&x, ring, prg);
        let demand = cost::leaves(trees, depth, 9, 37, rounds).demand;
        let out = run(&demand, rounds, prg, |party| privet_gmw::leaves(party, part(&xs, party), depth, ring, to));
        let mut expected = vec![0; trees << depth];
        for tree in 0..trees {
            let step = |way: usize, level: u32| {
                let node = (1 << level) - 1 + way;
                way | usize::from(x[node * trees + tree] < 0) << level
            };
            expected[(0..depth).fold(0, step) * trees + tree] = 1;
        }
        prop_assert_eq!(join(&out, to), expected);
    }
}

#[test]
fn carries_of_all_small_summands() {
    for bits in [1, 2, 3, 4, 5, 9] {
        let pairs: Vec<(u64, u64)> = (0..1 << bits).flat_map(|x| (0..1 << bits).map(move |y| (x, y))).collect();
        let expected: Vec<bool> = pairs.iter().map(|&(x, y)| (x + y) >> bits == 1).collect();
        let (x, y): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let summands = [x, y];
        for rounds in [Rounds::Linear, Rounds::Log, Rounds::Blocks] {
            let demand = cost::carry(summands[0].len(), bits, rounds).demand;
            let [a, b] = run(&demand, rounds, &mut prg(u64::from(bits)), |party| {
                privet_gmw::carry(party, part(&summands, party), bits)
            });
            assert_eq!(a.xor(&b), Bits::from_bools(&expected), "{rounds:?} on {bits} bits");
        }
    }
}

#[test]
fn openings_reach_one_party_only() {
    let (ring, prg) = (Modulus::new(37), &mut prg(1));
    let x = [5, -7, 1 << 30];
    let xs = share(&x, ring, prg);
    let mask = vec![11, 12, 13];
    let [client, server] = run(&Default::default(), Rounds::Linear, prg, |party| {
        let mask = (!party.is_server()).then_some(mask.as_slice());
        let masked = privet_gmw::open_to_server(party.channel, part(&xs, party), mask, ring)?;
        Ok((masked, privet_gmw::open_to_client(party.channel, party.role, part(&xs, party), ring)?))
    });
    let expected: Vec<u64> = x.iter().map(|&x| ring.reduce(x as u64)).collect();
    assert_eq!(client, (None, Some(expected.clone())));
    assert_eq!(server, (Some(ring.sub(&expected, &mask)), None));
}

#[test]
fn guard_bits_are_rounded_off_for_every_share_of_every_value_of_small_rings() {
    for (bits, drop) in [(4, 2), (5, 2), (6, 3), (7, 5)] {
        let (ring, narrow) = (Modulus::new(bits), Modulus::new(bits - drop));
        // Multiples of four, raised by two and off by one at most.
        let errors = (0..1_u64 << (bits - 2)).flat_map(|y| (1..4).map(move |e| (y, 4 * y + e)));
        let (cases, client): (Vec<(u64, u64)>, Vec<u64>) =
            errors.flat_map(|case| (0..1 << bits).map(move |share| (case, share))).unzip();
        let server = cases.iter().zip(&client).map(|(&(_, x), &c)| ring.reduce(x.wrapping_sub(c))).collect();
        let shares = [client, server];
        let expected: Vec<i64> = cases.iter().map(|(y, _)| narrow.signed(y >> (drop - 2))).collect();
        for rounds in [Rounds::Linear, Rounds::Log, Rounds::Blocks] {
            let demand = cost::truncate_guarded(cases.len(), drop, bits, rounds).demand;
            let out = run(&demand, rounds, &mut prg(5), |party| {
                privet_gmw::truncate_guarded(party, part(&shares, party), drop, ring)
            });
            assert_eq!(join(&out, narrow), expected, "{drop} of {bits} bits, {rounds:?}");
        }
    }
}

#[test]
fn every_share_of_every_value_of_small_rings_is_extended() {
    for bits in 2..=5 {
        let (narrow, wide, half) = (Modulus::new(bits), Modulus::new(bits + 7), 1_i64 << (bits - 1));
        for (sign, lowest) in [(Sign::Unknown, -half), (Sign::NonNegative, 0)] {
            let (values, client): (Vec<i64>, Vec<u64>) =
                (lowest..half).flat_map(|x| (0..1 << bits).map(move |share| (x, share))).unzip();
            let server = values.iter().zip(&client).map(|(&x, &c)| narrow.reduce((x as u64).wrapping_sub(c))).collect();
            let shares = [client, server];
            for rounds in [Rounds::Linear, Rounds::Log, Rounds::Blocks] {
                let demand = cost::extend(values.len(), bits, wide.bits(), sign, rounds).demand;
                let out = run(&demand, rounds, &mut prg(7), |party| {
                    privet_gmw::extend(party, part(&shares, party), narrow, wide, sign)
                });
                assert_eq!(join(&out, wide), values, "{bits} bits, {sign:?}, {rounds:?}");
            }
        }
    }
}

/// An extension that takes a signed value for one of the middle half of the ring: it adds a quarter and trusts the result to be
/// non-negative.
fn extend_by_a_quarter(party: &mut Party<'_>, x: &[u64], from: Modulus, to: Modulus) -> Result<Vec<u64>, Error> {
    let quarter = if party.is_server() { (1 << (from.bits() - 2)) - 1 } else { 0 };
    let raised: Vec<u64> = x.iter().map(|x| from.reduce(x.wrapping_add(quarter))).collect();
    let extended = privet_gmw::extend(party, &raised, from, to, Sign::NonNegative)?;
    Ok(extended.iter().map(|x| to.reduce(x.wrapping_sub(quarter))).collect())
}

/// A hidden unit beyond a quarter of its ring, and the weights behind it: a client that sees two outputs for one input
/// subtracts them.
#[test]
fn a_value_beyond_a_quarter_gives_no_weight_away() {
    let (narrow, wide, weights) = (Modulus::new(25), Modulus::new(37), [1234_i64, -517, 2047, -3]);
    let hidden = (1 << 23) + (1 << 22);
    let outputs = |trusting: bool| -> Vec<Vec<i64>> {
        let answer = |seed| {
            let prg = &mut prg(seed);
            let shares = share(&[hidden], narrow, prg);
            let demand = cost::relu(1, 25, Rounds::Linear) + cost::extend(1, 25, 37, Sign::NonNegative, Rounds::Linear);
            let out = run(&demand.demand, Rounds::Linear, prg, |party| {
                let x = privet_gmw::relu(party, part(&shares, party), narrow)?;
                let x = match trusting {
                    true => extend_by_a_quarter(party, &x, narrow, wide)?,
                    false => privet_gmw::extend(party, &x, narrow, wide, Sign::NonNegative)?,
                };
                Ok(weights.map(|w| wide.reduce(x[0].wrapping_mul(w as u64))).to_vec())
            });
            join(&out, wide)
        };
        let mut outputs: Vec<_> = (0..24).map(answer).collect();
        outputs.sort();
        outputs.dedup();
        outputs
    };
    assert_eq!(outputs(false), [weights.map(|w| wide.signed(wide.reduce((w * hidden) as u64))).to_vec()]);
    // The control: the difference of two outputs is 2^25 times the weights, of which the ring keeps 12 bits.
    let leaky = outputs(true);
    let recovered = |[a, b]: [&Vec<i64>; 2]| -> Vec<i64> {
        let difference =
            |(a, b): (&i64, &i64)| Modulus::new(12).signed(Modulus::new(12).reduce(((a - b) >> 25) as u64));
        a.iter().zip(b).map(difference).collect()
    };
    assert_eq!(leaky.len(), 2, "the control leaks");
    assert!([[0, 1], [1, 0]].map(|[a, b]| recovered([&leaky[a], &leaky[b]])).contains(&weights.to_vec()));
}

#[test]
fn products_of_shared_values_are_exact() {
    for width in [1, 8, 25, 37, 50, 64] {
        let ring = Modulus::new(width);
        let prg = &mut prg(u64::from(width));
        for n in [0, 1, 65, 1000] {
            let numbers = |prg: &mut privet_prg::Prg| (0..n).map(|_| prg.word() as i64).collect::<Vec<i64>>();
            let (x, y) = (numbers(prg), numbers(prg));
            let (shares_x, shares_y) = (share(&x, ring, prg), share(&y, ring, prg));
            let products = run(&privet_gmw::cost::multiply(n, width).demand, Rounds::Linear, prg, |party| {
                privet_gmw::multiply(party, part(&shares_x, party), part(&shares_y, party), ring)
            });
            let expected = x.iter().zip(&y).map(|(x, y)| ring.signed(ring.reduce(x.wrapping_mul(*y) as u64)));
            assert_eq!(join(&products, ring), expected.collect::<Vec<_>>(), "{n} of {width} bits");

            let squares = run(&privet_gmw::cost::square(n, width).demand, Rounds::Linear, prg, |party| {
                privet_gmw::square(party, part(&shares_x, party), ring)
            });
            let expected = x.iter().map(|x| ring.signed(ring.reduce(x.wrapping_mul(*x) as u64)));
            assert_eq!(join(&squares, ring), expected.collect::<Vec<_>>(), "{n} squares of {width} bits");
        }
    }
}

#[test]
fn products_with_the_servers_factors_are_exact() {
    for (bits, factor_bits) in [(1, 1), (8, 8), (30, 14), (37, 2), (12, 20), (64, 64)] {
        let (ring, factors) = (Modulus::new(bits), Modulus::new(factor_bits));
        let prg = &mut prg(u64::from(bits));
        for n in [0, 1, 65, 1000] {
            let x: Vec<u64> = (0..n).map(|_| ring.reduce(prg.word())).collect();
            let f: Vec<u64> = (0..n).map(|_| factors.signed(factors.reduce(prg.word())) as u64).collect();
            let products = run(&privet_gmw::cost::scale(n, factor_bits, bits).demand, Rounds::Linear, prg, |party| {
                privet_gmw::scale(party, if party.is_server() { &f } else { &x }, factor_bits, ring)
            });
            let expected = x.iter().zip(&f).map(|(x, f)| ring.signed(ring.reduce(x.wrapping_mul(*f))));
            assert_eq!(join(&products, ring), expected.collect::<Vec<_>>(), "{n} of {bits} bits by {factor_bits}");
        }
    }
}

#[test]
fn products_of_rows_are_exact() {
    for width in [1, 8, 37, 64] {
        let ring = Modulus::new(width);
        let prg = &mut prg(u64::from(width));
        for (rows, row) in [(0, 0), (1, 1), (3, 65), (200, 4), (64, 0)] {
            let numbers = |prg: &mut privet_prg::Prg, n| (0..n).map(|_| prg.word() as i64).collect::<Vec<i64>>();
            let (x, y) = (numbers(prg, rows), numbers(prg, rows * row));
            let (shares_x, shares_y) = (share(&x, ring, prg), share(&y, ring, prg));
            let products =
                run(&privet_gmw::cost::multiply_rows(rows, row, width).demand, Rounds::Linear, prg, |party| {
                    privet_gmw::multiply_rows(party, part(&shares_x, party), part(&shares_y, party), ring)
                });
            let expected = (0..rows * row).map(|i| ring.signed(ring.reduce(x[i / row].wrapping_mul(y[i]) as u64)));
            assert_eq!(join(&products, ring), expected.collect::<Vec<_>>(), "{rows} rows of {row}, {width} bits");
        }
    }
}
