//! Bytes, rounds and correlations on the wire equal the formulas of `cost`.

use std::ops::Add;

use crate::pair::{half, part, prg, run, share, share_bits};
use privet_gmw::{Error, Party, Piecewise, Rounds, Sign, cost};
use privet_ot::{Demand, Role, TableCounts};
use privet_ring::tournament::Ties;
use privet_ring::{Lines, Modulus};

/// Runs `protocol` on exactly the demand of `expected` and compares the wire with the formula.
fn check(expected: cost::Cost, rounds: Rounds, protocol: impl Fn(&mut Party<'_>) -> Result<(), Error> + Sync) {
    let [client, server] = run(&expected.demand, rounds, &mut prg(3), |party| {
        protocol(party)?;
        assert_eq!(party.stock.left(), Default::default(), "the formula asks for more than is used");
        Ok(party.channel.cost())
    });
    assert_eq!((client.bytes_sent, client.bytes_received), (expected.client_bytes, expected.server_bytes));
    assert_eq!((server.bytes_sent, server.bytes_received), (expected.server_bytes, expected.client_bytes));
    assert_eq!(client.rounds.max(server.rounds), expected.rounds);
}

const ROUNDS: [Rounds; 3] = [Rounds::Linear, Rounds::Log, Rounds::Blocks];

const SIGNS: [Sign; 2] = [Sign::NonNegative, Sign::Unknown];

#[test]
fn formulas_hold_on_the_wire() {
    for n in [1, 7, 64, 100, 200, 1000] {
        let prg = &mut prg(n as u64);
        let bits = share_bits(&vec![true; n], prg);
        check(cost::and(n), Rounds::Linear, |party| {
            privet_gmw::and(party, half(&bits, party), half(&bits, party)).map(drop)
        });
        check(cost::and_with_pairs(n, n), Rounds::Linear, |party| {
            let bits = half(&bits, party);
            privet_gmw::and_with_pairs(party, bits, bits, bits, [bits, bits]).map(drop)
        });
        check(cost::private_and(n), Rounds::Linear, |party| {
            privet_gmw::private_and(party, half(&bits, party)).map(drop)
        });
        for (width, rounds) in [25, 37, 26, 18].into_iter().flat_map(|width| ROUNDS.map(|rounds| (width, rounds))) {
            let ring = Modulus::new(width);
            let x = share(&vec![-3; n], ring, prg);
            check(cost::carry(n, width - 1, rounds), rounds, |party| {
                let summands: Vec<u64> = half(&x, party).iter().map(|x| x >> 1).collect();
                privet_gmw::carry(party, &summands, width - 1).map(drop)
            });
            check(cost::relu(n, width, rounds), rounds, |party| {
                privet_gmw::relu(party, part(&x, party), ring).map(drop)
            });
            check(cost::truncate_exactly(n, 12, width, rounds), rounds, |party| {
                privet_gmw::truncate_exactly(party, part(&x, party), 12, ring).map(drop)
            });
            check(cost::truncate_guarded(n, 12, width, rounds), rounds, |party| {
                privet_gmw::truncate_guarded(party, part(&x, party), 12, ring).map(drop)
            });
            for (index_bits, sides, to) in [(6, 0, 30), (8, 1, 30), (8, 2, 41), (6, 3, 41), (6, 3, 18)] {
                let [nonnegative, rises] = [sides & 1 == 1, sides & 2 == 2];
                let wide = Piecewise::new(width, [13, index_bits], nonnegative, rises, to);
                let [slopes, offsets] = [vec![3; 1 << index_bits], vec![5; 1 << index_bits]];
                let lines = Lines::new(&slopes, &offsets, 13 - index_bits, rises, Modulus::new(41));
                for of in [wide, wide.narrowed(&lines)] {
                    check(cost::piecewise(n, &of, rounds), rounds, |party| {
                        privet_gmw::piecewise(party, part(&x, party), &of, &lines).map(drop)
                    });
                }
            }
            check(cost::mux(n, width), rounds, |party| {
                privet_gmw::mux(party, half(&bits, party), part(&x, party), ring).map(drop)
            });
            check(cost::step(n, width, 41, rounds), rounds, |party| {
                privet_gmw::step(party, part(&x, party), ring, Modulus::new(41)).map(drop)
            });
            for depth in [1, 2, 4] {
                let nodes = share(&vec![-3; n * ((1 << depth) - 1)], ring, prg);
                check(cost::leaves(n, depth, width, 41, rounds), rounds, |party| {
                    privet_gmw::leaves(party, part(&nodes, party), depth, ring, Modulus::new(41)).map(drop)
                });
            }
            let groups: Vec<Vec<usize>> = (0..n).map(|i| (0..=i % 9).map(|j| (i + j) % n).collect()).collect();
            check(cost::max_pool(groups.iter().map(|group| (group.len(), 1)), width, rounds), rounds, |party| {
                privet_gmw::max_pool(party, part(&x, party), &groups.clone().into(), ring).map(drop)
            });
            check(cost::argmax(1, n, width, 41, rounds), rounds, |party| {
                let group = [half(&x, party).clone()];
                privet_gmw::argmax(party, &group, Ties::First, ring, Modulus::new(41)).map(drop)
            });
        }
        let x = share(&vec![-3; n], Modulus::new(25), prg);
        for (sign, rounds) in ROUNDS.into_iter().flat_map(|rounds| SIGNS.map(|sign| (sign, rounds))) {
            check(cost::extend(n, 25, 37, sign, rounds), rounds, |party| {
                privet_gmw::extend(party, part(&x, party), Modulus::new(25), Modulus::new(37), sign).map(drop)
            });
        }
        check(cost::open(n, 25), Rounds::Linear, |party| {
            privet_gmw::open(party.channel, part(&x, party), Modulus::new(25)).map(drop)
        });
        check(cost::open_to_client(n, 25), Rounds::Linear, |party| {
            privet_gmw::open_to_client(party.channel, party.role, part(&x, party), Modulus::new(25)).map(drop)
        });
        check(cost::open_to_server(n, 25), Rounds::Linear, |party| {
            let mask = (!party.is_server()).then(|| vec![0; n]);
            privet_gmw::open_to_server(party.channel, part(&x, party), mask.as_deref(), Modulus::new(25)).map(drop)
        });
    }
}

#[test]
fn comparisons_in_lanes_cost_what_the_formulas_say() {
    let (n, ring, prg) = (50_003, Modulus::new(26), &mut prg(6));
    let x = share(&vec![-3; n], ring, prg);
    check(cost::relu(n, 26, Rounds::Blocks), Rounds::Blocks, |party| {
        privet_gmw::relu(party, part(&x, party), ring).map(drop)
    });
    check(cost::truncate_exactly(n, 13, 26, Rounds::Blocks), Rounds::Blocks, |party| {
        privet_gmw::truncate_exactly(party, part(&x, party), 13, ring).map(drop)
    });
    let of = Piecewise::new(26, [13, 6], false, true, 30);
    let lines = Lines::new(&[3; 64], &[5; 64], 7, true, Modulus::new(41));
    check(cost::piecewise(n, &of, Rounds::Blocks), Rounds::Blocks, |party| {
        privet_gmw::piecewise(party, part(&x, party), &of, &lines).map(drop)
    });
    // Lanes add frames alone, and neither rounds nor correlations.
    let [few, many] = [1 << 14, 1 << 16].map(|n| cost::carry(n, 25, Rounds::Blocks));
    assert_eq!((few.rounds, 4 * few.client_bytes), (many.rounds, many.client_bytes));
    assert_eq!((0..4).map(|_| few.demand).fold(Demand::NONE, Add::add), many.demand);
}

#[test]
fn a_relu_of_25_bits_costs_what_the_page_says() {
    // docs/reference/protocols/gmw.md
    let [linear, log, blocks] = ROUNDS.map(|rounds| cost::relu(1 << 16, 25, rounds));
    assert_eq!([linear.rounds, log.rounds, blocks.rounds], [14, 7, 5]);
    let tables = |cost: cost::Cost| cost.demand.tables_sent_by_server + cost.demand.tables_sent_by_client;
    assert_eq!(tables(linear), TableCounts { eights: 12 << 16, sixteens: 0 });
    assert_eq!(tables(blocks), TableCounts { eights: 0, sixteens: 7 << 16 });
    assert_eq!((log.demand.private_ands >> 16, log.demand.triples >> 16), (24, 5));
    assert_eq!((log.demand.paired_triples >> 16, blocks.demand.triples >> 16), (18, 1));
    assert_eq!(blocks.demand.paired_triples >> 16, 2);
    // docs/reference/protocols/compare.md: OTs without the multiplexer's, both directions and either.
    let ots = |rounds| {
        let demand = cost::carry(1 << 16, 24, rounds).demand;
        [Role::Server, Role::Client].map(|sender| demand.ots(sender) >> 16)
    };
    assert_eq!(ROUNDS.map(ots), [[18, 18], [47, 23], [17, 17]]);
    // docs/reference/protocols/truncate.md: 13 bits in blocks, 123 on the wire.
    let thirteen = cost::carry(1 << 16, 13, Rounds::Blocks);
    assert_eq!([Role::Server, Role::Client].map(|sender| thirteen.demand.ots(sender) >> 16), [9, 8]);
    assert_eq!(
        (thirteen.rounds, thirteen.client_bytes, thirteen.client_bytes),
        (3, (123 << 12) + 4 * 3 * 5, thirteen.server_bytes)
    );
    // docs/reference/protocols/relu.md
    assert_eq!((linear.client_bytes, log.client_bytes, blocks.client_bytes), (704_582, 933_923, 1_130_596));
}

#[test]
fn products_of_shared_values_cost_what_the_formula_says() {
    for (n, width) in [(1, 1), (7, 25), (100, 37), (1, 64)] {
        let ring = Modulus::new(width);
        let x = share(&vec![-3; n], ring, &mut prg(5));
        check(cost::multiply(n, width), Rounds::Linear, |party| {
            privet_gmw::multiply(party, part(&x, party), part(&x, party), ring).map(drop)
        });
        check(cost::square(n, width), Rounds::Linear, |party| {
            privet_gmw::square(party, part(&x, party), ring).map(drop)
        });
        for factor_bits in [1, 12, 64] {
            check(cost::scale(n, factor_bits, width), Rounds::Linear, |party| {
                privet_gmw::scale(party, part(&x, party), factor_bits, ring).map(drop)
            });
        }
        for row in [1, 9] {
            let rows = share(&vec![-3; n * row], ring, &mut prg(6));
            check(cost::multiply_rows(n, row, width), Rounds::Linear, |party| {
                privet_gmw::multiply_rows(party, part(&x, party), part(&rows, party), ring).map(drop)
            });
        }
    }
}
