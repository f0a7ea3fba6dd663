//! What a client could compute from a merged reply that lacks one of its two protections, and cannot from a real one.

use privet_prg::Seed;

use super::Session;
use super::attacks::{best, chi_square, noise, phase, regress, scene_with, worst};
use crate::encode::switch;
use crate::polynomial::Polynomial;
use crate::product::write_reply;
use crate::wire::{packed_bytes, unpack};
use crate::{Ciphertext, Merge, Parameters, Resharing, Sum, Weights, sample};

/// Sums that are merged: `2^LEVELS`.
const LEVELS: u32 = 2;

/// With digits and a special prime of one width, for a ring of 20 bits, switching keys adds less noise than weights make.
fn parameters() -> Parameters {
    Parameters::choose(20, 16, 576, 4096, Resharing::Approximate).unwrap().merging(LEVELS).unwrap()
}

/// The sum of one ciphertext times one weight at the constant coefficient.
fn weighed(parameters: &Parameters, ciphertext: &Ciphertext, weight: i64) -> Sum {
    let mut sum = Sum::new(parameters);
    sum.multiply_add(&[(ciphertext, &Weights::new(parameters, &[weight]).unwrap())]).unwrap();
    sum
}

fn merged(session: &Session, sums: impl Iterator<Item = Sum>) -> Sum {
    let mut merge = Merge::new(&session.public, LEVELS).unwrap();
    sums.for_each(|sum| merge.add(sum).unwrap());
    merge.finish()
}

/// The part `c1` of what travels.
fn travelling(parameters: &Parameters, reply: &[u8]) -> Vec<u64> {
    let (degree, bits) = (parameters.degree(), parameters.reply_bits());
    unpack("reply", &reply[..packed_bytes(degree, bits)], degree, bits).unwrap()
}

#[test]
fn searching_for_a_weight_in_a_merged_reply_succeeds_only_without_an_encryption_of_zero() {
    let parameters = parameters();
    let mut session = Session::new(&parameters, 31);
    let messages = [(); 1 << LEVELS].map(|()| session.message());
    let bytes = messages.map(|message| session.encrypt(&message));
    let ciphertexts = bytes.each_ref().map(|bytes| Ciphertext::from_bytes(&parameters, bytes).unwrap());
    // The client knows three of the four weights; merging is public, and so are the keys it takes.
    let sum = |last: i64| {
        let weights = [11, -7, 30, last];
        merged(&session, ciphertexts.iter().zip(weights).map(|(ciphertext, w)| weighed(&parameters, ciphertext, w)))
    };
    let search = |reply: &[u8]| -> Vec<i64> {
        let seen = travelling(&parameters, reply);
        let fits = |&weight: &i64| {
            let c1 = sum(weight).c1.inverse(parameters.ntts());
            let mut switched = [0; 64];
            switch(&parameters, [&c1.0[0][..64], &c1.0[1][..64]], &mut switched);
            switched == seen[..64]
        };
        (-64..64).filter(fits).collect()
    };

    let bare = sum(-29);
    let [c0, c1] = [bare.c0.clone(), bare.c1.clone()].map(|part| part.inverse(parameters.ntts()));
    let mut control = Vec::new();
    write_reply(&parameters, &c0, &c1, &[9], &[12_345], &mut control);
    assert_eq!(search(&control), [-29], "the attack works on the control");

    let mut reply = Vec::new();
    bare.reply(&session.public, &[9], &mut super::prg(32), &mut reply).unwrap();
    assert_eq!(search(&reply), [0_i64; 0]);
}

/// The client's own errors, each between zeros where merging leaves room for other sums' results, make the noise of a merged reply.
#[test]
fn the_noise_of_a_merged_reply_gives_the_weights_only_without_a_uniform_mask() {
    let parameters = parameters();
    let mut scene = scene_with(&parameters, 33);
    let step = 1 << LEVELS;
    // Only the first sum has weights, and the client looks at its results: the noise elsewhere it drops.
    let merged = |scene: &super::attacks::Scene| {
        let mut merge = Merge::new(&scene.session.public, LEVELS).unwrap();
        merge.add(scene.sum()).unwrap();
        (1..step).for_each(|_| merge.add(Sum::new(&parameters)).unwrap());
        merge.finish()
    };
    let [c0, c1] = merged(&scene).randomise(&scene.session.public, &mut super::prg(34));
    let forward = |x: &Polynomial| x.clone().forward(parameters.ntts());
    let results: Vec<usize> = (0..parameters.degree()).step_by(step).collect();
    let first_results = |noise: Vec<f64>| -> Vec<f64> {
        noise.iter().enumerate().map(|(i, &x)| if i % step == 0 { x } else { f64::NAN }).collect()
    };

    let phase_noise = noise(&parameters, &phase(&scene.session.secret, forward(&c0), &forward(&c1)));
    let recovered = regress(&scene.error, &first_results(phase_noise));
    assert!(worst(&scene, &recovered) < 64.0, "the attack works on the control: {recovered:?}");

    // The reply itself: the phase modulo 2^k, whose guard bits would hold the noise.
    let mut reply = Vec::new();
    merged(&scene).reply(&scene.session.public, &results, &mut scene.session.prg, &mut reply).unwrap();
    let phases = scene.session.secret.phases(&reply, &results).unwrap();
    let guard = parameters.reply_bits() - parameters.ring_bits();
    let unit =
        parameters.primes().map(|p| p as f64).iter().product::<f64>() / f64::from(parameters.reply_bits()).exp2();
    let mut phase_noise = vec![f64::NAN; parameters.degree()];
    for (&at, phase) in results.iter().zip(phases.iter()) {
        phase_noise[at] = ((phase << (64 - guard)) as i64 >> (64 - guard)) as f64 * unit;
    }
    assert!(best(&scene, &regress(&scene.error, &phase_noise)) > 1e5);
    assert!(chi_square(phases.iter().map(|phase| (phase >> (guard - 4) & 15) as usize)) < 56.0);

    // A mask that hides the message alone.
    let shares: Vec<u64> = scene.session.message().iter().take(results.len()).map(|share| share << guard).collect();
    let mut control = Vec::new();
    write_reply(&parameters, &c0, &c1, &results, &shares, &mut control);
    let phases = scene.session.secret.phases(&control, &results).unwrap();
    let spread = chi_square(phases.iter().map(|phase| (phase >> (guard - 4) & 15) as usize));
    assert!(spread > 200.0, "the noise shows in the control: {spread}");
}

#[test]
fn every_key_of_merging_has_a_fresh_error_and_a_fresh_uniform_part() {
    let parameters = parameters();
    let session = Session::new(&parameters, 35);
    let key = |seed| session.secret.public_key(&mut super::prg(seed));
    let (one, other) = (key(36), key(37));
    let each = parameters.level_key_bytes() / 2;
    let parts = |bytes: &[u8]| -> Vec<Vec<u8>> {
        bytes[parameters.ciphertext_bytes()..].chunks(each).map(<[u8]>::to_vec).collect()
    };
    let mut seeds: Vec<Vec<u8>> =
        [parts(&one), parts(&other)].concat().iter().map(|part| part[..16].to_vec()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 2 * 2 * LEVELS as usize, "a seed of its own for each digit of each level");

    // Modulo the special prime a key is `e - A s` alone: its error shows under the secret, and differs from part to part.
    let merging = parameters.merging_with().unwrap();
    let (special, prime) = (merging.special(), merging.special().prime());
    let mut negated: Vec<u64> = prime.reduce_signed(session.secret.opposite());
    special.forward(&mut negated);
    special.prepare(&mut negated);
    let mut errors = Vec::new();
    for part in [parts(&one), parts(&other)].concat() {
        let [b, _] = Polynomial::<3>::read_masked(&merging.ntts, parameters.degree(), "key", &part).unwrap();
        let seed = Seed::from_bytes(part[..16].try_into().unwrap());
        let a = sample::uniform(&seed, &merging.ntts, parameters.degree());
        // b - A (-s) = e.
        let mut error = vec![0; parameters.degree()];
        special.multiply_add(&mut error, &[(&a[2], &negated)]);
        error.iter_mut().zip(&b.0[2]).for_each(|(x, &b)| *x = prime.sub(b, *x));
        special.inverse(&mut error);
        let error: Vec<f64> = error.iter().map(|&x| prime.balanced(x) as f64).collect();
        let variance = error.iter().map(|x| x * x).sum::<f64>() / error.len() as f64;
        assert!((8.0..13.0).contains(&variance), "variance {variance}");
        errors.push(error);
    }
    for (i, one) in errors.iter().enumerate() {
        assert!(errors[..i].iter().all(|other| other != one));
    }
}
