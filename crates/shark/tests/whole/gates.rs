//! Gates over a channel: every value under every mask on small rings, and laws on wide ones.

use privet_fss::{KeyBytes, Role};
use privet_ring::Modulus;
use privet_shark::{
    Error, Extend, Gate, Masked, Party, Relu, Sign, Tournament, Truncate, Values, dealer, ends, select,
};
use proptest::prelude::*;

use crate::support::{Case, deal, input, prg, random};

/// Every value of the ring many times over, so that random masks take every value beside it.
fn everything(bits: u32) -> Vec<u64> {
    let times = (4_000 >> bits).max(12);
    (0..times).flat_map(|_| 0..1 << bits).collect()
}

/// Floor of the signed `x / 2^f`, or one more, as the low bits of `x` and its mask say, as a signed number of `n - f` bits.
fn near(x: u64, mask: u128, bits: u32, dropped: u32) -> i64 {
    let low = (1u64 << dropped) - 1;
    let carry = ((x & low) + (mask as u64 & low)) >> dropped;
    Modulus::new(bits - dropped).signed((x >> dropped).wrapping_add(carry))
}

fn check_relu(bits: u32, dropped: u32, wide: u32, values: &[u64], seed: u64) {
    let gate = Relu::new(bits, dropped, wide);
    let case = Case {
        input: Modulus::new(bits),
        key_bytes: gate.key_bytes(values.len()),
        messages: gate.message_bytes(values.len()),
        deal: &|dealer, masks| {
            gate.deal(dealer, masks).expect("a vector takes everything");
        },
        evaluate: &|party, x| gate.evaluate(party, x),
    };
    let (results, masks) = case.run(values, seed);
    for ((x, r), result) in values.iter().zip(masks).zip(results) {
        let expected = near(*x, r, bits, dropped).max(0) as u64;
        let result = gate.output().reduce(result as u64);
        assert_eq!(result, expected, "{x} of {bits} bits without {dropped}, into {wide}");
    }
}

fn check_sign(bits: u32, dropped: u32, values: &[u64], seed: u64) {
    let gate = Sign::new(bits, dropped);
    let case = Case {
        input: Modulus::new(bits),
        key_bytes: gate.key_bytes(values.len()),
        messages: gate.message_bytes(values.len()),
        deal: &|dealer, masks| {
            gate.deal(dealer, masks).expect("a vector takes everything");
        },
        evaluate: &|party, x| Ok(gate.evaluate(party, x)?.values(party.key())),
    };
    let (results, masks) = case.run(values, seed);
    for ((x, r), result) in values.iter().zip(masks).zip(results) {
        assert_eq!(result, u128::from(near(*x, r, bits, dropped) >= 0), "{x} of {bits} bits without {dropped}");
    }
}

fn check_truncate(bits: u32, dropped: u32, values: &[u64], seed: u64) {
    for (gate, exact) in [(Truncate::near(bits, dropped), false), (Truncate::exact(bits, dropped), true)] {
        let case = Case {
            input: Modulus::new(bits),
            key_bytes: gate.key_bytes(values.len()),
            messages: gate.message_bytes(values.len()),
            deal: &|dealer, masks| gate.deal(dealer, masks).expect("a vector takes everything"),
            evaluate: &|party, x| gate.evaluate(party, x),
        };
        let (results, masks) = case.run(values, seed);
        for ((x, r), result) in values.iter().zip(masks).zip(results) {
            let rounded = gate.output().reduce(near(*x, r, bits, dropped) as u64);
            let expected = if exact { x >> dropped } else { rounded };
            assert_eq!(gate.output().reduce(result as u64), expected, "{x} of {bits} bits without {dropped}");
        }
    }
}

/// Values are made to fit the bounds.
fn check_extend(bits: u32, dropped: u32, values: &[u64], seed: u64) {
    let ring = Modulus::new(bits);
    let mut gates = vec![(Extend::non_negative(bits, dropped), 0)];
    if dropped + 2 <= bits {
        gates.push((Extend::signed(bits, dropped), -(1i64 << (bits - 2))));
    }
    for (gate, lowest) in gates {
        // The largest value may round up to the bound, which is out of it.
        let room = (ring.mask() >> 1).saturating_sub((1 << dropped) - 1);
        let signed: Vec<i64> = values.iter().map(|x| lowest + (x % (room + 1)) as i64).collect();
        let values: Vec<u64> = signed.iter().map(|x| ring.reduce(*x as u64)).collect();
        let case = Case {
            input: ring,
            key_bytes: gate.key_bytes(values.len()),
            messages: Vec::new(),
            deal: &|dealer, masks| gate.deal(dealer, masks).expect("a vector takes everything"),
            evaluate: &|party, x| gate.evaluate(party, x),
        };
        let (results, masks) = case.run(&values, seed);
        for ((x, r), result) in signed.iter().zip(masks).zip(results) {
            let low = (1i64 << dropped) - 1;
            let carry = ((x & low) + (r as i64 & low)) >> dropped;
            assert_eq!(result as i128, i128::from((x >> dropped) + carry), "{x} of {bits} bits without {dropped}");
        }
    }
}

/// Every value is in bounds.
fn check_exact_extend(bits: u32, values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Extend::exact(bits));
    let case = Case {
        input: ring,
        key_bytes: gate.key_bytes(values.len()),
        messages: gate.message_bytes(values.len()),
        deal: &|dealer, masks| gate.deal(dealer, masks).expect("a vector takes everything"),
        evaluate: &|party, x| gate.evaluate(party, x),
    };
    for (x, result) in values.iter().zip(case.run(values, seed).0) {
        assert_eq!(result as i128, i128::from(ring.signed(*x)), "{x} of {bits} bits");
    }
}

/// A gate on a product: the sign of each value times the value.
fn check_select(bits: u32, values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Sign::new(bits, 0));
    let case = Case {
        input: ring,
        key_bytes: gate.key_bytes(values.len()) + select::key_bytes(values.len()),
        messages: gate.message_bytes(values.len()),
        deal: &|dealer, masks| {
            let hidden = gate.deal(dealer, masks).expect("a vector takes everything");
            select::deal(dealer, &hidden, masks).expect("a vector takes everything");
        },
        evaluate: &|party, x| {
            let choice = gate.evaluate(party, x)?;
            select::evaluate(party, &choice, x)
        },
    };
    for (x, result) in values.iter().zip(case.run(values, seed).0) {
        assert_eq!(ring.reduce(result as u64), ring.signed(*x).max(0) as u64, "{x} of {bits} bits");
    }
}

/// Random values of a ring, and those at its edges.
fn samples(bits: u32, seed: u64) -> Vec<u64> {
    let mask = Modulus::new(bits).mask();
    let half = mask / 2 + 1;
    let edges = [0, 1, half - 1, half, half.wrapping_add(1), mask];
    [edges.map(|x| x & mask).to_vec(), random(300, bits, &mut prg(seed ^ 99))].concat()
}

#[test]
fn relu_is_right_for_every_value_of_small_rings() {
    for bits in 1..=7 {
        for dropped in 0..bits.min(4) {
            for wide in [bits - dropped, bits - dropped + 1, 37, 64] {
                check_relu(bits, dropped, wide, &everything(bits), u64::from(bits * 8 + dropped));
            }
        }
    }
}

#[test]
fn signs_are_right_for_every_value_of_small_rings() {
    for bits in 1..=8 {
        (0..bits.min(4)).for_each(|dropped| check_sign(bits, dropped, &everything(bits), 1));
    }
}

#[test]
fn truncations_are_right_for_every_value_of_small_rings() {
    for bits in 2..=8 {
        (1..bits.min(5)).for_each(|dropped| check_truncate(bits, dropped, &everything(bits), 2));
    }
}

#[test]
fn extensions_are_right_for_every_value_of_small_rings() {
    for bits in 1..=8 {
        (0..bits.min(5)).for_each(|dropped| check_extend(bits, dropped, &everything(bits), 3));
        check_exact_extend(bits, &everything(bits), 5);
    }
}

#[test]
fn products_are_right_for_every_value_of_small_rings() {
    (1..=7).for_each(|bits| check_select(bits, &everything(bits), 4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn gates_are_right_on_wide_rings(bits in 1u32..=64, dropped in 0u32..63, wider in 0u32..64, seed: u64) {
        let dropped = dropped % bits;
        let truncated = bits - dropped;
        let values = samples(bits, seed);
        check_relu(bits, dropped, (truncated + wider).min(64), &values, seed);
        check_sign(bits, dropped, &values, seed);
        check_select(bits, &values, seed);
        check_extend(bits, dropped, &values, seed);
        check_exact_extend(bits, &values, seed);
        if dropped > 0 {
            check_truncate(bits, dropped, &values, seed);
        }
    }

    #[test]
    fn tournaments_find_maxima_and_where_they_are(
        sizes in prop::collection::vec(1usize..10, 1..5), bits in 5u32..=64, seed: u64,
    ) {
        let ring = Modulus::new(bits);
        let count: usize = sizes.iter().sum();
        // Differences must fit, and equal members occur.
        let signed: Vec<i64> = random(count, bits, &mut prg(seed)).iter().map(|x| ring.signed(*x) >> 2 & !3).collect();
        let values: Vec<u64> = signed.iter().map(|x| ring.reduce(*x as u64)).collect();
        let mut next = 0;
        let groups: Vec<Vec<usize>> = sizes.iter().map(|size| { next += size; (next - size..next).rev().collect() }).collect();
        let counted = || sizes.iter().map(|&size| (size, 1));
        let indices = groups.clone().into();
        for gate in [Tournament::maxima(bits, counted()), Tournament::positions(bits, counted())] {
            let case = Case {
                input: ring,
                key_bytes: gate.key_bytes(),
                messages: gate.message_bytes(),
                deal: &|dealer, _| gate.deal(dealer).expect("a vector takes everything"),
                evaluate: &|party, x| {
                    let (mut values, positions) = gate.evaluate(party, &indices, &x.values(party.key()))?;
                    positions.iter().for_each(|positions| values.extend(positions));
                    Ok(values)
                },
            };
            let (results, _) = case.run(&values, seed);
            for (i, group) in groups.iter().enumerate() {
                let members: Vec<i64> = group.iter().map(|&index| signed[index]).collect();
                let best = *members.iter().max().expect("a member");
                prop_assert_eq!(ring.signed(results[i] as u64), best);
                if let Some(position) = results.get(groups.len() + i) {
                    let expected = members.iter().position(|member| *member == best).expect("it is one of them");
                    prop_assert_eq!(ring.reduce(*position as u64), expected as u64);
                }
            }
        }
    }
}

#[test]
fn keys_are_as_long_as_the_table_says() {
    let server = |bits, dropped, wide| {
        // And 16 bytes for the hashes of a batch.
        let masked = KeyBytes { words: 0, corrections: dealer::MASK_BYTES };
        (Relu::new(bits, dropped, wide).key_bytes(1) + masked).of(Role::Server)
    };
    assert_eq!([server(64, 0, 64), server(37, 0, 37), server(37, 12, 37)], [1616, 968, 776]);
    assert_eq!(ends::key_bytes(3).of(Role::Client), 0);
}

#[test]
fn values_compute_with_public_numbers() {
    let ring = Modulus::new(20);
    let x = [5, 1 << 19, 77, 3];
    let case = |evaluate: &(dyn Fn(&mut Party<'_>, &Masked) -> Values + Sync)| {
        let case = Case {
            input: ring,
            key_bytes: KeyBytes::default(),
            messages: Vec::new(),
            deal: &|_, _| {},
            evaluate: &|party, x| Ok(evaluate(party, x)),
        };
        case.run(&x, 5).0.iter().map(|x| ring.reduce(*x as u64)).collect::<Vec<_>>()
    };
    let values = |party: &Party<'_>, x: &Masked| x.values(party.key());
    assert_eq!(case(&values_of), x);
    assert_eq!(case(&|party, x| values(party, &x.plus(9))), x.map(|x| x + 9));
    assert_eq!(case(&|party, x| values(party, x).scale(1 << 3).plus(party.key(), &[1, 2, 3, 4])), [41, 2, 619, 28]);
    assert_eq!(
        case(&|party, x| values(party, x).weigh(&[0, 1, 2, 3]).negate()),
        [0, 1 << 19, (1 << 20) - 154, (1 << 20) - 9]
    );
    assert_eq!(case(&|party, x| values(party, x).sums(&[vec![0, 2, 3], vec![1]])), [85, 1 << 19]);
    assert_eq!(case(&|party, x| values(party, &x.slice(2..4)).gather(&[1, 0])), [3, 77]);
    assert_eq!(
        case(&|party, x| values(party, x).sub(&values(party, x).add(&values(party, x)))),
        x.map(|x| ring.reduce(0u64.wrapping_sub(x)))
    );
}

fn values_of(party: &mut Party<'_>, x: &Masked) -> Values {
    x.values(party.key())
}

#[test]
fn a_body_that_ends_early_is_an_error() {
    let (gate, ring) = (Relu::new(8, 0, 8), Modulus::new(8));
    for role in [Role::Client, Role::Server] {
        let mut material = deal(6, |dealer, _| {
            let masks = dealer.input_masks(40).expect("a vector takes everything");
            gate.deal(dealer, &masks).expect("a vector takes everything");
        });
        let body = &mut material.bodies[role as usize];
        body.truncate(body.len() - 1);
        let results = material.both(privet_channel::pair().into(), |mut party| {
            let x = input(&mut party, &[1; 40], ring)?;
            gate.evaluate(&mut party, &x)
        });
        let result = &results[role as usize].0;
        assert!(matches!(result, Err(Error::Key(privet_fss::Error::KeyTooShort { .. }))), "{role:?}");
    }
}
