//! Merged replies: right results, noise within its bound, hostile keys.

use super::{Session, load, negacyclic, prg};
use crate::noise::merge_bound;
use crate::wire::packed_bytes;
use crate::{Merge, Misuse, Parameters, PeerMisbehaved, PublicKey, Resharing, Sum};

/// Under which `2^levels` replies can be merged, of sums with weights of up to 16 bits.
fn parameters(ring_bits: u32, levels: u32) -> Parameters {
    Parameters::choose(ring_bits, 16, 576, 4096, Resharing::Approximate).unwrap().merging(levels).unwrap()
}

/// Merges so many sums, each of a product with weights of this width at two taps, and checks that all of their results are off by one
/// unit at most.
fn merged_results_are_right(session: &mut Session, levels: u32, count: usize, weight_bits: u32) {
    let parameters = session.parameters.clone();
    let (step, degree) = (1 << levels, parameters.degree());
    let public = session.public.clone();
    let mut merge = Merge::new(&public, levels).unwrap();
    let mut expected = Vec::new();
    for number in 0..count {
        let (message, weights) = (session.message(), session.weights(2, weight_bits));
        let product = negacyclic(&message, &weights);
        merge.add(session.sum(&[(message, weights)])).unwrap();
        let offset = Merge::offset(levels, number);
        expected.extend((0..degree).step_by(step).map(|at| (at + offset, product[at])));
    }
    expected.sort_unstable();
    let positions: Vec<usize> = expected.iter().map(|result| result.0).collect();
    let mut reply = Vec::new();
    let server = merge.finish().reply(&public, &positions, &mut session.prg, &mut reply).unwrap();
    let client = session.secret.open(&reply, &positions).unwrap();
    for ((&(at, expected), client), server) in expected.iter().zip(client).zip(server) {
        let error = client.wrapping_add(server).wrapping_sub(expected) & parameters.ring_mask();
        assert!([0, 1, parameters.ring_mask()].contains(&error), "off by {error} at {at} of {count} merged");
    }
}

#[test]
fn results_of_all_merged_sums_are_right_up_to_one_unit() {
    for (ring_bits, levels) in [(8, 5), (37, 3), (37, 5), (43, 2)] {
        let mut session = Session::new(&parameters(ring_bits, levels), 1);
        for merged in 1..=levels {
            for count in [1, 2, 3, 5, 7, (1 << merged) - 1, 1 << merged] {
                if count <= 1 << merged {
                    merged_results_are_right(&mut session, merged, count, 16);
                }
            }
        }
    }
}

#[test]
fn wide_primes_at_the_larger_degree_merge_as_well() {
    let plain = Parameters::choose(50, 31, 30_000, 4096, Resharing::Approximate).unwrap();
    for levels in [3, 4] {
        let parameters = plain.merging(levels).unwrap();
        assert_eq!(parameters.degree(), 8192);
        let special = parameters.merging_with().unwrap().special().prime().bits();
        assert!(
            parameters.prime_bits().into_iter().chain([special]).all(|bits| bits > 50),
            "beyond the fastest transform"
        );
        let mut session = Session::new(&parameters, 6);
        for count in [1, 3, 1 << levels] {
            merged_results_are_right(&mut session, levels, count, 30);
        }
    }
}

#[test]
fn nothing_merged_is_zero() {
    let parameters = parameters(37, 3);
    let mut session = Session::new(&parameters, 2);
    let mut reply = Vec::new();
    let sum = Merge::new(&session.public, 3).unwrap().finish();
    let server = sum.reply(&session.public, &[0, 9], &mut session.prg, &mut reply).unwrap();
    let client = session.secret.open(&reply, &[0, 9]).unwrap();
    for (client, server) in client.into_iter().zip(server) {
        assert!([0, 1, parameters.ring_mask()].contains(&(client.wrapping_add(server) & parameters.ring_mask())));
    }
}

#[test]
fn what_merging_adds_stays_within_its_bound_and_close_to_its_deviation() {
    // Encryptions of zero carry nothing else: their phase is the noise.
    let parameters = parameters(37, 5);
    let mut session = Session::new(&parameters, 3);
    let special = parameters.merging_with().unwrap().special().prime().value();
    for levels in [1, 3, 5] {
        let mut merge = Merge::new(&session.public, levels).unwrap();
        let zero = crate::Ciphertext::from_bytes(&parameters, &{
            let mut bytes = Vec::new();
            session.secret.encrypt(&[0], &mut session.prg, &mut bytes).unwrap();
            bytes
        })
        .unwrap();
        for _ in 0..1 << levels {
            let mut sum = Sum::new(&parameters);
            let one = crate::Weights::new(&parameters, &[1]).unwrap();
            sum.multiply_add(&[(&zero, &one)]).unwrap();
            merge.add(sum).unwrap();
        }
        let sum = merge.finish();
        let noise =
            super::attacks::noise(&parameters, &super::attacks::phase(&session.secret, sum.c0.clone(), &sum.c1));
        let most = noise.iter().map(|x| x.abs()).fold(0.0, f64::max);
        let deviation = (noise.iter().map(|x| x * x).sum::<f64>() / noise.len() as f64).sqrt();
        let bound = merge_bound(parameters.degree(), parameters.primes(), special, levels);
        assert!(most < bound + 21.0, "{levels} levels: 2^{:.1} of 2^{:.1}", most.log2(), bound.log2());
        // Digits are uniform, so their squares are a third of the largest. The bound is 12 times the deviation of the largest.
        let ratio = bound / deviation;
        assert!((12.0..40.0).contains(&ratio), "{levels} levels: {ratio}");
    }
}

#[test]
fn the_modulus_stays_in_the_table_with_the_special_prime() {
    // Beside 82 bits of modulus the special prime has 24: enough to merge 8 replies.
    let most =
        [(8, 4, 1, 5), (37, 16, 576, 5), (37, 16, 4608, 5), (41, 16, 4608, 3), (44, 12, 768, 1), (50, 16, 4608, 0)];
    for (ring_bits, weight_bits, inner, most) in most {
        let without = Parameters::choose(ring_bits, weight_bits, inner, 4096, Resharing::Approximate).unwrap();
        for levels in [1, 3, 5] {
            let with = without.merging(levels);
            assert_eq!(with.is_some(), levels <= most, "{levels} levels for {ring_bits} bits");
            let Some(with) = with else { continue };
            assert_eq!(with.reply_bits(), without.reply_bits());
            let term = (-without.failure_bits()).exp2() + 2_f64.powi(-100);
            assert!((with.failure_bits() + term.log2()).abs() < 1e-6);
            assert!(with.modulus_bits() <= if with.degree() == 4096 { 106.0 } else { 214.0 });
            assert_eq!((with.levels(), with.degree()), (levels, without.degree()));
            assert!(!with.agrees_with(&without));
        }
    }
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let plain = Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap();
    assert!(plain.merging(0).is_none() && plain.merging(9).is_some() && plain.merging(10).is_none());
    assert!(Parameters::choose(37, 16, 64, 4096, Resharing::Exact).unwrap().merging(3).is_none());
    // 103 of 106 bits leave no room.
    let wide = Parameters::new(4096, [52, 51], 50, load(25_088 << 16), Resharing::Approximate).unwrap();
    assert!(wide.merging(3).is_none());

    let with = plain.merging(3).unwrap();
    let (first, second) = (Session::new(&with, 1), Session::new(&plain, 2));
    for (session, levels, most) in [(&first, 4, 3), (&first, 0, 3), (&second, 1, 0)] {
        let result = Merge::new(&session.public, levels).map(drop);
        assert_eq!(result, Err(Misuse::NoMerging { levels, most }.into()));
    }
    let mut merge = Merge::new(&first.public, 1).unwrap();
    assert_eq!(merge.add(Sum::new(&plain)), Err(Misuse::ParametersDiffer.into()));
    for _ in 0..2 {
        merge.add(Sum::new(&with)).unwrap();
    }
    assert_eq!(merge.add(Sum::new(&with)), Err(Misuse::MergeFull { most: 2 }.into()));
}

#[test]
fn hostile_merging_keys() {
    let parameters = parameters(37, 3);
    let bytes = Session::new(&parameters, 4).secret.public_key(&mut prg(5));
    assert_eq!(bytes.len(), parameters.public_key_bytes());
    for length in [0, parameters.ciphertext_bytes(), bytes.len() - 1, bytes.len() + 1] {
        let mut cut = bytes.clone();
        cut.resize(length, 0);
        let result = PublicKey::from_bytes(&parameters, &cut).map(drop);
        let (expected, actual) = (bytes.len(), length);
        assert_eq!(result, Err(PeerMisbehaved::WrongLength { what: "public key", expected, actual }.into()));
    }
    // The first residue of each part modulo each prime.
    let ntts = &parameters.merging_with().unwrap().ntts;
    let lengths = ntts.each_ref().map(|ntt| packed_bytes(parameters.degree(), ntt.prime().bits()));
    let mut at = parameters.ciphertext_bytes();
    for _ in 0..2 * parameters.levels() {
        at += 16;
        for (ntt, length) in ntts.iter().zip(lengths) {
            let mut large = bytes.clone();
            large[at..at + 8].fill(0xff);
            let result = PublicKey::from_bytes(&parameters, &large).map(drop);
            let expected = PeerMisbehaved::NotReduced { what: "merging key", index: 0, prime: ntt.prime().value() };
            assert_eq!(result, Err(expected.into()));
            at += length;
        }
    }
    assert_eq!(at, bytes.len());
}
