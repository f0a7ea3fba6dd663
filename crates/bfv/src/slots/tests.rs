//! Slots, rotations and replies against plain arithmetic, and what replies give away.

mod fresh;

use privet_prg::{Prg, Seed};

use super::decode::to_slots;
use super::product::{hide, share, write_reply};
use super::*;
use crate::{Error, Misuse, PeerMisbehaved};

const PRIME: u64 = 172_631_277_569;
const SLOTS: usize = 8192;

fn prg(byte: u8) -> Prg {
    Prg::from_seed(&Seed::from_bytes([byte; 16]))
}

fn uniform(prg: &mut Prg) -> Vec<u64> {
    (0..SLOTS).map(|_| prg.below(PRIME)).collect()
}

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

fn rotated(slots: &[u64], rotation: Rotation) -> Vec<u64> {
    let half = SLOTS / 2;
    (0..SLOTS)
        .map(|i| match rotation {
            Rotation::Left(steps) => slots[i / half * half + (i + steps) % half],
            Rotation::Swap => slots[(i + half) % SLOTS],
        })
        .collect()
}

/// Both parties with keys for some rotations.
struct Pair {
    parameters: Parameters,
    secret: SecretKey,
    public: PublicKey,
    rotations: Rotations,
    prg: Prg,
}

impl Pair {
    fn new(terms: usize, rotations: &[Rotation]) -> Self {
        Self::seeded(1, terms, rotations)
    }

    fn seeded(seed: u8, terms: usize, rotations: &[Rotation]) -> Self {
        let parameters = Parameters::choose(PRIME, terms, rotations.len(), 16).unwrap();
        let mut prg = prg(seed);
        let secret = SecretKey::generate(&parameters, &mut prg);
        let public = PublicKey::from_bytes(&parameters, &secret.public_key(&mut prg)).unwrap();
        let mut keys = Rotations::new(&parameters);
        for &rotation in rotations {
            keys.add(rotation, &secret.rotation_key(rotation, &mut prg)).unwrap();
        }
        Self { parameters, secret, public, rotations: keys, prg }
    }

    fn encrypt(&mut self, slots: &[u64]) -> Ciphertext {
        let mut bytes = Vec::new();
        self.secret.encrypt(slots, &mut self.prg, &mut bytes).unwrap();
        assert_eq!(bytes.len(), self.parameters.ciphertext_bytes());
        Ciphertext::from_bytes(&self.parameters, &bytes).unwrap()
    }

    /// The sum of the two shares of a reply.
    fn reveal(&mut self, sum: Sum) -> Vec<u64> {
        let mut reply = Vec::new();
        let server = sum.reply(&self.public, &mut self.prg, &mut reply).unwrap();
        assert_eq!(reply.len(), self.parameters.reply_bytes());
        let client = self.secret.open(&reply).unwrap();
        client.iter().zip(server).map(|(a, b)| (a + b) % PRIME).collect()
    }
}

#[test]
fn sums_of_products_and_their_rotations_are_exact() {
    let rotations = [Rotation::Left(1), Rotation::Left(SLOTS / 2 - 1), Rotation::Left(37), Rotation::Swap];
    let mut pair = Pair::new(4, &rotations);
    let operands: Vec<(Vec<u64>, Vec<u64>)> =
        (0..4).map(|_| (uniform(&mut pair.prg), uniform(&mut pair.prg))).collect();
    let ciphertexts: Vec<Ciphertext> = operands.iter().map(|(x, _)| pair.encrypt(x)).collect();
    let weights: Vec<Weights> = operands.iter().map(|(_, w)| Weights::new(&pair.parameters, w).unwrap()).collect();
    let mut sum = Sum::new(&pair.parameters);
    sum.multiply_add(&ciphertexts.iter().zip(&weights).collect::<Vec<_>>()).unwrap();
    let mut expected: Vec<u64> =
        (0..SLOTS).map(|i| operands.iter().fold(0, |sum, (x, w)| (sum + times(x[i], w[i])) % PRIME)).collect();
    assert_eq!(pair.reveal(sum.clone()), expected);
    for rotation in rotations {
        sum = pair.rotations.rotate(sum, rotation).unwrap();
        expected = rotated(&expected, rotation);
        assert_eq!(pair.reveal(sum.clone()), expected, "{rotation:?}");
    }
    let twice: Vec<u64> = expected.iter().map(|x| 2 * x % PRIME).collect();
    sum.add(&sum.clone()).unwrap();
    assert_eq!(pair.reveal(sum), twice);
}

#[test]
fn the_heaviest_weights_stay_within_the_bound() {
    let mut pair = Pair::new(8, &[Rotation::Left(1)]);
    // A polynomial all of whose coefficients are as large as can be.
    let heavy = Weights::new(&pair.parameters, &to_slots(&pair.parameters, &vec![PRIME / 2; SLOTS])).unwrap();
    let x = vec![PRIME - 1; SLOTS];
    let ciphertexts: Vec<Ciphertext> = (0..8).map(|_| pair.encrypt(&x)).collect();
    let mut sum = Sum::new(&pair.parameters);
    sum.multiply_add(&ciphertexts.iter().map(|ciphertext| (ciphertext, &heavy)).collect::<Vec<_>>()).unwrap();
    let sum = pair.rotations.rotate(sum, Rotation::Left(1)).unwrap();
    let weights = to_slots(&pair.parameters, &vec![PRIME / 2; SLOTS]);
    let expected: Vec<u64> = weights.iter().map(|&w| times(times(w, PRIME - 1), 8)).collect();
    assert_eq!(pair.reveal(sum), rotated(&expected, Rotation::Left(1)));
}

/// Phases of a reply to no products at all, from the message's places: what of them the flood should hide.
fn rests(pair: &mut Pair, flooded: bool) -> Vec<f64> {
    let [mut c0, c1] = Sum::new(&pair.parameters).randomise(&pair.public, &mut pair.prg);
    let shares = share(&pair.parameters, &mut c0, &mut pair.prg);
    if flooded {
        hide(&pair.parameters, &mut c0, &mut pair.prg);
    }
    let mut reply = Vec::new();
    write_reply(&pair.parameters, &c0, &c1, &mut reply);
    let phases = pair.secret.phases(&reply).unwrap();
    let turn = f64::from(pair.parameters.reply_bits()).exp2();
    let place = |share: u64| ((PRIME - share) % PRIME) as f64 * (turn / PRIME as f64);
    let signed = |x: f64| {
        if x > turn / 2.0 {
            x - turn
        } else if x < -turn / 2.0 {
            x + turn
        } else {
            x
        }
    };
    phases.iter().zip(shares.iter()).map(|(&phase, &share)| signed(phase as f64 - place(share))).collect()
}

#[test]
fn a_flood_fills_the_room_that_a_reply_has() {
    let mut pair = Pair::new(1, &[]);
    let widest = |rests: &[f64]| rests.iter().fold(0_f64, |widest, rest| widest.max(rest.abs()));
    let (bare, flooded) = (rests(&mut pair, false), rests(&mut pair, true));
    let room = f64::from(pair.parameters.reply_bits()).exp2() / (2.0 * PRIME as f64);
    assert!(widest(&flooded) < room, "{} of {room}", widest(&flooded));
    assert!(widest(&bare) < 500.0, "rounding alone: {}", widest(&bare));
    assert!(widest(&flooded) > 2.0 * widest(&bare), "{} beside {}", widest(&flooded), widest(&bare));
    // The deviation of three uniform numbers that add up is a third of the largest sum.
    let deviation = (flooded.iter().map(|rest| rest * rest).sum::<f64>() / SLOTS as f64).sqrt();
    let modulus: f64 = pair.parameters.inner().limbs().iter().map(|ntt| ntt.prime().value() as f64).product();
    let expected =
        pair.parameters.flood().most() as f64 / 3.0 * f64::from(pair.parameters.reply_bits()).exp2() / modulus;
    assert!((0.9..1.1).contains(&(deviation / expected)), "{deviation} beside {expected}");
    assert!(pair.parameters.flood().most() as f64 >= pair.parameters.bound() * 2_f64.powi(40));
}

#[test]
fn replies_to_zero_weights_look_like_any_other() {
    let mut pair = Pair::new(1, &[]);
    for weight in [0, PRIME - 1] {
        let x = pair.encrypt(&vec![5; SLOTS]);
        let weights = Weights::new(&pair.parameters, &vec![weight; SLOTS]).unwrap();
        let mut sum = Sum::new(&pair.parameters);
        sum.multiply_add(&[(&x, &weights)]).unwrap();
        let mut reply = Vec::new();
        sum.reply(&pair.public, &mut pair.prg, &mut reply).unwrap();
        let mut counts = [0_f64; 16];
        pair.secret.open(&reply).unwrap().iter().for_each(|x| counts[(x * 16 / PRIME) as usize] += 1.0);
        reply.iter().for_each(|byte| counts[usize::from(byte >> 4)] += 1.0);
        let expected = (SLOTS + reply.len()) as f64 / 16.0;
        let chi_square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // 15 degrees of freedom: above 56 once in a million.
        assert!(chi_square < 56.0, "{chi_square} for weights of {weight}");
    }
}

#[test]
fn noise_that_does_not_fit_and_primes_without_slots_are_refused() {
    let refused = |prime, terms| Parameters::choose(prime, terms, 0, 1).unwrap_err();
    assert!(matches!(refused(PRIME, 1 << 30), Error::Misuse(Misuse::NoiseTooLarge { .. })));
    for prime in [PRIME + 2, 1 << 37, 65_537 * 65_537, 3] {
        assert_eq!(refused(prime, 1), Misuse::PlainPrime { prime }.into());
    }
}

#[test]
fn what_a_hostile_peer_sends_is_refused_by_name() {
    let mut pair = Pair::new(1, &[]);
    let (parameters, secret) = (pair.parameters.clone(), &pair.secret);
    let key = secret.rotation_key(Rotation::Swap, &mut pair.prg);
    assert_eq!(key.len(), parameters.rotation_key_bytes());
    let mut rotations = Rotations::new(&parameters);
    for wrong in [&key[..key.len() - 1], &[]] {
        let error = rotations.add(Rotation::Swap, wrong).unwrap_err();
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::WrongLength { what: "rotation key", .. })));
    }
    let mut large = key;
    large[16..32].fill(0xff);
    let error = rotations.add(Rotation::Swap, &large).unwrap_err();
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::NotReduced { what: "rotation key", .. })));
    let missing = rotations.rotate(Sum::new(&parameters), Rotation::Swap).unwrap_err();
    assert_eq!(missing, Misuse::NoRotation.into());
    assert!(matches!(secret.open(&[0; 7]), Err(Error::PeerMisbehaved(PeerMisbehaved::WrongLength { .. }))));
    let short = Ciphertext::from_bytes(&parameters, &[0; 40]).unwrap_err();
    assert!(matches!(short, Error::PeerMisbehaved(PeerMisbehaved::WrongLength { what: "ciphertext", .. })));
    assert!(secret.encrypt(&vec![0; SLOTS + 1], &mut pair.prg, &mut Vec::new()).is_err());
}
