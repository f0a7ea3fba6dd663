//! Between slots, the plaintext polynomial and the phase of a ciphertext.

use zeroize::Zeroizing;

use crate::polynomial::Polynomial;

use super::parameters::{LIMBS, Parameters};

/// The polynomial modulo `p` with these slots (at most `N`, reduced).
pub(super) fn from_slots(parameters: &Parameters, slots: &[u64]) -> Zeroizing<Vec<u64>> {
    let inner = parameters.inner();
    let mut polynomial = Zeroizing::new(inner.order.to_transformed(slots));
    inner.plain.inverse(&mut polynomial);
    polynomial
}

/// The slots of a polynomial modulo `p`.
pub(super) fn to_slots(parameters: &Parameters, polynomial: &[u64]) -> Vec<u64> {
    let inner = parameters.inner();
    let mut values = Zeroizing::new(polynomial.to_vec());
    inner.plain.forward(&mut values);
    inner.order.to_slots(&values)
}

/// `round(q m / p)` for every coefficient `m` modulo `p`.
///
/// With `r = q m + (p - 1) / 2 mod p` that is `(q m + (p - 1) / 2 - r) / p`, and `q` vanishes modulo each of its primes.
pub(super) fn encode(parameters: &Parameters, message: &[u64]) -> Polynomial<LIMBS> {
    let inner = parameters.inner();
    let plain = inner.plain.prime();
    let half = plain.value() / 2;
    let remainders: Zeroizing<Vec<u64>> =
        Zeroizing::new(message.iter().map(|&m| plain.add(plain.scale(m, inner.modulus), half)).collect());
    let mut encoded = Polynomial::zero(parameters.degree());
    for ((residues, ntt), &inverse) in encoded.0.iter_mut().zip(inner.limbs()).zip(&inner.inverse_plain) {
        let prime = ntt.prime();
        for (residue, &remainder) in residues.iter_mut().zip(remainders.iter()) {
            *residue = prime.scale(prime.sub(half, remainder), inverse);
        }
    }
    encoded
}

/// Coefficients modulo `p`, each the nearest to zero, modulo the primes of `q`.
pub(super) fn centred(parameters: &Parameters, polynomial: &[u64]) -> Polynomial<LIMBS> {
    let inner = parameters.inner();
    let plain = inner.plain.prime().value();
    Polynomial(inner.limbs().each_ref().map(|ntt| {
        let shift = ntt.prime().value() - plain;
        polynomial
            .iter()
            .map(|&x| x.wrapping_add(shift & (plain / 2).wrapping_sub(x).cast_signed().wrapping_shr(63) as u64))
            .collect()
    }))
}

/// The coefficient with these residues switched from `q` to `2^reply_bits`, rounded: `x / q` is the sum of
/// `(x_i / (q / q_i) mod q_i) / q_i`, an integer aside.
pub(super) fn switch(parameters: &Parameters, residues: [u64; LIMBS]) -> u64 {
    let inner = parameters.inner();
    let fraction = |i: usize| {
        let prime = inner.ntts[i].prime();
        prime.fraction(prime.scale(residues[i], inner.inverse_rest[i]))
    };
    let turn = (0..LIMBS).fold(0_u64, |turn, i| turn.wrapping_add(fraction(i)));
    let bits = parameters.reply_bits();
    turn.wrapping_add(1 << (63 - bits)) >> (64 - bits)
}

/// The residue modulo `p` of a phase modulo `2^reply_bits`.
pub(super) fn decode(parameters: &Parameters, phase: u64) -> u64 {
    let bits = parameters.reply_bits();
    let rounded = (u128::from(phase) * u128::from(parameters.prime()) + (1 << (bits - 1))) >> bits;
    parameters.inner().plain.prime().reduce(rounded as u64)
}

/// The integer of absolute value below `q0 q1 / 4` with these residues modulo `q`'s first two primes, modulo 2^64.
pub(super) fn integer(parameters: &Parameters, x0: u64, x1: u64) -> u64 {
    let inner = parameters.inner();
    let [p0, p1] = [inner.ntts[0].prime(), inner.ntts[1].prime()];
    let digit = p0.scale(p0.sub(x0, p0.reduce(x1)), inner.inverse_second);
    // A negative integer has its top digit in the upper half.
    let negative = 0_u64.wrapping_sub(u64::from(digit > p0.value() / 2));
    let modulus = p0.value().wrapping_mul(p1.value());
    x1.wrapping_add(p1.value().wrapping_mul(digit)).wrapping_sub(modulus & negative)
}
