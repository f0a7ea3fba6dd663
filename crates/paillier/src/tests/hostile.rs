//! Bytes from a peer that are not what they should be.

use crate::integer::{Integer, multiply};

use super::*;

const SIZE: KeySize = KeySize::Insecure512;

fn bytes(integer: &Integer, len: usize) -> Vec<u8> {
    let bytes = integer.as_words().iter().flat_map(|word| word.to_le_bytes());
    bytes.chain(std::iter::repeat(0)).take(len).collect()
}

/// As a peer sends a key; the proof is another's.
fn with_proof(key: &[u8]) -> Vec<u8> {
    [key, &KEY.public().to_bytes()[64..]].concat()
}

fn misbehaved<T>(result: Result<T, Error>) -> PeerMisbehaved {
    match result {
        Err(Error::PeerMisbehaved(what)) => what,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("this must be refused"),
    }
}

#[test]
fn ciphertexts_are_of_the_right_length() -> Result<(), Error> {
    let good = KEY.encrypt(&plaintexts(&[1, 2, 3]))?.to_bytes();
    for (count, bytes) in [(3, &good[1..]), (2, &good[..]), (4, &good[..]), (usize::MAX, &good[..]), (0, &good[..1])] {
        let what = misbehaved(Ciphertexts::from_bytes(KEY.public(), count, bytes));
        assert!(matches!(what, PeerMisbehaved::WrongLength { .. }), "{what}");
    }
    Ok(())
}

#[test]
fn ciphertexts_outside_the_group_are_refused_and_named() -> Result<(), Error> {
    let good = KEY.encrypt(&plaintexts(&[0; 20]))?.to_bytes();
    let each = SIZE.ciphertext_bytes();
    let [p, q] = KEY.primes();
    let n = KEY.public().n();
    let outside = [
        (Integer::zero(), false),
        (KEY.public().n_squared().clone(), true),
        (Integer::from_words([u64::MAX; 16]), true),
        (p.clone(), false),
        (multiply(q, q), false),
        (n.clone(), false),
        (multiply(n, &Integer::from(77_u64)), false),
    ];
    for (value, too_large) in outside {
        for index in [0, 7, 19] {
            let mut bad = good.clone();
            bad[index * each..(index + 1) * each].copy_from_slice(&bytes(&value, each));
            let expected =
                if too_large { PeerMisbehaved::NotReduced { index } } else { PeerMisbehaved::NotInvertible { index } };
            assert_eq!(misbehaved(Ciphertexts::from_bytes(KEY.public(), 20, &bad)), expected);
        }
    }
    Ok(())
}

#[test]
fn factors_that_cancel_out_in_the_product_are_still_found() -> Result<(), Error> {
    // One multiple of p and one of q: their product is zero, not invertible either.
    let each = SIZE.ciphertext_bytes();
    let mut bad = KEY.encrypt(&plaintexts(&[0; 9]))?.to_bytes();
    for (index, prime) in KEY.primes().into_iter().enumerate() {
        bad[8 * index * each..][..each].copy_from_slice(&bytes(prime, each));
    }
    let what = misbehaved(Ciphertexts::from_bytes(KEY.public(), 9, &bad));
    assert_eq!(what, PeerMisbehaved::NotInvertible { index: 0 });
    Ok(())
}

#[test]
fn public_keys_that_no_honest_owner_made_are_refused() -> Result<(), Error> {
    let mut prg = Prg::from_seed(&Seed::from_bytes([2; 16]));
    let prime = |bits: usize, prg: &mut Prg| crate::primes::safe_prime(bits, prg);
    let n = KEY.public().n();
    let half = prime(256, &mut prg);
    let fourth = prime(128, &mut prg);
    let square = multiply(&half, &half);
    let third = prime(171, &mut prg);
    let cube = multiply(&multiply(&third, &third), &third);
    let fourth_power = multiply(&multiply(&fourth, &fourth), &multiply(&fourth, &fourth));
    let small_factor = multiply(&Integer::from_words([65_521]), &Integer::from_words([u64::MAX; 7]));
    let even = n.wrapping_sub(Integer::from(1_u64));
    let whole = prime(512, &mut prg);
    let cases = [
        (bytes(&even, 64), "it is even"),
        (bytes(&n.shr(1), 64), "its top bit is not set"),
        (vec![0; 64], "its top bit is not set"),
        (bytes(&small_factor, 64), "its top bit is not set"),
        (vec![0xff; 64], "it has a small factor"),
        (bytes(&whole, 64), "it is a prime"),
        (bytes(&square, 64), "it is a perfect power"),
        (bytes(&fourth_power, 64), "it is a perfect power"),
    ];
    for (bytes, reason) in cases {
        let what = misbehaved(PublicKey::from_bytes(SIZE, &with_proof(&bytes)));
        assert_eq!(what, PeerMisbehaved::Key { reason });
    }
    if cube.bits() == 512 {
        let what = misbehaved(PublicKey::from_bytes(SIZE, &with_proof(&bytes(&cube, 64))));
        assert_eq!(what, PeerMisbehaved::Key { reason: "it is a perfect power" });
    }
    let what = misbehaved(PublicKey::from_bytes(SIZE, &KEY.public().to_bytes()[..64]));
    assert_eq!(what, PeerMisbehaved::WrongLength { what: "a public key", expected: 9 * 64, actual: 64 });
    assert_eq!(PublicKey::from_bytes(SIZE, &KEY.public().to_bytes())?, *KEY.public());
    Ok(())
}

#[test]
fn private_keys_are_read_back_and_damaged_ones_are_not() -> Result<(), Error> {
    let bytes = KEY.to_bytes();
    let read = PrivateKey::from_bytes(SIZE, &bytes)?;
    assert_eq!(read.public(), KEY.public());
    assert_eq!(read.decrypt(&KEY.encrypt(&plaintexts(&[-5]))?)?[0].to_i64(), Some(-5));
    for at in [0, 31, 32, 63] {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 4;
        let error = PrivateKey::from_bytes(SIZE, &damaged).expect_err("damaged");
        assert!(matches!(error, Error::Misuse(Misuse::NotAPrivateKey)));
    }
    let twice = [&bytes[..32], &bytes[..32]].concat();
    assert!(PrivateKey::from_bytes(SIZE, &twice).is_err() && PrivateKey::from_bytes(SIZE, &bytes[1..]).is_err());
    Ok(())
}

#[test]
fn keys_do_not_mix() -> Result<(), Error> {
    let other = PrivateKey::generate_from(SIZE, &mut Prg::from_seed(&Seed::from_bytes([3; 16])))?;
    let mut ciphertexts = KEY.encrypt(&plaintexts(&[1]))?;
    let foreign = other.encrypt(&plaintexts(&[1]))?;
    let differ = |result: Result<(), Error>| matches!(result, Err(Error::Misuse(Misuse::KeysDiffer)));
    assert!(differ(ciphertexts.add(&foreign)));
    assert!(differ(ciphertexts.append(foreign.clone())));
    assert!(differ(ciphertexts.randomize(other.noise(1)?)));
    assert!(differ(KEY.decrypt(&foreign).map(|_| ())));
    Ok(())
}
