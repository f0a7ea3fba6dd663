//! What a party sees is masked: on fixed secrets, fresh correlations make every message fresh and every bit balanced,
//! and neither lengths nor rounds depend on the secrets.
//!
//! The secrets here are fixed shares (all zero, or all ones), so that a message whose mask is missing is the same in
//! every run. `a_missing_mask_is_caught` is the control: it runs a protocol on spent correlations and must fail.

use std::collections::HashSet;

use crate::pair::{part, prg, run_over};
use privet_channel::record::{self, Direction};
use privet_gmw::{Error, Party, Piecewise, Rounds, Sign, cost};
use privet_ot::Demand;
use privet_ring::tournament::Ties;
use privet_ring::{Bits, Lines, Modulus};

const N: usize = 4096;
const RING: Modulus = Modulus::new(25);
const WIDE: Modulus = Modulus::new(37);

/// 64 lines over 256 values of [`RING`].
const LINES: Piecewise = Piecewise::new(25, [8, 6], false, false, 37);

/// Messages of one run, with the direction of each.
type Messages = Vec<(Direction, Vec<u8>)>;

fn transcript(
    demand: &Demand,
    rounds: Rounds,
    seed: u64,
    protocol: impl Fn(&mut Party<'_>) -> Result<(), Error> + Sync,
) -> Messages {
    let (client, server, transcript) = record::pair();
    run_over((client, server), demand, rounds, &mut prg(seed), &protocol).expect("both parties finish");
    let transcript = transcript.lock().expect("no thread panicked");
    let mut messages: Messages =
        transcript.messages.iter().map(|message| (message.direction, message.payload.clone())).collect();
    // The two directions of an exchange are recorded in either order.
    messages.sort_by_key(|(direction, _)| *direction == Direction::SecondToFirst);
    messages
}

/// Whether some message of one run comes again in another.
fn repeats(runs: &[Messages]) -> bool {
    let mut seen = HashSet::new();
    runs.iter().flatten().any(|(_, payload)| !seen.insert(payload.clone()))
}

/// Whether ones make up half of every message, within 6 standard deviations.
fn balanced(messages: &Messages) -> bool {
    messages.iter().all(|(_, payload)| {
        let ones: u32 = payload.iter().map(|byte| byte.count_ones()).sum();
        let bits = payload.len() as f64 * 8.0;
        (f64::from(ones) - bits / 2.0).abs() < 3.0 * bits.sqrt()
    })
}

fn check(cost: cost::Cost, rounds: Rounds, protocol: impl Fn(&mut Party<'_>, u64) -> Result<(), Error> + Sync) {
    let shape = |messages: &Messages| -> Vec<(Direction, usize)> {
        messages.iter().map(|(direction, payload)| (*direction, payload.len())).collect()
    };
    let mut shapes = HashSet::new();
    for secret in [0, u64::MAX] {
        let runs: Vec<Messages> =
            (1..3).map(|seed| transcript(&cost.demand, rounds, seed, |party| protocol(party, secret))).collect();
        assert!(!repeats(&runs), "a message repeats on secret {secret:#x}");
        assert!(runs.iter().all(balanced), "a message is not balanced on secret {secret:#x}");
        shapes.extend(runs.iter().map(shape));
    }
    assert_eq!(shapes.len(), 1, "lengths depend on the secrets");
}

fn bits(secret: u64) -> Bits {
    Bits::from_bools(&vec![secret != 0; N])
}

fn values(secret: u64, ring: Modulus) -> Vec<u64> {
    vec![ring.reduce(secret); N]
}

#[test]
fn and_is_masked() {
    check(cost::and(N), Rounds::Linear, |party, secret| privet_gmw::and(party, &bits(secret), &bits(secret)).map(drop));
}

#[test]
fn ands_with_a_common_operand_are_masked() {
    check(cost::and_with_pairs(N, N), Rounds::Linear, |party, secret| {
        let bits = bits(secret);
        privet_gmw::and_with_pairs(party, &bits, &bits, &bits, [&bits, &bits]).map(drop)
    });
}

#[test]
fn private_and_is_masked() {
    check(cost::private_and(N), Rounds::Linear, |party, secret| {
        privet_gmw::private_and(party, &bits(secret)).map(drop)
    });
}

#[test]
fn mux_is_masked() {
    check(cost::mux(N, 25), Rounds::Linear, |party, secret| {
        privet_gmw::mux(party, &bits(secret), &values(secret, RING), RING).map(drop)
    });
}

#[test]
fn relu_is_masked_in_both_depths() {
    for rounds in [Rounds::Linear, Rounds::Log, Rounds::Blocks] {
        check(cost::relu(N, 25, rounds), rounds, |party, secret| {
            privet_gmw::relu(party, &values(secret, RING), RING).map(drop)
        });
    }
}

/// Were correlations of one lane used in another, a message would come twice within one run.
#[test]
fn relu_and_truncation_are_masked_in_lanes() {
    let (n, rounds) = (1 << 15, Rounds::Blocks);
    check(cost::relu(n, 25, rounds), rounds, |party, secret| {
        privet_gmw::relu(party, &vec![RING.reduce(secret); n], RING).map(drop)
    });
    check(cost::truncate_exactly(n, 13, 37, rounds), rounds, |party, secret| {
        privet_gmw::truncate_exactly(party, &vec![WIDE.reduce(secret); n], 13, WIDE).map(drop)
    });
}

/// Parties refuse those of another version, where results would be wrong without a word. This was sent in version 9.
#[test]
fn what_comparisons_send_changes_with_the_version_of_the_protocol() {
    let digest = |n: usize, rounds: Rounds| {
        let demand = cost::relu(n, 25, rounds).demand + cost::truncate_exactly(n, 13, 37, rounds).demand;
        let messages = transcript(&demand, rounds, 1, |party| {
            privet_gmw::relu(party, &vec![1; n], RING)?;
            privet_gmw::truncate_exactly(party, &vec![1; n], 13, WIDE).map(drop)
        });
        // FNV-1a.
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        messages.iter().flat_map(|(_, payload)| payload).fold(0xcbf2_9ce4_8422_2325, step)
    };
    let few = [Rounds::Linear, Rounds::Log, Rounds::Blocks].map(|rounds| digest(200, rounds));
    let sent = (few, digest(1 << 15, Rounds::Blocks));
    let due = ([898167781234865711, 4693165331254286477, 4251151329294560250], 10209318060691524116);
    assert_eq!(sent, due, "if it is not the dealer that changed, raise VERSION in crates/runtime/src/session.rs");
}

#[test]
fn lines_are_masked_in_both_depths() {
    let lines = |rises| Lines::new(&[3; 64], &[5; 64], 2, rises, WIDE);
    for (rounds, to) in [(Rounds::Linear, 37), (Rounds::Log, 37), (Rounds::Linear, 20)] {
        for [nonnegative, rises] in [[false, false], [false, true], [true, false], [true, true]] {
            let wide = Piecewise::new(25, [8, 6], nonnegative, rises, to);
            for of in [wide, wide.narrowed(&lines(rises))] {
                check(cost::piecewise(N, &of, rounds), rounds, |party, secret| {
                    privet_gmw::piecewise(party, &values(secret, RING), &of, &lines(rises)).map(drop)
                });
            }
        }
    }
}

#[test]
fn the_line_that_is_opened_is_uniform() {
    let lines = Lines::new(&[3; 64], &[5; 64], 2, false, WIDE);
    let demand = cost::piecewise(N, &LINES, Rounds::Linear).demand;
    for secret in [0, u64::MAX] {
        let messages = transcript(&demand, Rounds::Linear, 9, |party| {
            privet_gmw::piecewise(party, &values(secret, RING), &LINES, &lines).map(drop)
        });
        let shares = messages.iter().map(|(_, payload)| payload).filter(|payload| payload.len() == 6 * N / 8);
        let [first, second] = shares.collect::<Vec<_>>()[..] else {
            panic!("one message of each party has this length")
        };
        for (first, second) in first.chunks(N / 8).zip(second.chunks(N / 8)) {
            let ones: u32 = first.iter().zip(second).map(|(first, second)| (first ^ second).count_ones()).sum();
            assert!((f64::from(ones) - N as f64 / 2.0).abs() < 3.0 * (N as f64).sqrt(), "{ones} of {N}");
        }
    }
}

#[test]
fn steps_and_trees_are_masked() {
    check(cost::step(N, 25, 37, Rounds::Log), Rounds::Log, |party, secret| {
        privet_gmw::step(party, &values(secret, RING), RING, WIDE).map(drop)
    });
    check(cost::leaves(N / 8, 3, 25, 37, Rounds::Log), Rounds::Log, |party, secret| {
        privet_gmw::leaves(party, &values(secret, RING)[..N / 8 * 7], 3, RING, WIDE).map(drop)
    });
}

#[test]
fn extend_is_masked() {
    for sign in [Sign::NonNegative, Sign::Unknown] {
        check(cost::extend(N, 25, 37, sign, Rounds::Linear), Rounds::Linear, |party, secret| {
            privet_gmw::extend(party, &values(secret, RING), RING, WIDE, sign).map(drop)
        });
    }
}

#[test]
fn exact_truncation_is_masked() {
    // In blocks one of 13 bits lies below three blocks.
    for (rounds, bits) in [(Rounds::Linear, 12), (Rounds::Blocks, 12), (Rounds::Blocks, 13)] {
        check(cost::truncate_exactly(N, bits, 37, rounds), rounds, |party, secret| {
            privet_gmw::truncate_exactly(party, &values(secret, WIDE), bits, WIDE).map(drop)
        });
    }
}

#[test]
fn pooling_is_masked() {
    let groups: Vec<Vec<usize>> = (0..N / 4).map(|i| (4 * i..4 * i + 4).collect()).collect();
    check(
        cost::max_pool(groups.iter().map(|group| (group.len(), 1)), 25, Rounds::Log),
        Rounds::Log,
        |party, secret| privet_gmw::max_pool(party, &values(secret, RING), &groups.clone().into(), RING).map(drop),
    );
    check(cost::argmax(N / 4, 4, 25, 37, Rounds::Log), Rounds::Log, |party, secret| {
        let groups: Vec<Vec<u64>> = values(secret, RING).chunks(4).map(<[u64]>::to_vec).collect();
        privet_gmw::argmax(party, &groups, Ties::First, RING, WIDE).map(drop)
    });
}

#[test]
fn an_opening_to_the_server_is_masked() {
    let mut masks = vec![0; N];
    let runs: Vec<Messages> = (1..3)
        .map(|seed| {
            prg(seed).fill_words(&mut masks);
            WIDE.reduce_all(&mut masks);
            transcript(&Demand::default(), Rounds::Linear, seed, |party| {
                let mask = (!party.is_server()).then_some(masks.as_slice());
                privet_gmw::open_to_server(party.channel, &values(0, WIDE), mask, WIDE).map(drop)
            })
        })
        .collect();
    assert!(!repeats(&runs) && runs.iter().all(balanced));
}

#[test]
fn a_missing_mask_is_caught() {
    // The same correlations twice: what an attacker sees if a stock were handed out again.
    let spent = |seed| {
        transcript(&cost::and(N).demand, Rounds::Linear, seed, |party| {
            privet_gmw::and(party, &bits(0), &bits(0)).map(drop)
        })
    };
    assert!(repeats(&[spent(1), spent(1)]));
    // No mask at all: an opening with a zero mask.
    let zero = [vec![0; N], vec![0; N]];
    let open = || {
        transcript(&Demand::default(), Rounds::Linear, 1, |party| {
            let mask = (!party.is_server()).then(|| part(&zero, party));
            privet_gmw::open_to_server(party.channel, part(&zero, party), mask, WIDE).map(drop)
        })
    };
    assert!(!balanced(&open()));
}

#[test]
fn products_of_shared_values_are_masked() {
    check(cost::multiply(N, RING.bits()), Rounds::Linear, |party, secret| {
        let x = values(secret, RING);
        privet_gmw::multiply(party, &x, &x, RING).map(drop)
    });
    check(cost::square(N, RING.bits()), Rounds::Linear, |party, secret| {
        privet_gmw::square(party, &values(secret, RING), RING).map(drop)
    });
}

#[test]
fn products_with_the_servers_factors_are_masked() {
    check(cost::scale(N, 12, RING.bits()), Rounds::Linear, |party, secret| {
        privet_gmw::scale(party, &values(secret, RING), 12, RING).map(drop)
    });
}

#[test]
fn products_of_rows_are_masked() {
    check(cost::multiply_rows(N / 8, 8, RING.bits()), Rounds::Linear, |party, secret| {
        let y = values(secret, RING);
        privet_gmw::multiply_rows(party, &y[..N / 8], &y, RING).map(drop)
    });
}
