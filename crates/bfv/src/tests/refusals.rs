//! What is insecure, too noisy or ill-formed is refused with its own error.

use super::{Session, load, prg};
use crate::flood::Flood;
use crate::{Ciphertext, Error, Misuse, Parameters, SecretKey, Sum, Weights};
use crate::{INFERENCES_PER_KEY, Resharing};

fn refused<T>(result: Result<T, Error>) -> Misuse {
    match result.map(drop) {
        Err(Error::Misuse(misuse)) => misuse,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn moduli_beyond_the_security_table() {
    for (degree, limit, bits) in
        [(1024, 26, [20, 20]), (2048, 53, [27, 27]), (4096, 106, [54, 53]), (4096, 106, [60, 50])]
    {
        let modulus_bits = bits[0] + bits[1];
        let refusal = refused(Parameters::new(degree, bits, 16, load(1), Resharing::Approximate));
        assert_eq!(refusal, Misuse::Insecure { degree, modulus_bits, limit });
    }
    assert!(Parameters::new(4096, [53, 53], 37, load(1 << 26), Resharing::Approximate).is_ok());
    assert!(Parameters::new(8192, [60, 60], 37, load(1 << 26), Resharing::Approximate).is_ok());
}

#[test]
fn degrees_outside_the_table() {
    for degree in [0, 512, 4095, 16_384, 1 << 20] {
        assert_eq!(
            refused(Parameters::new(degree, [50, 50], 37, load(1), Resharing::Approximate)),
            Misuse::UnknownDegree { degree }
        );
    }
}

#[test]
fn widths_without_primes() {
    for bits in [[50, 51], [61, 30], [40, 19], [0, 0], [u32::MAX, u32::MAX]] {
        let refusal = refused(Parameters::new(8192, bits, 37, load(1), Resharing::Approximate));
        assert!(matches!(refusal, Misuse::NoPrime { .. } | Misuse::Insecure { .. }), "{refusal}");
    }
}

#[test]
fn rings_that_are_too_small_or_large() {
    for ring_bits in [0, 7, 51, 64, 1000] {
        assert_eq!(
            refused(Parameters::choose(ring_bits, 16, 64, 4096, Resharing::Approximate)),
            Misuse::RingWidth { ring_bits }
        );
    }
}

#[test]
fn a_key_serves_as_many_inferences_as_its_loss_is_stated_for() {
    // One result an inference.
    let parameters = Parameters::choose(37, 16, 64, 1, Resharing::Approximate).unwrap();
    let mut session = Session::new(&parameters, 1);
    let limit = usize::try_from(INFERENCES_PER_KEY).unwrap();
    let mut reply = |positions: usize| {
        let (sum, positions) = (Sum::new(&parameters), (0..positions).collect::<Vec<_>>());
        sum.reply(&session.public.clone(), &positions, &mut session.prg, &mut Vec::new()).map(drop)
    };
    assert_eq!(reply(limit - 1), Ok(()));
    // A reply that goes beyond is refused as a whole, also under a copy of the key, and the last result may still leave.
    assert_eq!(refused(reply(2)), Misuse::KeyWornOut { inferences: INFERENCES_PER_KEY });
    assert_eq!(reply(1), Ok(()));
    assert_eq!(refused(reply(1)), Misuse::KeyWornOut { inferences: INFERENCES_PER_KEY });
}

#[test]
fn what_an_inference_loses_is_below_the_promise_whatever_its_size() {
    for results in [1, 1000, 1 << 20, 1 << 27, 1 << 33] {
        let parameters = Parameters::choose(37, 16, 576, results, Resharing::Approximate).unwrap();
        assert!(parameters.loss(1.0) <= 2_f64.powi(-41), "{results} results: {}", parameters.loss(1.0).log2());
        assert_eq!(parameters.loss(1024.0), 1024.0 * parameters.loss(1.0));
    }
    for results in [1, 1000, 1 << 18, 1 << 24] {
        let parameters = Parameters::choose(37, 16, 576, results, Resharing::Exact).unwrap();
        let loss = parameters.loss(1.0).log2();
        assert!((-41.01..=-41.0).contains(&loss), "{results} results: {loss}");
        assert_eq!(parameters.loss(1024.0), 32.0 * parameters.loss(1.0));
    }
    // The control: the width that was enough for one result leaves 2^-17 for as many as a layer may have.
    let (single, deviation) = (Flood::hiding(1e6, 1, 41), 1e6);
    assert!(single.loss(deviation, 1 << 24).log2() > -30.0);
    assert!(((1 << 24) as f64 * 2_f64.powi(-41)).log2() == -17.0, "under one uniform number it would be this");
}

#[test]
fn weights_that_would_drown_the_result() {
    assert!(matches!(
        refused(Parameters::new(4096, [40, 39], 37, load(1 << 32), Resharing::Approximate)),
        Misuse::NoiseTooLarge { .. }
    ));
    for (weight_bits, inner) in [(60, 1), (40, 1 << 20), (64, 1), (63, usize::MAX), (u32::MAX, 1)] {
        assert!(matches!(
            refused(Parameters::choose(50, weight_bits, inner, 4096, Resharing::Approximate)),
            Misuse::NoiseTooLarge { .. }
        ));
    }
}

#[test]
fn whatever_is_chosen_is_in_the_table_and_holds_the_noise() {
    for ring_bits in 8..=50 {
        for weight_bits in [1, 8, 16, 24, 30] {
            for inner in [1, 576, 4608, 25_088] {
                let Ok(parameters) = Parameters::choose(ring_bits, weight_bits, inner, 4096, Resharing::Approximate)
                else {
                    assert!(ring_bits + weight_bits > 60, "{ring_bits}-bit ring, {weight_bits}-bit weights");
                    continue;
                };
                let bits: u32 = parameters.prime_bits().iter().sum();
                assert!(bits <= if parameters.degree() == 4096 { 106 } else { 214 });
                assert!(parameters.failure_bits() >= 53.0);
                assert_eq!(parameters.weight_sum(), (inner as u64) << weight_bits);
            }
        }
    }
}

#[test]
fn positions_that_do_not_rise_or_stay_inside() {
    let parameters = Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap();
    let mut session = Session::new(&parameters, 1);
    for (positions, position) in
        [(vec![3, 3], 3), (vec![5, 4], 4), (vec![4096], 4096), (vec![0, usize::MAX], usize::MAX)]
    {
        let expected = Misuse::Position { position, degree: 4096 };
        let sum = Sum::new(&parameters);
        assert_eq!(refused(sum.reply(&session.public, &positions, &mut session.prg, &mut Vec::new())), expected);
        assert_eq!(refused(session.secret.open(&[], &positions)), expected);
    }
}

#[test]
fn lengths_and_parameters_that_do_not_match() {
    let parameters = Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap();
    let other_parameters = Parameters::choose(38, 16, 64, 4096, Resharing::Approximate).unwrap();
    let (mut session, mut other_session) = (Session::new(&parameters, 1), Session::new(&other_parameters, 2));
    let long = Misuse::WrongLength { what: "message", expected: 4096, actual: 4097 };
    assert_eq!(refused(session.secret.encrypt(&[0; 4097], &mut prg(1), &mut Vec::new())), long);
    let long = Misuse::WrongLength { what: "weights", expected: 4096, actual: 4097 };
    assert_eq!(refused(Weights::new(&parameters, &[0; 4097])), long);
    let ciphertext = Ciphertext::from_bytes(&other_parameters, &other_session.encrypt(&[1])).unwrap();
    let weights = Weights::new(&parameters, &[1]).unwrap();
    let mut sum = Sum::new(&parameters);
    assert_eq!(refused(sum.multiply_add(&[(&ciphertext, &weights)])), Misuse::ParametersDiffer);
    assert_eq!(
        refused(sum.reply(&other_session.public, &[0], &mut session.prg, &mut Vec::new())),
        Misuse::ParametersDiffer
    );
    let few = Misuse::WrongLength { what: "sums", expected: 2, actual: 1 };
    assert_eq!(refused(Sum::multiply_add_all(&mut [Sum::new(&parameters)], 0, &[vec![], vec![]], &[vec![]])), few);
    let none = Misuse::WrongLength { what: "sums", expected: 1, actual: 0 };
    assert_eq!(refused(Sum::multiply_add_all(&mut [], 0, &[vec![]], &[vec![]])), none);
    // Terms that have no other factor: left out without a word, or a panic.
    let ciphertext = Ciphertext::from_bytes(&parameters, &session.encrypt(&[1])).unwrap();
    for (ciphertexts, terms) in [(vec![], vec![weights.residues(0)]), (vec![&ciphertext], vec![])] {
        let uneven = Misuse::WrongLength { what: "terms", expected: ciphertexts.len(), actual: terms.len() };
        assert_eq!(refused(Sum::multiply_add_all(&mut [Sum::new(&parameters)], 0, &[ciphertexts], &[terms])), uneven);
    }
    let other_prime =
        Sum::multiply_add_all(&mut [Sum::new(&parameters)], 0, &[vec![&ciphertext]], &[vec![weights.residues(1)]]);
    assert_eq!(refused(other_prime), Misuse::ParametersDiffer);
    let (bytes, foreign) = (session.encrypt(&[1]), Weights::new(&other_parameters, &[1]).unwrap());
    for pair in [[weights.residues(1), weights.residues(0)], [weights.residues(0), foreign.residues(1)]] {
        assert_eq!(refused(Sum::product(&bytes, &pair)), Misuse::ParametersDiffer);
    }
}

#[test]
fn equal_choices_agree() {
    let (a, b) = (
        Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap(),
        Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap(),
    );
    assert!(a.agrees_with(&b));
    let secret = SecretKey::generate(&a, &mut prg(1));
    assert!(secret.parameters().agrees_with(&b));
}
