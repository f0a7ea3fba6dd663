//! What a client could compute from a reply that lacks one of its two protections, and cannot from a real one.
//!
//! Each attack runs first against a control that lacks the protection, where it must succeed.

use super::Session;
use crate::Resharing;
use crate::encode::{encode, switch};
use crate::polynomial::Polynomial;
use crate::product::write_reply;
use crate::sample;
use crate::wire::{packed_bytes, unpack};
use crate::zq::Prime;
use crate::{Ciphertext, Parameters, SecretKey, Sum, Weights};
use privet_prg::Seed;

/// Positions of the weights that are not zero: a 3 x 3 kernel over rows of 58. Packing is public.
const TAPS: [usize; 9] = [0, 1, 2, 58, 59, 60, 116, 117, 118];

/// A client with its own ciphertext, and the server's sum over it.
pub(super) struct Scene {
    pub(super) session: Session,
    weights: Vec<i32>,
    /// The uniform part of the client's ciphertext, transformed.
    uniform: Polynomial,
    /// The exact error of the client's ciphertext, which it can compute from its key.
    pub(super) error: Vec<f64>,
    sum: Sum,
}

fn scene(seed: u8) -> Scene {
    scene_with(&Parameters::choose(37, 16, 576, 4096, Resharing::Approximate).unwrap(), seed)
}

pub(super) fn scene_with(parameters: &Parameters, seed: u8) -> Scene {
    let mut session = Session::new(parameters, seed);
    let mut weights = vec![0; parameters.degree()];
    let taps = session.weights(TAPS.len(), 16);
    TAPS.iter().zip(taps).for_each(|(&at, w)| weights[at] = w);
    let message = session.message();
    let bytes = session.encrypt(&message);
    let ciphertext = Ciphertext::from_bytes(parameters, &bytes).unwrap();
    let mut sum = Sum::new(parameters);
    sum.multiply_add(&[(&ciphertext, &Weights::new(parameters, &weights).unwrap())]).unwrap();
    let seed = Seed::from_bytes(bytes[..16].try_into().unwrap());
    let uniform = Polynomial(sample::uniform(&seed, parameters.ntts(), parameters.degree()));
    let [c0, c1] = [&ciphertext.c0, &ciphertext.c1].map(|part| part.polynomial(parameters.ntts()));
    let error = noise(parameters, &phase(&session.secret, c0, &c1));
    Scene { session, weights, uniform, error, sum }
}

impl Scene {
    /// The server's sum, before an encryption of zero.
    pub(super) fn sum(&self) -> Sum {
        self.sum.clone()
    }

    /// The sum with an encryption of zero, in coefficients, as [`Sum::reply`] makes it.
    pub(super) fn randomised(&mut self) -> [Polynomial; 2] {
        self.sum.clone().randomise(&self.session.public, &mut self.session.prg)
    }

    pub(super) fn reply(&mut self, positions: &[usize]) -> Vec<u8> {
        let mut reply = Vec::new();
        self.sum.clone().reply(&self.session.public, positions, &mut self.session.prg, &mut reply).unwrap();
        reply
    }
}

/// `c0 + c1 s` in coefficients, from transformed parts.
pub(super) fn phase(secret: &SecretKey, c0: Polynomial, c1: &Polynomial) -> Polynomial {
    let parameters = secret.parameters();
    let minus = Polynomial(std::array::from_fn(|i| {
        let prime = parameters.ntts()[i].prime();
        c1.0[i].iter().map(|&x| prime.negate(x)).collect()
    }));
    let mut sum = c0;
    sum.multiply_add(parameters.ntts(), &[(&minus, secret.negated())]);
    sum.inverse(parameters.ntts())
}

/// How far each coefficient of a phase is from the nearest multiple of `q / 2^l`.
pub(super) fn noise(parameters: &Parameters, phase: &Polynomial) -> Vec<f64> {
    let [p0, p1] = parameters.ntts().each_ref().map(|ntt| *ntt.prime());
    let modulus = u128::from(p0.value()) * u128::from(p1.value());
    let inverse = p0.invert(p1.value());
    let distance = |(&x0, &x1): (&u64, &u64)| {
        let digit = p0.multiply(p0.sub(x0, p0.reduce(x1)), inverse);
        let x = u128::from(x1) + u128::from(p1.value()) * u128::from(digit);
        let scaled = (0..parameters.ring_bits()).fold(x, |x, _| 2 * x % modulus);
        let signed = if scaled > modulus / 2 { -((modulus - scaled) as f64) } else { scaled as f64 };
        signed / (parameters.ring_bits() as f64).exp2()
    };
    phase.0[0].iter().zip(&phase.0[1]).map(distance).collect()
}

/// The first attack: divides the uniform part of the sum by that of the client's ciphertext.
fn divide(scene: &Scene, c1: &Polynomial) -> Vec<i64> {
    let ntt = &scene.session.parameters.ntts()[0];
    let prime: &Prime = ntt.prime();
    let mut values = c1.0[0].clone();
    ntt.forward(&mut values);
    for (value, &a) in values.iter_mut().zip(&scene.uniform.0[0]) {
        *value = prime.multiply(*value, prime.invert(a));
    }
    ntt.inverse(&mut values);
    let signed = |x| if x > prime.value() / 2 { x as i64 - prime.value() as i64 } else { x as i64 };
    values.iter().copied().map(signed).collect()
}

#[test]
fn dividing_out_the_clients_randomness_gives_the_weights_only_without_an_encryption_of_zero() {
    let mut scene = scene(1);
    let expected: Vec<i64> = scene.weights.iter().map(|&w| w.into()).collect();
    let control = scene.sum.c1.clone().inverse(scene.session.parameters.ntts());
    assert_eq!(divide(&scene, &control), expected, "the attack works on the control");

    let [_, c1] = scene.randomised();
    let quotient = divide(&scene, &c1);
    let hits = TAPS.iter().filter(|&&at| (quotient[at] - expected[at]).abs() < 1 << 20).count();
    assert_eq!(hits, 0, "weights recovered");
    // Sixteen equal bins over the prime: nothing in the quotient stands out.
    let prime = scene.session.parameters.primes()[0] as f64;
    let bins = quotient.iter().map(|&x| ((x as f64 / prime + 0.5) * 16.0) as usize);
    assert!(chi_square(bins) < 56.0);
}

/// The first attack on what travels, which is rounded: tries all values of a single weight.
fn search(parameters: &Parameters, uniform: &Polynomial, at: usize, reply: &[u8]) -> Vec<i64> {
    let bytes = packed_bytes(parameters.degree(), parameters.reply_bits());
    let c1 = unpack("reply", &reply[..bytes], parameters.degree(), parameters.reply_bits()).unwrap();
    let a = uniform.clone().inverse(parameters.ntts());
    let [p0, p1] = parameters.ntts().each_ref().map(|ntt| *ntt.prime());
    let fits = |w: i64| {
        let residue = |prime: &Prime| w.rem_euclid(prime.value() as i64) as u64;
        let [x0, x1] = [(p0, &a.0[0]), (p1, &a.0[1])]
            .map(|(prime, a)| a[..64].iter().map(|&a| prime.multiply(residue(&prime), a)).collect::<Vec<_>>());
        let mut switched = [0; 64];
        switch(parameters, [&x0, &x1], &mut switched);
        switched == c1[at..at + 64]
    };
    (-(1 << 16)..1 << 16).filter(|&w| fits(w)).collect()
}

#[test]
fn searching_for_a_weight_in_the_reply_succeeds_only_without_an_encryption_of_zero() {
    let mut scene = scene(2);
    let parameters = scene.session.parameters.clone();
    let message = scene.session.message();
    let bytes = scene.session.encrypt(&message);
    let seed = Seed::from_bytes(bytes[..16].try_into().unwrap());
    scene.uniform = Polynomial(sample::uniform(&seed, parameters.ntts(), parameters.degree()));
    let ciphertext = Ciphertext::from_bytes(&parameters, &bytes).unwrap();
    let mut weights = vec![0; parameters.degree()];
    weights[7] = -31_415;
    scene.sum = Sum::new(&parameters);
    scene.sum.multiply_add(&[(&ciphertext, &Weights::new(&parameters, &weights).unwrap())]).unwrap();

    let (c0, c1) = (scene.sum.c0.clone().inverse(parameters.ntts()), scene.sum.c1.clone().inverse(parameters.ntts()));
    let mut control = Vec::new();
    write_reply(&parameters, &c0, &c1, &[9], &[12_345], &mut control);
    assert_eq!(search(&parameters, &scene.uniform, 7, &control), [-31_415], "the attack works on the control");

    let reply = scene.reply(&[9]);
    assert_eq!(search(&parameters, &scene.uniform, 7, &reply), [0_i64; 0]);
}

/// The second attack: the noise of the phase is the weights times the error of the client's ciphertext, plus little.
/// Least squares over all coefficients whose noise is known: that of others is no number.
pub(super) fn regress(error: &[f64], noise: &[f64]) -> Vec<f64> {
    let n = error.len();
    let indices: Vec<usize> = (0..n).filter(|&i| !noise[i].is_nan()).collect();
    let shifted = |i: usize, tap: usize| if i >= tap { error[i - tap] } else { -error[n + i - tap] };
    let mut system: Vec<Vec<f64>> = TAPS
        .iter()
        .map(|&row| {
            let products =
                TAPS.iter().map(|&column| indices.iter().map(|&i| shifted(i, row) * shifted(i, column)).sum());
            let right: f64 = indices.iter().map(|&i| shifted(i, row) * noise[i]).sum();
            products.chain([right]).collect()
        })
        .collect();
    for pivot in 0..TAPS.len() {
        let top = system[pivot].clone();
        for row in (0..TAPS.len()).filter(|&row| row != pivot) {
            let factor = system[row][pivot] / top[pivot];
            system[row].iter_mut().zip(&top).for_each(|(x, y)| *x -= factor * y);
        }
    }
    (0..TAPS.len()).map(|i| system[i][TAPS.len()] / system[i][i]).collect()
}

/// The worst error of recovered weights.
pub(super) fn worst(scene: &Scene, recovered: &[f64]) -> f64 {
    TAPS.iter().zip(recovered).map(|(&at, w)| (w - f64::from(scene.weights[at])).abs()).fold(0.0, f64::max)
}

/// The best of them.
pub(super) fn best(scene: &Scene, recovered: &[f64]) -> f64 {
    TAPS.iter().zip(recovered).map(|(&at, w)| (w - f64::from(scene.weights[at])).abs()).fold(f64::MAX, f64::min)
}

#[test]
fn the_noise_of_the_phase_gives_the_weights_only_without_a_uniform_mask() {
    let mut scene = scene(3);
    let parameters = scene.session.parameters.clone();
    let [c0, c1] = scene.randomised();
    let forward = |x: &Polynomial| x.clone().forward(parameters.ntts());

    // A server that hides the message alone, by a random ring element encoded as a message.
    let mut control = forward(&c0);
    let shares = forward(&encode(&parameters, &scene.session.message()));
    add(&parameters, &mut control, &shares);
    let phase_noise = noise(&parameters, &phase(&scene.session.secret, control.clone(), &forward(&c1)));
    let recovered = regress(&scene.error, &phase_noise);
    assert!(worst(&scene, &recovered) < 16.0, "the attack works on the control: {recovered:?}");

    // The same with a mask uniform modulo q.
    let mask = Polynomial(sample::uniform(&scene.session.prg.seed(), parameters.ntts(), parameters.degree()));
    add(&parameters, &mut control, &mask);
    let phase_noise = noise(&parameters, &phase(&scene.session.secret, control, &forward(&c1)));
    assert!(best(&scene, &regress(&scene.error, &phase_noise)) > 1e5);

    // The reply itself: the phase modulo 2^k, whose guard bits would hold the noise.
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let reply = scene.reply(&positions);
    let phases = scene.session.secret.phases(&reply, &positions).unwrap();
    let guard = 64 - (parameters.reply_bits() - parameters.ring_bits());
    let unit =
        parameters.primes().map(|p| p as f64).iter().product::<f64>() / f64::from(parameters.reply_bits()).exp2();
    let phase_noise: Vec<f64> = phases.iter().map(|phase| ((phase << guard) as i64 >> guard) as f64 * unit).collect();
    assert!(best(&scene, &regress(&scene.error, &phase_noise)) > 1e5);
}

fn add(parameters: &Parameters, sum: &mut Polynomial, other: &Polynomial) {
    for ((sum, other), ntt) in sum.0.iter_mut().zip(&other.0).zip(parameters.ntts()) {
        sum.iter_mut().zip(other).for_each(|(x, y)| *x = ntt.prime().add(*x, *y));
    }
}

/// Chi-square of numbers below 16 against equal frequencies: 15 degrees of freedom, above 56 once in a million.
pub(super) fn chi_square(bins: impl Iterator<Item = usize>) -> f64 {
    let mut counts = [0_f64; 16];
    bins.for_each(|bin| counts[bin.min(15)] += 1.0);
    let expected = counts.iter().sum::<f64>() / 16.0;
    counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
}

#[test]
fn the_guard_bits_of_the_phase_are_uniform_only_under_a_uniform_mask() {
    let mut scene = scene(4);
    let parameters = scene.session.parameters.clone();
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let guard = parameters.reply_bits() - parameters.ring_bits();
    let spread = |session: &Session, reply: &[u8]| {
        let phases = session.secret.phases(reply, &positions).unwrap();
        chi_square(phases.iter().map(|phase| (phase >> (guard - 4) & 15) as usize))
    };

    let [c0, c1] = scene.randomised();
    let shares: Vec<u64> = scene.session.message().iter().map(|share| share << guard).collect();
    let mut control = Vec::new();
    write_reply(&parameters, &c0, &c1, &positions, &shares, &mut control);
    assert!(spread(&scene.session, &control) > 1000.0, "the noise shows in the control");

    let reply = scene.reply(&positions);
    let statistic = spread(&scene.session, &reply);
    assert!(statistic < 56.0, "chi-square {statistic}");
}

#[test]
fn replies_look_uniform_even_for_weights_of_zero() {
    let mut scene = scene(5);
    let parameters = scene.session.parameters.clone();
    scene.sum = Sum::new(&parameters);
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let bits = parameters.reply_bits();
    let top = |reply: &[u8]| {
        let values = unpack("reply", reply, 2 * parameters.degree(), bits).unwrap();
        let halves = values.split_at(parameters.degree());
        [halves.0, halves.1].map(|half| chi_square(half.iter().map(|x| (x >> (bits - 4)) as usize)))
    };

    let (c0, c1) = (scene.sum.c0.clone().inverse(parameters.ntts()), scene.sum.c1.clone().inverse(parameters.ntts()));
    let mut control = Vec::new();
    write_reply(&parameters, &c0, &c1, &positions, &vec![0; parameters.degree()], &mut control);
    assert!(top(&control).iter().all(|statistic| *statistic > 1000.0), "zeros show in the control");

    let reply = scene.reply(&positions);
    let statistics = top(&reply);
    assert!(statistics.iter().all(|statistic| *statistic < 56.0), "chi-square {statistics:?}");
    // Half of all coefficients would agree by chance with probability 2^-45 each.
    let second_reply = scene.reply(&positions);
    let values = |reply: &[u8]| unpack("reply", reply, 2 * parameters.degree(), bits).unwrap();
    assert!(values(&reply).iter().zip(values(&second_reply)).all(|(x, y)| *x != y), "two replies share a coefficient");
}

#[test]
fn the_encryption_of_zero_has_a_fresh_secret_and_a_fresh_error() {
    let mut scene = scene(7);
    let parameters = scene.session.parameters.clone();
    scene.sum = Sum::new(&parameters);
    let [c0, c1] = scene.randomised();
    let (c0, c1) = (c0.forward(parameters.ntts()), c1.forward(parameters.ntts()));
    let phase_noise = noise(&parameters, &phase(&scene.session.secret, c0, &c1));
    // The phase is e' u + e s for the error e' of the public key: twice N terms of variance 21/2 times 2/3. Without e, or
    // without u, it is half of that.
    let variance = phase_noise.iter().map(|x| x * x).sum::<f64>() / phase_noise.len() as f64;
    let expected = 2.0 * parameters.degree() as f64 * 10.5 * 2.0 / 3.0;
    assert!((0.75..1.25).contains(&(variance / expected)), "variance {variance}, expected {expected}");
    assert_ne!(scene.randomised()[0].0, scene.randomised()[0].0);
}

#[test]
fn shares_of_either_party_are_uniform() {
    let mut scene = scene(6);
    let parameters = scene.session.parameters.clone();
    scene.sum = Sum::new(&parameters);
    let positions: Vec<usize> = (0..parameters.degree()).collect();
    let mut reply = Vec::new();
    let Session { public, prg, .. } = &mut scene.session;
    let server = scene.sum.clone().reply(public, &positions, prg, &mut reply).unwrap();
    let client = scene.session.secret.open(&reply, &positions).unwrap();
    for share in [server, client] {
        let statistic = chi_square(share.iter().map(|x| (x >> (parameters.ring_bits() - 4)) as usize));
        assert!(statistic < 56.0, "chi-square {statistic}");
    }
}
