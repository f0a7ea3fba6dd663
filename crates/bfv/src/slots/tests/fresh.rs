//! Every ciphertext, key and reply carries randomness of its own, and as much of it as the security rests on.

use super::{Pair, SLOTS};
use crate::polynomial::Polynomial;
use crate::slots::{Rotation, Sum};

/// Variance of one coefficient of a fresh error.
const VARIANCE: f64 = 10.5;

fn variance(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64
}

fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// Within a quarter: six standard deviations of the variance of 8192 coefficients are a tenth.
fn assert_close(variance: f64, expected: f64) {
    assert!((0.75..1.25).contains(&(variance / expected)), "variance {variance}, expected {expected}");
}

/// `c0 + c1 s` modulo one of the primes, from transformed parts.
fn phase<const L: usize>(pair: &Pair, limb: usize, [c0, c1]: [&Polynomial<L>; 2]) -> Vec<f64> {
    let ntt = &pair.parameters.inner().ntts[limb];
    let mut product = vec![0; SLOTS];
    ntt.multiply_add(&mut product, &[(&c1.0[limb], &pair.secret.negated().0[limb])]);
    let mut phase: Vec<u64> = c0.0[limb].iter().zip(product).map(|(&x, y)| ntt.prime().sub(x, y)).collect();
    ntt.inverse(&mut phase);
    let prime = ntt.prime().value();
    phase.iter().map(|&x| if x > prime / 2 { x as f64 - prime as f64 } else { x as f64 }).collect()
}

fn assert_fresh(parts: [&[u64]; 2], errors: [&[f64]; 2]) {
    let equal = parts[0].iter().zip(parts[1]).filter(|(x, y)| x == y).count();
    assert_eq!(equal, 0, "8192 residues agree by chance with probability 2^-32");
    errors.iter().for_each(|error| assert_close(variance(error), VARIANCE));
    assert_close(variance(&difference(errors[0], errors[1])), 2.0 * VARIANCE);
}

#[test]
fn every_ciphertext_and_public_key_has_a_fresh_error_and_a_fresh_uniform_part() {
    let mut pair = Pair::new(1, &[]);
    let mut messages: Vec<Vec<u8>> = (0..2).map(|_| pair.secret.public_key(&mut pair.prg)).collect();
    for _ in 0..2 {
        let mut bytes = Vec::new();
        pair.secret.encrypt(&[0; SLOTS], &mut pair.prg, &mut bytes).unwrap();
        messages.push(bytes);
    }
    for two in messages.chunks(2) {
        let read =
            |bytes: &Vec<u8>| Polynomial::read_masked(pair.parameters.inner().limbs(), SLOTS, "test", bytes).unwrap();
        let [[b, a], [other_b, other_a]] = [read(&two[0]), read(&two[1])];
        let errors = [phase(&pair, 0, [&b, &a]), phase(&pair, 0, [&other_b, &other_a])];
        assert_fresh([&a.0[0], &other_a.0[0]], [&errors[0], &errors[1]]);
    }
}

#[test]
fn every_digit_of_a_rotation_key_has_a_fresh_error_and_a_fresh_uniform_part() {
    let mut pair = Pair::new(1, &[]);
    let bytes = pair.secret.rotation_key(Rotation::Left(1), &mut pair.prg);
    let parts: Vec<_> = bytes
        .chunks(bytes.len() / 3)
        .map(|part| Polynomial::read_masked(&pair.parameters.inner().ntts, SLOTS, "test", part).unwrap())
        .collect();
    // The message is zero modulo the other digits' primes: the special one is nobody's.
    let errors: Vec<Vec<f64>> = parts.iter().map(|[b, a]| phase(&pair, 3, [b, a])).collect();
    for (i, j) in [(0, 1), (1, 2), (2, 0)] {
        assert_fresh([&parts[i][1].0[3], &parts[j][1].0[3]], [&errors[i], &errors[j]]);
    }
}

#[test]
fn every_reply_has_a_fresh_secret_and_a_fresh_error() {
    let mut pair = Pair::new(1, &[]);
    let mut phases = || {
        let [c0, c1] = Sum::new(&pair.parameters).randomise(&pair.public, &mut pair.prg);
        let [c0, c1] = [c0, c1].map(|part| part.forward(pair.parameters.inner().limbs()));
        phase(&pair, 0, [&c0, &c1])
    };
    let (one, other) = (phases(), phases());
    // e' u + e s for the error e' of the key: without u or e half of it is missing, and what stays the same in two replies
    // takes its half of the difference away.
    let expected = 2.0 * SLOTS as f64 * VARIANCE * 2.0 / 3.0;
    assert_close(variance(&one), expected);
    assert_close(variance(&difference(&one, &other)), 2.0 * expected);
}

#[test]
fn the_second_part_of_a_reply_hides_the_weights_of_a_curious_client() {
    // A client that knows its own `a` divides it out of what comes back: without the encryption of zero it finds the weights.
    let mut pair = Pair::new(1, &[]);
    let input = pair.encrypt(&[1; SLOTS]);
    let weights = crate::slots::Weights::new(&pair.parameters, &[12_345; SLOTS]).unwrap();
    let mut sum = Sum::new(&pair.parameters);
    sum.multiply_add(&[(&input, &weights)]).unwrap();
    let prime = *pair.parameters.inner().ntts[0].prime();
    let constant = |quotient: Vec<u64>| quotient.iter().filter(|&&x| x == 12_345).count();
    let divide = |part: &Polynomial<3>| -> Vec<u64> {
        part.0[0].iter().zip(&input.uniform().0[0]).map(|(&x, &a)| prime.multiply(x, prime.invert(a))).collect()
    };
    assert_eq!(constant(divide(&sum.c1)), SLOTS, "the control gives the weights away");
    let [_, c1] = sum.randomise(&pair.public, &mut pair.prg);
    assert_eq!(constant(divide(&c1.forward(pair.parameters.inner().limbs()))), 0);
}

#[test]
fn every_secret_key_is_another_and_opens_only_its_own() {
    let (mut one, other) = (Pair::new(1, &[]), Pair::seeded(2, 1, &[]));
    let keys = [&one, &other].map(|pair| pair.secret.negated().0[0].clone());
    assert_eq!(keys[0].iter().zip(&keys[1]).filter(|(x, y)| x == y).count(), 0);
    let input = one.encrypt(&[5; SLOTS]);
    let weights = crate::slots::Weights::new(&one.parameters, &[1; SLOTS]).unwrap();
    let mut sum = Sum::new(&one.parameters);
    sum.multiply_add(&[(&input, &weights)]).unwrap();
    let mut reply = Vec::new();
    let server = sum.reply(&one.public, &mut one.prg, &mut reply).unwrap();
    let right = |secret: &crate::slots::SecretKey| {
        let client = secret.open(&reply).unwrap();
        client.iter().zip(&server).filter(|&(a, b)| (a + b) % super::PRIME == 5).count()
    };
    assert_eq!((right(&one.secret), right(&other.secret)), (SLOTS, 0));
}
