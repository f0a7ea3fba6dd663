//! What the owner of kept weights could compute of the masks that they were multiplied by, from a reply that lacks one of its protections,
//! and cannot from a real one. It knows its key, the weights, and every error and uniform part of their ciphertexts.

use privet_prg::Seed;

use super::attacks::{noise, phase};
use super::{Session, prg};
use crate::encode::encode;
use crate::polynomial::Polynomial;
use crate::{Blocks, Ciphertext, Panel, Parameters, Sum, sample};

const BLOCKS: Blocks = Blocks { count: 4, width: 1 };

/// Two ciphertexts of four rows, under masks that the owner is after.
struct Scene {
    parameters: Parameters,
    session: Session,
    ciphertexts: Vec<Vec<u8>>,
    /// The exact errors of both, which the owner computes from its key.
    errors: Vec<Vec<f64>>,
    masks: Vec<i64>,
    sum: Sum,
}

fn scene(seed: u8) -> Scene {
    let parameters = Parameters::choose_for_masks(42, 40, 8, 1 << 20).unwrap();
    let mut session = Session::new(&parameters, seed);
    let messages = [(); 2].map(|()| session.message());
    let ciphertexts: Vec<Vec<u8>> = messages.iter().map(|message| session.encrypt(message)).collect();
    let error = |bytes: &Vec<u8>| {
        let Ciphertext { c0, c1, .. } = Ciphertext::from_bytes(&parameters, bytes).unwrap();
        let [c0, c1] = [c0, c1].map(|part| part.polynomial(parameters.ntts()));
        noise(&parameters, &phase(&session.secret, c0, &c1))
    };
    let errors = ciphertexts.iter().map(error).collect();
    let mut panel = Panel::new(&parameters);
    panel.groups(2).unwrap()[0].read(&parameters, &ciphertexts.concat()).unwrap();
    let masks: Vec<i64> = (0..8).map(|_| (session.prg.word() << 24).cast_signed() >> 24).collect();
    let mut sum = [Sum::new(&parameters)];
    panel.multiply_add(BLOCKS, &mut sum, &[&masks]).unwrap();
    let [sum] = sum;
    Scene { parameters, session, ciphertexts, errors, masks, sum }
}

impl Scene {
    fn positions(&self) -> Vec<usize> {
        let (start, degree) = (BLOCKS.result(self.parameters.degree()), self.parameters.degree());
        (start..start + degree / 4).collect()
    }

    /// Least squares for the masks, from the noise in one block, of which each mask has a part with the error of the block that it moved there.
    fn regress(&self, block: usize, noise: &[f64]) -> Vec<f64> {
        let size = self.parameters.degree() / 4;
        let part = |mask: usize| {
            let (error, shift) = (&self.errors[mask / 4], 3 - mask % 4);
            let from = (block + 4 - shift) % 4;
            let sign = if from + shift >= 4 { -1.0 } else { 1.0 };
            error[from * size..][..size].iter().map(|x| sign * x).collect::<Vec<f64>>()
        };
        let parts: Vec<Vec<f64>> = (0..8).map(part).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut system: Vec<Vec<f64>> = parts
            .iter()
            .map(|row| parts.iter().map(|column| dot(row, column)).chain([dot(row, noise)]).collect())
            .collect();
        for pivot in 0..8 {
            let top = system[pivot].clone();
            for row in (0..8).filter(|&row| row != pivot) {
                let factor = system[row][pivot] / top[pivot];
                system[row].iter_mut().zip(&top).for_each(|(x, y)| *x -= factor * y);
            }
        }
        (0..8).map(|i| system[i][8] / system[i][i]).collect()
    }

    fn distances(&self, recovered: &[f64]) -> impl Iterator<Item = f64> {
        self.masks.iter().zip(recovered).map(|(&mask, value)| (mask as f64 - value).abs())
    }

    fn worst(&self, recovered: &[f64]) -> f64 {
        self.distances(recovered).fold(0.0, f64::max)
    }

    fn best(&self, recovered: &[f64]) -> f64 {
        self.distances(recovered).fold(f64::MAX, f64::min)
    }

    /// The noise of a reply's phases, as far as its guard bits hold it.
    fn guarded(&self, reply: &[u8], positions: &[usize]) -> Vec<f64> {
        let phases = self.session.secret.phases(reply, positions).unwrap();
        let guard = 64 - (self.parameters.reply_bits() - self.parameters.ring_bits());
        let modulus: f64 = self.parameters.primes().map(|p| p as f64).iter().product();
        let unit = modulus / f64::from(self.parameters.reply_bits()).exp2();
        phases.iter().map(|phase| ((phase << guard) as i64 >> guard) as f64 * unit).collect()
    }
}

#[test]
fn the_noise_of_a_result_gives_masks_only_without_a_uniform_mask_over_it() {
    let mut scene = scene(41);
    let parameters = scene.parameters.clone();
    let positions = scene.positions();
    let [mut c0, c1] = scene.sum.clone().randomise(&scene.session.public, &mut prg(42));
    let forward = |x: &Polynomial| x.clone().forward(parameters.ntts());
    let block = |noise: Vec<f64>| positions.iter().map(|&at| noise[at]).collect::<Vec<_>>();

    // A client that hides the message alone, by a random ring element encoded as a message.
    c0.add(parameters.ntts(), &encode(&parameters, &scene.session.message()));
    let phase_noise = block(noise(&parameters, &phase(&scene.session.secret, forward(&c0), &forward(&c1))));
    let recovered = scene.regress(3, &phase_noise);
    assert!(scene.worst(&recovered) < 64.0, "the attack works on the control: {recovered:?} of {:?}", scene.masks);

    // With a mask uniform modulo q, and from the reply itself.
    c0.add(
        parameters.ntts(),
        &Polynomial(sample::uniform(&scene.session.prg.seed(), parameters.ntts(), parameters.degree())),
    );
    let phase_noise = block(noise(&parameters, &phase(&scene.session.secret, forward(&c0), &forward(&c1))));
    assert!(scene.best(&scene.regress(3, &phase_noise)) > 1e6);
    let mut reply = Vec::new();
    scene.sum.clone().reply(&scene.session.public, &positions, &mut scene.session.prg, &mut reply).unwrap();
    assert!(scene.best(&scene.regress(3, &scene.guarded(&reply, &positions))) > 1e6);
}

/// Beside its result a sum holds products of masks with rows that they do not belong to.
#[test]
fn coefficients_without_results_give_masks_only_if_they_leave() {
    let mut scene = scene(43);
    let parameters = scene.parameters.clone();
    let positions = scene.positions();
    let [c0, c1] = scene.sum.clone().randomise(&scene.session.public, &mut prg(44));

    // A client that sends all of the first part, before the switch, and masks it where results are.
    let forward = |x: &Polynomial| x.clone().forward(parameters.ntts());
    let phase_noise = noise(&parameters, &phase(&scene.session.secret, forward(&c0), &forward(&c1)));
    let size = parameters.degree() / 4;
    for block in 0..3 {
        let recovered = scene.regress(block, &phase_noise[block * size..][..size]);
        assert!(scene.worst(&recovered) < 64.0, "the attack works on the control: {recovered:?} of {:?}", scene.masks);
    }
    // The reply has no such coefficient.
    let mut reply = Vec::new();
    scene.sum.clone().reply(&scene.session.public, &positions, &mut scene.session.prg, &mut reply).unwrap();
    assert_eq!(reply.len(), parameters.reply_bytes(size));
    assert!(reply.len() < parameters.reply_bytes(parameters.degree()));
}

#[test]
fn dividing_out_a_uniform_part_gives_a_mask_only_without_an_encryption_of_zero() {
    let mut scene = scene(45);
    let parameters = scene.parameters.clone();
    let mut panel = Panel::new(&parameters);
    panel.groups(1).unwrap()[0].read(&parameters, &scene.ciphertexts[0]).unwrap();
    let mut sum = [Sum::new(&parameters)];
    panel.multiply_add(Blocks { count: 1, width: 1 }, &mut sum, &[&[scene.masks[0]]]).unwrap();
    let [sum] = sum;
    let seed = Seed::from_bytes(scene.ciphertexts[0][..16].try_into().unwrap());
    let [uniform, _] = sample::uniform(&seed, parameters.ntts(), parameters.degree());
    let prime = *parameters.ntts()[0].prime();
    let quotients = |c1: &Polynomial| -> Vec<i64> {
        c1.0[0].iter().zip(&uniform).map(|(&x, &a)| prime.balanced(prime.multiply(x, prime.invert(a)))).collect()
    };
    assert!(quotients(&sum.c1).iter().all(|&quotient| quotient == scene.masks[0]), "the attack works on the control");
    let [_, c1] = sum.randomise(&scene.session.public, &mut scene.session.prg);
    let randomised = quotients(&c1.forward(parameters.ntts()));
    assert!(randomised.iter().filter(|quotient| (**quotient - scene.masks[0]).abs() < 1 << 20).count() < 8);
}
