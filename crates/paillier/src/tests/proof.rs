//! Keys that share a factor with `phi(n)`: the attack that they allow, and the proof that refuses them.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};

use crate::integer::{Integer, invert, multiply, odd, random_below, reduce, resize};
use crate::primes::is_probable_prime;

use super::*;

const SIZE: KeySize = KeySize::Insecure512;

fn prg() -> Prg {
    Prg::from_seed(&Seed::from_bytes([8; 16]))
}

fn power(base: &Integer, exponent: &Integer, modulus: &Integer) -> Integer {
    BoxedMontyForm::new(reduce(base, modulus), &BoxedMontyParams::new(odd(modulus))).pow(exponent).retrieve()
}

/// A number of exactly `bits` bits.
fn random(bits: usize, prg: &mut Prg) -> Integer {
    let mut words = vec![0; bits.div_ceil(64)];
    prg.fill_words(&mut words);
    let top = bits - 1;
    words[top / 64] &= u64::MAX >> (63 - top % 64);
    words[top / 64] |= 1 << (top % 64);
    Integer::from_words(words)
}

/// Primes `p` and `q` of 512 bits together, where `p`, of `bits`, divides `q - 1`.
fn bad_primes(bits: usize, prg: &mut Prg) -> (Integer, Integer) {
    let p = loop {
        let candidate = random(bits, prg);
        if candidate.as_words()[0] & 1 == 1 && is_probable_prime(&candidate, prg) {
            break candidate;
        }
    };
    loop {
        let even = multiply(&p, &random(511 - 2 * bits, prg)).shl(1);
        let q = even.wrapping_add(resize(&Integer::one(), even.as_words().len()));
        let q = Integer::from_words(q.as_words()[..(q.bits() as usize).div_ceil(64)].iter().copied());
        if multiply(&p, &q).bits() == 512 && q.bits() > 64 && is_probable_prime(&q, prg) {
            return (p, q);
        }
    }
}

fn n_of(p: &Integer, q: &Integer) -> Integer {
    Integer::from_words(multiply(p, q).as_words()[..8].iter().copied())
}

fn bytes(n: &Integer) -> Vec<u8> {
    n.as_words().iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What the owner of a bad key reads from re-randomised multiples of one ciphertext: the weights.
fn weights_seen(out: &Ciphertexts, base: &Integer, exponent: &Integer, q_squared: &Integer) -> Vec<Option<i64>> {
    // All that is left of noise after this power is 1, and of the ciphertext its weight's power of an element of order p.
    let least = power(&invert(base, q_squared).expect("a unit"), &Integer::from(128_u64), q_squared);
    let table: Vec<Integer> =
        std::iter::successors(Some(least), |x| Some(reduce(&multiply(x, base), q_squared))).take(256).collect();
    let each = SIZE.ciphertext_bytes();
    let read = |bytes: &[u8]| {
        let (words, _) = bytes.as_chunks();
        let value = Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word)));
        let left = power(&value, exponent, q_squared);
        table.iter().position(|entry| *entry == left).map(|at| at as i64 - 128)
    };
    out.to_bytes().chunks(each).map(read).collect()
}

#[test]
fn without_the_proof_a_bad_key_reads_weights_and_with_it_the_key_is_refused() -> Result<(), Error> {
    let prg = &mut prg();
    let (p, q) = bad_primes(40, prg);
    let n = n_of(&p, &q);
    let q_squared = multiply(&q, &q);
    let p_squared = multiply(&p, &p);
    // (q - 1) q / p: powers to it leave of the group modulo q^2 what has order p.
    let cofactor = q.wrapping_sub(resize(&Integer::one(), q.as_words().len())) / crate::integer::nonzero(&p);
    let exponent = multiply(&cofactor, &q);
    let h = power(&random_below(&q_squared, prg), &exponent, &q_squared);
    assert_ne!(h, resize(&Integer::one(), h.as_words().len()));
    // 1 modulo p^2 and h modulo q^2.
    let one = resize(&Integer::one(), h.as_words().len());
    let step = multiply(&h.wrapping_sub(&one), &invert(&p_squared, &q_squared).expect("different primes"));
    let crafted = multiply(&p_squared, &reduce(&step, &q_squared));
    let crafted = crafted.wrapping_add(resize(&Integer::one(), crafted.as_words().len()));
    let crafted = reduce(&crafted, &multiply(&n, &n));

    // The control: a key that was not proved. Every weight comes out, whatever makes the noise.
    let unproved = PublicKey::new(SIZE, n.clone(), Vec::new());
    let secret = [-123, 77, 31, 0, -5, 1, 127, -128];
    let sent = bytes(&resize(&crafted, SIZE.ciphertext_bytes() / 8)).repeat(secret.len());
    let sent = Ciphertexts::from_bytes(&unproved, secret.len(), &sent)?;
    let base = power(&h, &exponent, &q_squared);
    for noise in [Noise::powers(&unproved, secret.len())?, NoiseTable::new(&unproved)?.draw(secret.len())?] {
        let mut out = sent.scale(&Weights::new(1, secret.len(), 8, secret.to_vec())?)?;
        out.randomize(noise)?;
        assert_eq!(weights_seen(&out, &base, &exponent, &q_squared), secret.map(|weight: i32| Some(i64::from(weight))));
    }

    // No proof holds for it: not none, not that of another key, and not the best that the cheat can do, which is roots of
    // whatever has any.
    let refused = |proof: &[u8]| {
        matches!(
            PublicKey::from_bytes(SIZE, &[bytes(&n), proof.to_vec()].concat()),
            Err(Error::PeerMisbehaved(PeerMisbehaved::Key { reason })) if reason.contains("common factor")
        )
    };
    assert!(refused(&[0; 512]) && refused(&[1; 512]));
    assert!(refused(&KEY.public().to_bytes()[64..]));
    let p_less = p.wrapping_sub(resize(&Integer::one(), p.as_words().len()));
    let units = multiply(&p_less, &cofactor);
    let root = reduce(&n, &units).invert_mod(&crate::integer::nonzero(&units)).expect("no factor is left");
    let best: Vec<u8> =
        crate::proof::challenges(SIZE, &n).iter().flat_map(|each| bytes(&power(each, &root, &n))).collect();
    assert!(refused(&best));
    Ok(())
}

#[test]
fn every_part_of_a_proof_counts() {
    let good = KEY.public().to_bytes();
    assert!(PublicKey::from_bytes(SIZE, &good).is_ok());
    for root in 0..8 {
        let mut bad = good.clone();
        bad[64 * (1 + root)] ^= 1;
        assert!(PublicKey::from_bytes(SIZE, &bad).is_err(), "root {root}");
    }
    // A root that is not reduced is another number with the same power, but nobody honest sends it.
    let n = KEY.public().n();
    let (words, _) = good[64..128].as_chunks();
    let root = Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word)));
    let (larger, carry) = root.overflowing_add(n);
    if !bool::from(carry) {
        let bad = [&good[..64], &bytes(&larger)[..], &good[128..]].concat();
        assert!(PublicKey::from_bytes(SIZE, &bad).is_err());
    }
}

#[test]
fn of_the_challenges_of_a_bad_key_few_have_roots() {
    // With p = 3, which the search for small factors would find, a third of all units has a root: what a challenge is
    // worth. With eight of them 60 keys in a row are refused but for a chance of one in a hundred.
    let prg = &mut prg();
    let (mut with_roots, mut all) = (0, 0);
    for _ in 0..60 {
        let (p, q) = loop {
            let even = multiply(&random(509, prg), &Integer::from(6_u64));
            let q = even.wrapping_add(resize(&Integer::one(), even.as_words().len()));
            let q = Integer::from_words(q.as_words()[..8].iter().copied());
            if q.as_words()[0] & 1 == 1 && q.bits() == 511 && is_probable_prime(&q, prg) {
                break (Integer::from(3_u64), q);
            }
        };
        let n = n_of(&p, &q);
        let third = q.wrapping_sub(resize(&Integer::one(), 8)) / crate::integer::nonzero(&resize(&p, 8));
        for challenge in crate::proof::challenges(SIZE, &n) {
            // An n-th power modulo q is a cube there.
            with_roots += usize::from(bool::from(power(&challenge, &third, &q).is_one()));
            all += 1;
        }
    }
    // Six standard deviations around a third of 480.
    assert_eq!(all, 480);
    assert!((98..=222).contains(&with_roots), "{with_roots} of {all}");
}
