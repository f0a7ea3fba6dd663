//! Every ciphertext, key and reply carries randomness of its own, and as much of it as the security rests on.

use privet_prg::Seed;

use super::Session;
use super::attacks::{noise, phase};
use crate::Resharing;
use crate::polynomial::Polynomial;
use crate::{Ciphertext, Parameters, Sum};

/// Variance of one coefficient of a fresh error.
const VARIANCE: f64 = 10.5;

fn session(seed: u8) -> Session {
    Session::new(&Parameters::choose(37, 16, 576, 4096, Resharing::Approximate).unwrap(), seed)
}

fn variance(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64
}

fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// Within a quarter: six standard deviations of the variance of 4096 coefficients are a seventh.
fn assert_close(variance: f64, expected: f64) {
    assert!((0.75..1.25).contains(&(variance / expected)), "variance {variance}, expected {expected}");
}

#[test]
fn every_ciphertext_has_a_fresh_error_and_a_fresh_uniform_part() {
    let mut session = session(1);
    let message = session.message();
    let bytes = [session.encrypt(&message), session.encrypt(&message)];
    let [one, other] = bytes.map(|bytes| Ciphertext::from_bytes(&session.parameters, &bytes).unwrap());
    let equal = one.c1.0.iter().flatten().zip(other.c1.0.iter().flatten()).filter(|(x, y)| x == y).count();
    assert_eq!(equal, 0, "8192 residues of 39 bits agree by chance with probability 2^-26");
    let ntts = session.parameters.ntts();
    let errors = [one, other]
        .map(|c| noise(&session.parameters, &phase(&session.secret, c.c0.polynomial(ntts), &c.c1.polynomial(ntts))));
    // The half unit of the encoding adds a little.
    errors.each_ref().iter().for_each(|error| assert_close(variance(error), VARIANCE));
    assert_close(variance(&difference(&errors[0], &errors[1])), 2.0 * VARIANCE);
}

#[test]
fn every_public_key_has_a_fresh_error_and_a_fresh_uniform_part() {
    let mut session = session(2);
    let mut key = || {
        let bytes = session.secret.public_key(&mut session.prg);
        let seed = Seed::from_bytes(bytes[..16].try_into().unwrap());
        let parameters = &session.parameters;
        let [b, a] = Polynomial::read_masked(parameters.ntts(), parameters.degree(), "public key", &bytes).unwrap();
        (*seed.as_bytes(), noise(parameters, &phase(&session.secret, b, &a)))
    };
    let (one, other) = (key(), key());
    assert_ne!(one.0, other.0);
    assert_close(variance(&one.1), VARIANCE);
    assert_close(variance(&difference(&one.1, &other.1)), 2.0 * VARIANCE);
}

#[test]
fn every_reply_has_a_fresh_secret_and_a_fresh_error() {
    let mut session = session(3);
    let sum = Sum::new(&session.parameters);
    let mut phases = || {
        let [c0, c1] = sum.clone().randomise(&session.public, &mut session.prg);
        let [c0, c1] = [c0, c1].map(|part| part.forward(session.parameters.ntts()));
        noise(&session.parameters, &phase(&session.secret, c0, &c1))
    };
    let (one, other) = (phases(), phases());
    // e' u + e s for the error e' of the key: what stays the same in two replies, u or e, takes its half of the
    // difference away.
    let expected = 2.0 * session.parameters.degree() as f64 * VARIANCE * 2.0 / 3.0;
    assert_close(variance(&difference(&one, &other)), 2.0 * expected);
}

#[test]
fn every_secret_key_is_another() {
    let keys = [session(4), session(5)].map(|session| Polynomial(session.secret.negated().0.clone()));
    let equal = keys[0].0.iter().flatten().zip(keys[1].0.iter().flatten()).filter(|(x, y)| x == y).count();
    assert_eq!(equal, 0, "8192 transformed values of 39 bits agree by chance with probability 2^-26");
}
