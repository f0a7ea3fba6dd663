//! Between rings and prime fields: every share of every value for small primes, laws for those in use, and the wire.

use crate::pair::{join, part, prg, run, run_over, share};
use privet_channel::record;
use privet_gmw::{Rounds, Sign, cost, from_field, open_to_server_in_field, to_field};
use privet_prg::Prg;
use privet_ring::{Field, Modulus};
use proptest::prelude::*;

/// Client's and server's random shares of `values` modulo the field's prime.
fn share_in(values: &[i64], field: Field, prg: &mut Prg) -> [Vec<u64>; 2] {
    let client: Vec<u64> = values.iter().map(|_| prg.below(field.prime())).collect();
    let server = values.iter().zip(&client).map(|(&x, &c)| field.sub(field.from_signed(x), c)).collect();
    [client, server]
}

fn join_in(shares: &[Vec<u64>; 2], field: Field) -> Vec<i64> {
    shares[0].iter().zip(&shares[1]).map(|(&a, &b)| field.signed(field.add(a, b))).collect()
}

const ROUNDS: [Rounds; 3] = [Rounds::Linear, Rounds::Log, Rounds::Blocks];

#[test]
fn every_share_of_every_value_arrives_for_small_primes() {
    for (prime, bits) in [(17, 4), (37, 5), (67, 6), (127, 6)] {
        let (field, ring) = (Field::new(prime), Modulus::new(bits));
        let (residues, client): (Vec<u64>, Vec<u64>) =
            (0..prime).flat_map(|x| (0..prime).map(move |share| (x, share))).unzip();
        let server = residues.iter().zip(&client).map(|(&x, &c)| field.sub(x, c)).collect();
        let shares = [client, server];
        let expected: Vec<i64> =
            residues.iter().map(|&x| ring.signed(ring.reduce(field.signed(x).cast_unsigned()))).collect();
        for rounds in ROUNDS {
            let demand = cost::from_field(expected.len(), field, bits, rounds).demand;
            let out =
                run(&demand, rounds, &mut prg(prime), |party| from_field(party, part(&shares, party), field, ring));
            assert_eq!(join(&out, ring), expected, "from the field of {prime}");
        }

        let half = 1_i64 << (bits - 1);
        for (sign, lowest) in [(Sign::Unknown, -half), (Sign::NonNegative, 0)] {
            let (values, client): (Vec<i64>, Vec<u64>) =
                (lowest..half).flat_map(|x| (0..1 << bits).map(move |share| (x, share))).unzip();
            let server = values.iter().zip(&client).map(|(&x, &c)| ring.reduce((x as u64).wrapping_sub(c))).collect();
            let shares = [client, server];
            for rounds in ROUNDS {
                let demand = cost::to_field(values.len(), bits, field, sign, rounds).demand;
                let out = run(&demand, rounds, &mut prg(prime), |party| {
                    to_field(party, part(&shares, party), ring, field, sign)
                });
                assert_eq!(join_in(&out, field), values, "to the field of {prime}, {sign:?}");
            }
        }
    }
}

/// Signed values of a ring of `bits` bits, extremes among them.
fn values(bits: u32) -> impl Strategy<Value = Vec<i64>> {
    let top = 1i64 << (bits - 1);
    prop::collection::vec(prop_oneof![-top..top, Just(0), Just(-top), Just(top - 1), Just(-1)], 1..90)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn values_go_to_the_field_and_back(
        (wide, narrow, x) in (Field::RINGS, 8_u32..=42).prop_flat_map(|(wide, narrow)| {
            let narrow = narrow.min(wide);
            (Just(wide), Just(narrow), values(narrow))
        }),
        seed: u64,
    ) {
        let (ring, from, prg) = (Modulus::new(wide), Modulus::new(narrow), &mut prg(seed));
        let field = Field::over(ring).unwrap();
        let shares = share(&x, from, prg);
        let demand = cost::to_field(x.len(), narrow, field, Sign::Unknown, Rounds::Linear).demand;
        let in_field = run(&demand, Rounds::Linear, prg, |party| {
            to_field(party, part(&shares, party), from, field, Sign::Unknown)
        });
        prop_assert_eq!(join_in(&in_field, field), x.clone());
        let demand = cost::from_field(x.len(), field, wide, Rounds::Linear).demand;
        let back = run(&demand, Rounds::Linear, prg, |party| from_field(party, part(&in_field, party), field, ring));
        prop_assert_eq!(join(&back, ring), x);
    }

    #[test]
    fn every_residue_leaves_the_field_as_the_integer_next_to_zero(wide in Field::RINGS, words: [u64; 40], seed: u64) {
        let (ring, prg) = (Modulus::new(wide), &mut prg(seed));
        let field = Field::over(ring).unwrap();
        let half = (field.prime() / 2).cast_signed();
        let mut x: Vec<i64> = words.iter().map(|&word| field.signed(field.reduce(word))).collect();
        x.extend([half, -half, half - 1, 1 - half, 1 << (wide - 1), -1 << (wide - 1)]);
        let shares = share_in(&x, field, prg);
        let demand = cost::from_field(x.len(), field, wide, Rounds::Blocks).demand;
        let out = run(&demand, Rounds::Blocks, prg, |party| from_field(party, part(&shares, party), field, ring));
        prop_assert_eq!(join(&out, ring), x.iter().map(|&x| ring.signed(ring.reduce(x.cast_unsigned()))).collect::<Vec<_>>());
    }

    #[test]
    fn the_server_learns_a_value_behind_the_mask(x in values(37), seed: u64) {
        let (field, prg) = (Field::over(Modulus::new(37)).unwrap(), &mut prg(seed));
        let shares = share_in(&x, field, prg);
        let mask: Vec<u64> = x.iter().map(|_| prg.below(field.prime())).collect();
        let [client, server] = run(&cost::open_to_server(x.len(), 38).demand, Rounds::Linear, prg, |party| {
            let mask = (!party.is_server()).then_some(mask.as_slice());
            open_to_server_in_field(party.channel, part(&shares, party), mask, field)
        });
        prop_assert_eq!(client, None);
        let opened = server.unwrap();
        let unmasked: Vec<i64> = opened.iter().zip(&mask).map(|(&x, &r)| field.signed(field.add(x, r))).collect();
        prop_assert_eq!(unmasked, x);
    }
}

#[test]
fn formulas_hold_on_the_wire() {
    let (field, ring) = (Field::over(Modulus::new(37)).unwrap(), Modulus::new(37));
    let sizes = [1, 7, 64, 1000].into_iter();
    let cases = sizes.flat_map(|n| ROUNDS.map(|rounds| (n, rounds)));
    for ((n, rounds), sign) in cases.flat_map(|case| [Sign::Unknown, Sign::NonNegative].map(|sign| (case, sign))) {
        let prg = &mut prg(n as u64);
        let (narrow, wide) = (share(&vec![-3; n], Modulus::new(25), prg), share_in(&vec![-3; n], field, prg));
        let expected = cost::to_field(n, 25, field, sign, rounds) + cost::from_field(n, field, 37, rounds);
        let [client, server] = run(&expected.demand, rounds, prg, |party| {
            to_field(party, part(&narrow, party), Modulus::new(25), field, sign)?;
            from_field(party, part(&wide, party), field, ring)?;
            assert_eq!(party.stock.left(), Default::default());
            Ok(party.channel.cost())
        });
        assert_eq!((client.bytes_sent, server.bytes_sent), (expected.client_bytes, expected.server_bytes));
        assert_eq!(client.rounds.max(server.rounds), expected.rounds);
    }
}

#[test]
fn what_goes_over_the_wire_is_fresh_and_uniform() {
    const N: usize = 4096;
    let (field, ring) = (Field::over(Modulus::new(37)).unwrap(), Modulus::new(37));
    let mut seen = std::collections::HashSet::new();
    // Where the sign is known, the bit that the client multiplies is not the result of a carry, but its share's own.
    for (seed, sign) in (1..4).flat_map(|seed| [(seed, Sign::Unknown), (seed + 3, Sign::NonNegative)]) {
        for share in [0, field.prime() - 1] {
            let (client, server, transcript) = record::pair();
            // In blocks no message of bits is as long as one of residues.
            let rounds = Rounds::Blocks;
            let cost = cost::to_field(N, 37, field, sign, rounds) + cost::from_field(N, field, 37, rounds);
            run_over((client, server), &cost.demand, rounds, &mut prg(seed), &|party| {
                to_field(party, &vec![ring.reduce(share); N], ring, field, sign)?;
                from_field(party, &vec![share; N], field, ring)
            })
            .expect("both parties finish");
            let transcript = transcript.lock().expect("no thread panicked");
            for message in &transcript.messages {
                assert!(seen.insert((share, message.payload.clone())), "a message repeats");
                // In words of 38 bits residues show: sixteenths of the field are equally likely.
                let packing = field.packing();
                if message.payload.len() == packing.packed_bytes(N) {
                    let residues = packing.unpack(&message.payload, N).unwrap();
                    let mut counts = [0_f64; 16];
                    residues.iter().for_each(|x| counts[(x * 16 / field.prime()) as usize] += 1.0);
                    let expected = N as f64 / 16.0;
                    let chi_square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
                    assert!(chi_square < 56.0, "{chi_square}");
                }
            }
        }
    }
}
