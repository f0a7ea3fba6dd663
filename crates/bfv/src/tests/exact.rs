//! Exact resharing: shares are right to the last bit, and the flood hides what the phase carries.

use proptest::prelude::*;

use super::attacks::{best, chi_square, noise, phase, regress, scene_with, worst};
use super::{Session, negacyclic};
use crate::product::{hide, share, write_reply};
use crate::{Misuse, Parameters, Resharing};

fn exact(ring_bits: u32, weight_bits: u32, inner: usize) -> Parameters {
    Parameters::choose(ring_bits, weight_bits, inner, 4096, Resharing::Exact).unwrap()
}

/// Multiplies, replies, opens, and adds both parties' shares.
fn opened(session: &mut Session, terms: &[(Vec<u64>, Vec<i32>)], positions: &[usize]) -> Vec<u64> {
    let sum = session.sum(terms);
    let mut reply = Vec::new();
    let server = sum.reply(&session.public, positions, &mut session.prg, &mut reply).unwrap();
    assert_eq!(reply.len(), session.parameters.reply_bytes(positions.len()));
    let client = session.secret.open(&reply, positions).unwrap();
    let mask = session.parameters.ring_mask();
    client.iter().zip(&server).map(|(x, y)| x.wrapping_add(*y) & mask).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn shares_add_up_exactly_in_any_ring(
        ring_bits in 8_u32..=45, weight_bits in 1_u32..=20, terms in 1_usize..4, taps in 1_usize..12,
        positions in prop::collection::btree_set(0_usize..4096, 0..50), seed: u8,
    ) {
        let parameters = exact(ring_bits, weight_bits, terms * taps);
        let mut session = Session::new(&parameters, seed);
        let positions: Vec<usize> = positions.into_iter().collect();
        let terms: Vec<_> = (0..terms).map(|_| (session.message(), session.weights(taps, weight_bits))).collect();
        let results = opened(&mut session, &terms, &positions);
        for (&at, result) in positions.iter().zip(results) {
            let expected = terms.iter().map(|(m, w)| negacyclic(m, w)[at]).fold(0, u64::wrapping_add);
            prop_assert_eq!(result, expected & parameters.ring_mask());
        }
    }
}

#[test]
fn shares_add_up_exactly_at_the_heaviest_weights() {
    for (weight_bits, inner) in [(16, 4096), (20, 4096), (16, 576)] {
        let parameters = exact(37, weight_bits, inner);
        let (degree, weight) = (parameters.degree(), -(1 << weight_bits));
        let mut session = Session::new(&parameters, 3);
        for _ in 0..4 {
            let mut weights = vec![0; degree];
            weights[..inner].fill(weight);
            let message = session.message();
            let expected = negacyclic(&message, &weights);
            let results = opened(&mut session, &[(message, weights)], &(0..degree).collect::<Vec<_>>());
            let off = results.iter().zip(&expected).filter(|(x, y)| (**x ^ **y) & parameters.ring_mask() != 0).count();
            assert_eq!(off, 0, "{off} results of {degree} are wrong at {inner} weights of {weight_bits} bits");
        }
    }
}

#[test]
fn the_worst_flood_and_the_worst_rounding_together_stay_in_the_guard_range() {
    for (ring_bits, weight_bits, inner) in [(37, 16, 576), (37, 16, 25_088), (45, 12, 64), (8, 4, 1)] {
        let parameters = exact(ring_bits, weight_bits, inner);
        let modulus: u128 = parameters.primes().map(u128::from).iter().product();
        let sum = u128::from(parameters.weight_sum());
        // Weights times errors and encodings, the encryption of zero, the share's half unit, twice each.
        let product = 43 * sum + 42 * 2 * parameters.degree() as u128 + 1;
        let scaled = (product + 2 * parameters.flood().most()) / 2 / (modulus >> parameters.reply_bits()) + 1;
        let unit = 2.0_f64.powi(parameters.reply_bits() as i32 - 61);
        let rounded = ((parameters.degree() + 1) as f64 * (0.5 + unit)).ceil() as u128;
        assert!(scaled + rounded < 1 << (parameters.reply_bits() - ring_bits - 1), "{parameters:?}");
    }
}

#[test]
fn rings_that_leave_no_room_are_refused() {
    for ring_bits in [46, 50] {
        let result = Parameters::choose(ring_bits, 8, 1, 4096, Resharing::Exact).map(drop);
        assert_eq!(result, Err(Misuse::ExactRingWidth { ring_bits, limit: 45 }.into()));
    }
    let both =
        [Resharing::Approximate, Resharing::Exact].map(|resharing| Parameters::choose(37, 16, 64, 4096, resharing));
    let [Ok(approximate), Ok(exact)] = both else { panic!("both fit") };
    assert!(!approximate.agrees_with(&exact));
    assert_eq!((approximate.error_bound(), exact.error_bound()), (1, 0));
}

/// The probability that three uniform numbers below 1 add up to less than `x`.
fn sums_below(x: f64) -> f64 {
    match x {
        x if x <= 0.0 => 0.0,
        x if x < 1.0 => x.powi(3) / 6.0,
        x if x < 2.0 => (-2.0 * x.powi(3) + 9.0 * x * x - 9.0 * x + 3.0) / 6.0,
        x if x < 3.0 => 1.0 - (3.0 - x).powi(3) / 6.0,
        _ => 1.0,
    }
}

#[test]
fn the_noise_of_the_phase_gives_the_weights_only_without_a_flood() {
    let mut scene = scene_with(&exact(37, 16, 576), 3);
    let parameters = scene.session.parameters.clone();
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let [mut c0, c1] = scene.randomised();
    share(&parameters, &mut c0, &positions, &mut scene.session.prg);
    let c1 = c1.forward(parameters.ntts());
    let seen = |c0: &crate::polynomial::Polynomial| {
        noise(&parameters, &phase(&scene.session.secret, c0.clone().forward(parameters.ntts()), &c1))
    };
    let control = seen(&c0);
    let recovered = regress(&scene.error, &control);
    assert!(worst(&scene, &recovered) < 16.0, "the attack works on the control: {recovered:?}");

    let mut reply_c0 = c0.clone();
    hide(&parameters, &mut reply_c0, &positions, &mut crate::tests::prg(9));
    let flooded = seen(&reply_c0);
    // Weights of 16 bits would have to show in noise of 70 bits.
    assert!(best(&scene, &regress(&scene.error, &flooded)) > 1e12);

    // What is left is the flood: a sum of three uniform numbers, far beyond the noise, and uncorrelated to it.
    let unit = 2.0 * parameters.flood().most() as f64 / 3.0;
    let bins = |values: &[f64]| {
        chi_square(values.iter().map(|x| (16.0 * sums_below(x / unit + 1.5)).clamp(0.0, 15.0) as usize))
    };
    assert!(bins(&flooded) < 56.0 && bins(&control) > 1000.0);
    let correlation = |x: &[f64], y: &[f64]| {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(x, y) / (dot(x, x) * dot(y, y)).sqrt()
    };
    assert!(correlation(&control, &control) > 0.99);
    // Of 4096 independent pairs: deviation 1/64, beyond 5.5 of them once in twenty million.
    assert!(correlation(&flooded, &control).abs() < 5.5 / 64.0);
}

#[test]
fn exact_replies_and_shares_are_fresh_and_uniform_even_for_weights_of_zero() {
    let parameters = exact(37, 16, 576);
    let mut session = Session::new(&parameters, 5);
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let mut run = || {
        let sum = session.sum(&[(vec![0; 4096], vec![0])]);
        let mut reply = Vec::new();
        let server = sum.reply(&session.public, &positions, &mut session.prg, &mut reply).unwrap();
        let client = session.secret.open(&reply, &positions).unwrap();
        (server, client)
    };
    let (first, second) = (run(), run());
    for share in [&first.0, &first.1] {
        assert!(chi_square(share.iter().map(|x| (x >> 33) as usize)) < 56.0);
    }
    assert!(first.0.iter().zip(&second.0).filter(|(x, y)| x == y).count() < 2, "shares repeat");
}

#[test]
fn the_guard_bits_of_an_exact_reply_hold_a_flood() {
    let mut scene = scene_with(&exact(37, 16, 576), 6);
    let parameters = scene.session.parameters.clone();
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let unused = 64 - (parameters.reply_bits() - parameters.ring_bits());
    // Deviation of what the client sees beside its share, in units of the reply.
    let deviation = |session: &Session, reply: &[u8]| {
        let phases = session.secret.phases(reply, &positions).unwrap();
        let squares = phases.iter().map(|phase| (((phase << unused) as i64 >> unused) as f64).powi(2));
        (squares.sum::<f64>() / positions.len() as f64).sqrt()
    };

    let [mut c0, c1] = scene.randomised();
    share(&parameters, &mut c0, &positions, &mut scene.session.prg);
    let mut control = Vec::new();
    write_reply(&parameters, &c0, &c1, &positions, &vec![0; positions.len()], &mut control);
    assert!(deviation(&scene.session, &control) < 30.0, "the control carries rounding errors alone");

    let modulus: f64 = parameters.primes().iter().map(|&p| p as f64).product();
    let flood = parameters.flood().most() as f64 / 3.0 * f64::from(parameters.reply_bits()).exp2() / modulus;
    let reply = scene.reply(&positions);
    let measured = deviation(&scene.session, &reply);
    assert!((0.95..1.05).contains(&(measured / flood)), "deviation {measured}, expected {flood}");
}
