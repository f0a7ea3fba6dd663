//! Inversions of many numbers at the price of one (Montgomery, 1987).

use crate::arch::LANES;
use crate::error::{Error, PeerMisbehaved};
use crate::integer::{from_limbs, odd, reduce, resize, to_limbs};
use crate::keys::PublicKey;
use crate::lanes::{Lanes, Residues, load, store};

/// The inverses of all numbers, both in Montgomery's form: three products each and one inversion. Fails with
/// [`PeerMisbehaved::NotInvertible`] if there is a number without one, which ciphertexts that were checked cannot lead
/// to.
pub(super) fn invert(key: &PublicKey, numbers: &Residues) -> Result<Residues, Error> {
    let modulus = key.modulus();
    let limbs = modulus.limbs();
    // Running products before each vector, lane by lane.
    let mut running = modulus.one().clone();
    let mut before = Vec::with_capacity(numbers.len().div_ceil(LANES));
    for numbers in numbers.eights() {
        before.push(running.clone());
        modulus.multiply(&mut running, &load(limbs, numbers));
    }
    let mut running = invert_lanes(key, &running)?;
    let mut out = Residues::zero(limbs, numbers.len());
    let vectors: Vec<_> = out.eights_mut().zip(numbers.eights()).zip(&before).collect();
    for ((out, numbers), before) in vectors.into_iter().rev() {
        let mut inverse = before.clone();
        modulus.multiply(&mut inverse, &running);
        store(&inverse, out);
        modulus.multiply(&mut running, &load(limbs, numbers));
    }
    Ok(out)
}

/// The inverse of each lane, by one inversion: the product of the other lanes times the inverse of the product of all.
fn invert_lanes(key: &PublicKey, numbers: &Lanes) -> Result<Lanes, Error> {
    let modulus = key.modulus();
    // `others` gathers every other lane by turning the lanes around seven times.
    let mut turned = rotate(numbers);
    let mut others = turned.clone();
    for _ in 2..LANES {
        turned = rotate(&turned);
        modulus.multiply(&mut others, &turned);
    }
    let mut product = others.clone();
    modulus.multiply(&mut product, numbers);
    let mut inverse = invert_one(key, &product)?;
    modulus.multiply(&mut inverse, &others);
    Ok(inverse)
}

/// The inverse of a number that is in every lane. It is found modulo `n`, at a quarter of the price, and lifted to
/// `n^2` by a step of Newton's iteration: `y' = 2 y - x y^2`.
fn invert_one(key: &PublicKey, x: &Lanes) -> Result<Lanes, Error> {
    let (modulus, limbs, words) = (key.modulus(), key.modulus().limbs(), 2 * key.size().words() + 1);
    let leave = |lanes: &Lanes| {
        let mut plain = lanes.clone();
        modulus.leave(&mut plain);
        from_limbs(&plain.lane(0), words)
    };
    // The time tells of ciphertexts, which are public.
    let inverse = reduce(&leave(x), key.n()).invert_odd_mod_vartime(&odd(key.n())).into_option();
    let inverse = inverse.ok_or(PeerMisbehaved::NotInvertible { index: 0 })?;
    let mut y = Lanes::broadcast(&to_limbs(inverse.as_words(), limbs));
    modulus.enter(&mut y);
    let mut square = x.clone();
    modulus.multiply(&mut square, &y);
    modulus.multiply(&mut square, &y);
    let y = resize(&inverse, words);
    let lifted = y.wrapping_add(&y).wrapping_add(resize(key.n_squared(), words)).wrapping_sub(leave(&square));
    let mut lifted = Lanes::broadcast(&to_limbs(lifted.as_words(), limbs));
    modulus.enter(&mut lifted);
    Ok(lifted)
}

/// Each number in the lane before its own.
fn rotate(numbers: &Lanes) -> Lanes {
    let mut rotated = numbers.clone();
    rotated.0.iter_mut().for_each(|row| row.0.rotate_left(1));
    rotated
}
