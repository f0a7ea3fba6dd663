//! Shares of products are right up to one unit, and the noise stays where it should.

use proptest::prelude::*;

use super::{Session, load, negacyclic};
use crate::Resharing;
use crate::product::write_reply;
use crate::{Ciphertext, Parameters, Sum, Weights};

/// The signed distance of `a` from `b` in a ring of `bits` bits.
fn distance(a: u64, b: u64, bits: u32) -> i64 {
    (a.wrapping_sub(b) << (64 - bits)) as i64 >> (64 - bits)
}

fn shares_sum_to_the_product(
    session: &mut Session,
    terms: usize,
    taps: usize,
    weight_bits: u32,
    positions: &[usize],
) -> usize {
    let parameters = session.parameters.clone();
    let terms: Vec<_> = (0..terms).map(|_| (session.message(), session.weights(taps, weight_bits))).collect();
    let mut expected = vec![0_u64; parameters.degree()];
    for (message, weights) in &terms {
        let product = negacyclic(message, weights);
        expected.iter_mut().zip(product).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
    }
    let sum = session.sum(&terms);
    let mut reply = Vec::new();
    let server = sum.reply(&session.public, positions, &mut session.prg, &mut reply).unwrap();
    assert_eq!(reply.len(), parameters.reply_bytes(positions.len()));
    let client = session.secret.open(&reply, positions).unwrap();
    let mut off = 0;
    for ((&at, client), server) in positions.iter().zip(client).zip(server) {
        assert!(client <= parameters.ring_mask() && server <= parameters.ring_mask());
        let error = distance(client.wrapping_add(server), expected[at], parameters.ring_bits());
        assert!(error.unsigned_abs() <= parameters.error_bound(), "off by {error}");
        off += usize::from(error != 0);
    }
    off
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_ring_and_weight_width(
        ring_bits in 8_u32..=50, weight_bits in 1_u32..=20, terms in 1_usize..4, taps in 1_usize..12,
        positions in prop::collection::btree_set(0_usize..4096, 0..50), seed: u8,
    ) {
        let parameters = Parameters::choose(ring_bits, weight_bits, terms * taps, 4096, Resharing::Approximate).unwrap();
        let mut session = Session::new(&parameters, seed);
        let positions: Vec<usize> = positions.into_iter().collect();
        shares_sum_to_the_product(&mut session, terms, taps, weight_bits, &positions);
    }
}

#[test]
fn every_coefficient_at_the_usual_widths() {
    for ring_bits in [32, 37, 41] {
        let parameters = Parameters::choose(ring_bits, 16, 4608, 4096, Resharing::Approximate).unwrap();
        assert_eq!(parameters.degree(), 4096);
        let mut session = Session::new(&parameters, 1);
        let positions: Vec<usize> = (0..4096).collect();
        let off = shares_sum_to_the_product(&mut session, 3, 300, 16, &positions);
        // One unit off happens to one coefficient in twenty.
        assert!(off < 400, "{off} of 4096 are off by one");
    }
}

#[test]
fn the_larger_degree() {
    let sum = 300_u64 << 16;
    let parameters = Parameters::new(8192, [50, 50], 41, load(sum), Resharing::Approximate).unwrap();
    let mut session = Session::new(&parameters, 2);
    let positions: Vec<usize> = (0..8192).step_by(3).collect();
    shares_sum_to_the_product(&mut session, 2, 100, 16, &positions);
}

#[test]
fn the_heaviest_weights_that_the_parameters_allow() {
    let parameters = Parameters::choose(37, 16, 4096, 4096, Resharing::Approximate).unwrap();
    let mut session = Session::new(&parameters, 3);
    let terms = [(session.message(), vec![-(1 << 16); 4096])];
    let mut sums = vec![0_u64; 4096];
    // All weights are equal, so each coefficient is a difference of two partial sums of the message.
    let total = terms[0].0.iter().fold(0_u64, |sum, m| sum.wrapping_add(*m));
    let mut before = 0_u64;
    for (sum, m) in sums.iter_mut().zip(&terms[0].0) {
        before = before.wrapping_add(*m);
        *sum = before.wrapping_mul(2).wrapping_sub(total).wrapping_mul((-(1_i64 << 16)) as u64);
    }
    let positions: Vec<usize> = (0..4096).collect();
    let sum = session.sum(&terms);
    let mut reply = Vec::new();
    let server = sum.reply(&session.public, &positions, &mut session.prg, &mut reply).unwrap();
    let client = session.secret.open(&reply, &positions).unwrap();
    for i in 0..4096 {
        let error = distance(client[i].wrapping_add(server[i]), sums[i], 37);
        assert!(error.abs() <= 1, "off by {error}");
    }
}

#[test]
fn typical_noise_is_far_below_the_bound() {
    for (degree, bits, ring_bits) in [(4096, [40, 39], 37), (8192, [50, 50], 37)] {
        let parameters = Parameters::new(degree, bits, ring_bits, load(576 << 16), Resharing::Approximate).unwrap();
        let mut session = Session::new(&parameters, 4);
        let (message, weights) = (session.message(), session.weights(576, 16));
        let expected = negacyclic(&message, &weights);
        let [c0, c1] = session.sum(&[(message, weights)]).randomise(&session.public, &mut session.prg);
        let positions: Vec<usize> = (0..degree).collect();
        let mut reply = Vec::new();
        write_reply(&parameters, &c0, &c1, &positions, &vec![0; degree], &mut reply);
        let guard = parameters.reply_bits() - ring_bits;
        let phases = session.secret.phases(&reply, &positions).unwrap();
        let noise =
            phases.iter().zip(&expected).map(|(phase, m)| distance(*phase, m << guard, parameters.reply_bits()));
        let square: f64 = noise.clone().map(|x| (x * x) as f64).sum();
        let (deviation, largest) = ((square / degree as f64).sqrt(), noise.map(i64::abs).max().unwrap());
        // Rounding errors, uniform in a unit, times a ternary secret: sqrt(N / 18).
        let typical = (degree as f64 / 18.0).sqrt();
        assert!((0.8 * typical..1.2 * typical).contains(&deviation), "deviation {deviation}, typical {typical}");
        assert!(largest < 1 << (guard - 1), "largest {largest} of {}", 1 << guard);
    }
}

#[test]
fn a_key_opens_only_what_was_encrypted_under_it() {
    let parameters = Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap();
    let (mut session, other_session) = (Session::new(&parameters, 5), Session::new(&parameters, 6));
    let positions: Vec<usize> = (0..4096).collect();
    let sum = session.sum(&[(vec![0; 4096], vec![1])]);
    let mut reply = Vec::new();
    let server = sum.reply(&session.public, &positions, &mut session.prg, &mut reply).unwrap();
    let near_zero = |client: Vec<u64>| {
        let errors = client.iter().zip(&server).map(|(x, y)| distance(x.wrapping_add(*y), 0, 37));
        errors.filter(|error| error.abs() <= 1).count()
    };
    assert_eq!(near_zero(session.secret.open(&reply, &positions).unwrap()), 4096);
    assert_eq!(near_zero(other_session.secret.open(&reply, &positions).unwrap()), 0);
}

#[test]
fn a_product_that_is_read_when_it_is_made_is_that_of_a_ciphertext() {
    for ring_bits in [37, 50] {
        let parameters = Parameters::choose(ring_bits, 16, 64, 4096, Resharing::Approximate).unwrap();
        let mut session = Session::new(&parameters, 8);
        let message = session.message();
        let bytes = session.encrypt(&message);
        let weights = Weights::new(&parameters, &session.weights(4096, 9)).unwrap();
        let mut expected = Sum::new(&parameters);
        expected.multiply_add(&[(&Ciphertext::from_bytes(&parameters, &bytes).unwrap(), &weights)]).unwrap();
        let product = Sum::product(&bytes, &[weights.residues(0), weights.residues(1)]).unwrap();
        assert_eq!((&product.c0.0, &product.c1.0), (&expected.c0.0, &expected.c1.0), "{ring_bits} bits");
    }
}

#[test]
fn sums_that_grow_side_by_side_are_those_of_single_products() {
    let parameters = Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap();
    let mut session = Session::new(&parameters, 7);
    // More terms than are reduced at once.
    let ciphertexts: Vec<Vec<Ciphertext>> = (0..2)
        .map(|_| {
            (0..11)
                .map(|_| {
                    let message = session.message();
                    Ciphertext::from_bytes(&parameters, &session.encrypt(&message)).unwrap()
                })
                .collect()
        })
        .collect();
    let weights: Vec<Vec<Weights>> = (0..3)
        .map(|_| (0..11).map(|_| Weights::new(&parameters, &session.weights(4096, 9)).unwrap()).collect())
        .collect();
    let mut sums = vec![Sum::new(&parameters); 6];
    let inputs: Vec<Vec<&Ciphertext>> = ciphertexts.iter().map(|row| row.iter().collect()).collect();
    for prime in 0..2 {
        let rows: Vec<Vec<_>> =
            weights.iter().map(|row| row.iter().map(|weights| weights.residues(prime)).collect()).collect();
        Sum::multiply_add_all(&mut sums, prime, &inputs, &rows).unwrap();
    }
    for (i, sum) in sums.iter().enumerate() {
        let mut expected = Sum::new(&parameters);
        let terms = ciphertexts[i % 2].iter().zip(&weights[i / 2]);
        terms.for_each(|(ciphertext, weights)| expected.multiply_add(&[(ciphertext, weights)]).unwrap());
        assert_eq!((&sum.c0.0, &sum.c1.0), (&expected.c0.0, &expected.c1.0), "sum {i}");
    }
}
