//! Noise is fresh.

use std::collections::HashSet;

use super::*;
use crate::integer::{Integer, multiply};
use crate::primes::is_probable_prime;

fn distinct(ciphertexts: &Ciphertexts) -> HashSet<Vec<u8>> {
    let size = KeySize::Insecure512.ciphertext_bytes();
    ciphertexts.to_bytes().chunks(size).map(<[u8]>::to_vec).collect()
}

#[test]
fn the_same_plaintext_never_looks_the_same() -> Result<(), Error> {
    let table = NoiseTable::new(KEY.public())?;
    let zeros = plaintexts(&[0; 50]);
    let mut all = Ciphertexts::encrypt(&zeros, table.draw(50)?)?;
    all.append(Ciphertexts::encrypt(&zeros, table.draw(50)?)?)?;
    all.append(KEY.encrypt(&zeros)?)?;
    all.append(Ciphertexts::encrypt(&zeros, Noise::powers(KEY.public(), 50)?)?)?;
    assert_eq!(distinct(&all).len(), 200);
    Ok(())
}

#[test]
fn a_table_that_has_served_makes_powers() -> Result<(), Error> {
    let table = NoiseTable::with_draws(KEY.public(), 20)?;
    let zeros = |count: usize| Ciphertexts::encrypt(&plaintexts(&vec![0; count]), table.draw(count)?);
    // The control: while there are draws, each takes from them.
    let mut all = zeros(15)?;
    assert_eq!(table.left(), 5);
    all.append(zeros(6)?)?;
    assert_eq!((table.left(), distinct(&all).len()), (5, 21));
    assert_eq!(decrypted(&all), vec![0; 21]);
    Ok(())
}

#[test]
fn noise_reaches_residues_of_every_character() -> Result<(), Error> {
    // Whether a residue is a square modulo either prime is what a single base to random powers would not hide: its
    // powers reach two of the four classes.
    let table = NoiseTable::new(KEY.public())?;
    for noise in [table.draw(200)?, KEY.noise(200)?, Noise::powers(KEY.public(), 200)?] {
        let mut zeros = Ciphertexts::encrypt(&plaintexts(&[0; 200]), noise)?;
        let mut counts = [0; 4];
        for bytes in zeros.to_bytes().chunks(KeySize::Insecure512.ciphertext_bytes()) {
            counts[KEY.characters(bytes)] += 1;
        }
        // Six standard deviations around 50.
        assert!(counts.iter().all(|count| (12..=88).contains(count)), "{counts:?}");
        zeros = zeros.select(&[0; 2])?;
        assert_eq!(distinct(&zeros).len(), 1, "a copy is told by its bytes");
    }
    Ok(())
}

#[test]
fn randomizing_keeps_the_plaintext_and_nothing_else() -> Result<(), Error> {
    let values: Vec<i64> = (-10..10).collect();
    let ciphertexts = KEY.encrypt(&plaintexts(&values))?;
    let mut fresh = ciphertexts.clone();
    fresh.randomize(NoiseTable::new(KEY.public())?.draw(20)?)?;
    assert_eq!(decrypted(&fresh), values);
    assert!(distinct(&fresh).is_disjoint(&distinct(&ciphertexts)));
    Ok(())
}

#[test]
fn a_table_of_a_key_that_can_have_no_noise_is_refused() {
    // 2^254 + 5 is a multiple of 3, as a third of all random numbers are: some of a table's bases share it.
    let other = Integer::from_words([5, 0, 0, 1 << 62]);
    let key = PublicKey::new(KeySize::Insecure512, multiply(KEY.primes()[0], &other), Vec::new());
    let result = NoiseTable::new(&key).map(drop);
    assert!(matches!(result, Err(Error::PeerMisbehaved(PeerMisbehaved::Key { .. }))), "{result:?}");
}

#[test]
fn a_key_is_two_far_apart_safe_primes() -> Result<(), Error> {
    let mut prg = Prg::from_os()?;
    for prime in KEY.primes() {
        assert_eq!(prime.bits(), 256);
        assert!(is_probable_prime(prime, &mut prg) && is_probable_prime(&prime.shr(1), &mut prg));
    }
    assert_eq!(KEY.public().n().bits(), 512);
    Ok(())
}
