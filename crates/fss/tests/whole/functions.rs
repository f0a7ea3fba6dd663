//! Tables and splines over a channel.

use privet_fss::{Gate, Lookup, Piece, Spline};
use privet_ring::Modulus;
use proptest::prelude::*;

use crate::support::{prg, run_gate};

fn check_lookup(wide: u32, table: &[u64], values: &[u64], seed: u64) {
    let gate = Lookup::new(wide, table.to_vec());
    let (input, output) = (Modulus::new(table.len().ilog2()), Modulus::new(wide));
    let [client, server] =
        run_gate(&gate, values, input, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    let expected: Vec<u64> = values.iter().map(|x| output.reduce(table[*x as usize])).collect();
    assert_eq!(output.add(&client, &server), expected);
}

fn check_spline(bits: u32, pieces: &[Piece], values: &[u64], seed: u64) {
    let (ring, gate) = (Modulus::new(bits), Spline::new(bits, pieces.to_vec()));
    let [client, server] =
        run_gate(&gate, values, ring, &mut prg(seed), |party, seed, body, x| gate.evaluate(party, seed, body, x));
    let value = |x: &u64| {
        let [c0, c1, c2] = pieces.iter().rfind(|piece| piece.start <= *x).expect("a piece").coefficients;
        ring.reduce(c0.wrapping_add(c1.wrapping_mul(*x)).wrapping_add(c2.wrapping_mul(x.wrapping_mul(*x))))
    };
    assert_eq!(ring.add(&client, &server), values.iter().map(value).collect::<Vec<_>>());
}

#[test]
fn keys_have_the_bytes_of_their_formulas() {
    let table = Lookup::new(37, vec![0; 4096]).key_bytes(64);
    assert_eq!([table.words, table.corrections], [16 + 64 * 6 * 16, 8 * 2 * 37]);
    let pieces = vec![Piece { start: 0, coefficients: [0; 3] }];
    let spline = Spline::new(37, pieces).key_bytes(64);
    assert_eq!([spline.words, spline.corrections], [16 + 64 * 37 * (16 + 3 * 5), 8 * 2 * 37]);
}

#[test]
fn every_entry_of_every_size_is_found() {
    for bits in 1..=12_u32 {
        let mut prg = prg(u64::from(bits));
        let table: Vec<u64> = (0..1 << bits).map(|_| prg.word()).collect();
        let values: Vec<u64> = (0..(4096_u32 >> bits).max(1)).flat_map(|_| 0..1 << bits).collect();
        for wide in [1, 37, 64] {
            check_lookup(wide, &table, &values, 5);
        }
    }
}

#[test]
fn every_value_of_small_rings_is_on_its_piece() {
    for bits in 1..=8_u32 {
        let mut prg = prg(u64::from(bits));
        let values: Vec<u64> = (0..(4096_u32 >> bits)).flat_map(|_| 0..1 << bits).collect();
        for knots in [0, 1, 3] {
            let mut starts: Vec<u64> = (0..knots).map(|_| prg.below(1 << bits)).chain([0]).collect();
            starts.sort_unstable();
            starts.dedup();
            let pieces: Vec<Piece> = starts
                .into_iter()
                .map(|start| Piece { start, coefficients: [0; 3].map(|_: u64| prg.word()) })
                .collect();
            check_spline(bits, &pieces, &values, 6);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn splines_are_right_on_any_ring(
        bits in 1_u32..=64, words in prop::collection::vec(any::<u64>(), 1..60), starts in prop::collection::btree_set(any::<u64>(), 0..6),
        seed: u64,
    ) {
        let ring = Modulus::new(bits);
        let mut prg = prg(seed);
        let mut starts: Vec<u64> = starts.into_iter().map(|start| ring.reduce(start)).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        let pieces: Vec<Piece> =
            starts.iter().map(|start| Piece { start: *start, coefficients: [0; 3].map(|_: u64| prg.word()) }).collect();
        // Values on both sides of every knot.
        let knots = starts.iter().flat_map(|start| [*start, start.wrapping_sub(1)]);
        let values: Vec<u64> = words.into_iter().chain(knots).map(|word| ring.reduce(word)).collect();
        check_spline(bits, &pieces, &values, seed);
    }
}
