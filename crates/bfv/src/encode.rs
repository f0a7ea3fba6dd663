//! Between the plaintext ring and the phase of a ciphertext.

use crate::arch::{CHUNK, Values, vectorised};
use crate::parameters::Parameters;
use crate::polynomial::Polynomial;

/// `round(q m / 2^l)` for every coefficient `m` of a message of at most `N` ring elements.
///
/// Exact, where `round(q / 2^l) m` would add up to `m` half units of error, which a wrap of `m w` modulo `2^l` then turns
/// into noise as large as the message. Let `r = q m + 2^(l-1) mod 2^l`. Then `(q m + 2^(l-1) - r) / 2^l` is the rounded
/// quotient, and as `q` vanishes modulo each prime, it is `(2^(l-1) - r) / 2^l` there.
pub(crate) fn encode(parameters: &Parameters, message: &[u64]) -> Polynomial {
    let half = 1 << (parameters.ring_bits() - 1);
    let (low, mask) = (parameters.modulus_low(), parameters.ring_mask());
    let remainder = |m: u64| low.wrapping_mul(m).wrapping_add(half) & mask;
    Polynomial([0, 1].map(|i| {
        let (ntt, scale) = (&parameters.ntts()[i], parameters.inverse_scale()[i]);
        let (prime, one_half) = (*ntt.prime(), ntt.prime().scale(half, scale));
        let mut residues = Values::zero(parameters.degree());
        for (residues, message) in residues[..message.len()].chunks_mut(CHUNK).zip(message.chunks(CHUNK)) {
            vectorised(|| residues.iter_mut().zip(message).for_each(|(x, &m)| *x = remainder(m)));
            ntt.scale(residues, scale.value());
            vectorised(|| residues.iter_mut().for_each(|x| *x = prime.sub(one_half, *x)));
        }
        residues
    }))
}

/// `round(2^64 x / q)` for the coefficients `x` with these residues, as fractions of one turn: at most 5 units off.
///
/// With `v = (x0 - x1) / p1 mod p0`, `x = x1 + p1 v` and so `x / q = v / p0 + (x1 / p1) / p0`. The second prime is the smaller one.
fn turns(parameters: &Parameters, [x0, x1]: [&[u64]; 2], turns: &mut [u64]) {
    let [first, second] = parameters.ntts();
    digits(parameters, [x0, x1], turns);
    first.turns(second, turns, x1);
}

/// `(x0 - x1) / p1 mod p0`.
fn digits(parameters: &Parameters, [x0, x1]: [&[u64]; 2], digits: &mut [u64]) {
    let [first, _] = parameters.ntts();
    let (prime, places) = (*first.prime(), digits.iter_mut().zip(x0.iter().zip(x1)));
    vectorised(|| places.for_each(|(digit, (&x0, &x1))| *digit = prime.sub(x0, x1)));
    first.scale(digits, parameters.inverse_second().value());
}

/// Coefficients with these residues, switched from `q` to `2^reply_bits`, rounded, to as many places.
pub(crate) fn switch(parameters: &Parameters, residues: [&[u64]; 2], switched: &mut [u64]) {
    turns(parameters, residues, switched);
    let bits = parameters.reply_bits();
    vectorised(|| switched.iter_mut().for_each(|x| *x = round_turn(*x, bits)));
}

/// A fraction of a turn in units of 2^-64, rounded to units of `2^-bits`.
fn round_turn(turn: u64, bits: u32) -> u64 {
    turn.wrapping_add(1 << (63 - bits)) >> (64 - bits)
}

/// The ring elements of phases modulo `2^reply_bits`: rounded to `l` bits.
pub(crate) fn decode(parameters: &Parameters, phases: &[u64]) -> Vec<u64> {
    let (unused, bits) = (64 - parameters.reply_bits(), parameters.ring_bits());
    vectorised(|| phases.iter().map(|&phase| round_turn(phase << unused, bits)).collect())
}

/// The integers of absolute value below `q / 4` with these residues, modulo 2^64.
pub(crate) fn integers(parameters: &Parameters, [x0, x1]: [&[u64]; 2]) -> Vec<u64> {
    let [p0, p1] = parameters.ntts().each_ref().map(|ntt| *ntt.prime());
    let modulus = p0.value().wrapping_mul(p1.value());
    let integer = |digit: u64, x1: u64| {
        // A negative integer has its top digit in the upper half.
        let negative = 0_u64.wrapping_sub(u64::from(digit > p0.value() / 2));
        x1.wrapping_add(p1.value().wrapping_mul(digit)).wrapping_sub(modulus & negative)
    };
    let mut integers = vec![0; x1.len()];
    digits(parameters, [x0, x1], &mut integers);
    vectorised(|| integers.iter_mut().zip(x1).for_each(|(x, &x1)| *x = integer(*x, x1)));
    integers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::Resharing;

    fn parameters(ring_bits: u32) -> Parameters {
        Parameters::choose(ring_bits, 16, 1 << 10, 4096, Resharing::Approximate).unwrap()
    }

    fn modulus(parameters: &Parameters) -> i128 {
        parameters.primes().map(i128::from).iter().product()
    }

    fn residues(parameters: &Parameters, x: i128) -> [u64; 2] {
        parameters.primes().map(|p| x.rem_euclid(i128::from(p)) as u64)
    }

    /// `floor(q m / 2^l + 1/2)` by long multiplication, `m` in two halves.
    fn rounded_product(q: i128, m: u64, l: u32) -> i128 {
        // q = high 2^l + low, so q m / 2^l = high m + low m / 2^l.
        let (high, low) = (q >> l, q & ((1 << l) - 1));
        high * i128::from(m) + ((low * i128::from(m) + (1 << (l - 1))) >> l)
    }

    proptest! {
        #[test]
        fn encoding_rounds_exactly(ring_bits in 8_u32..=50, m: u64) {
            let parameters = parameters(ring_bits);
            let m = m & parameters.ring_mask();
            let encoded = encode(&parameters, &[m]);
            let expected = rounded_product(modulus(&parameters), m, ring_bits);
            prop_assert_eq!([encoded.0[0][0], encoded.0[1][0]], residues(&parameters, expected));
        }

        #[test]
        fn turns_are_close(ring_bits in 8_u32..=50, high: u64, low: u64) {
            let parameters = parameters(ring_bits);
            let q = modulus(&parameters);
            let x = (i128::from(high) << 62 | i128::from(low)).rem_euclid(q);
            let [x0, x1] = residues(&parameters, x);
            // x / q in units of 2^-64 by long division, 16 bits at a time.
            let (mut exact, mut rest) = (0_u64, x);
            for _ in 0..8 {
                rest <<= 8;
                exact = exact << 8 | (rest / q) as u64;
                rest %= q;
            }
            let mut turn = [0];
            turns(&parameters, [&[x0], &[x1]], &mut turn);
            let off = exact.wrapping_sub(turn[0]) as i64;
            prop_assert!((0..=5).contains(&off), "{off} units off");
        }

        #[test]
        fn integers_come_back_modulo_words(x: i64, times in 1_i64..1000) {
            let parameters = parameters(37);
            let x = i128::from(x) * i128::from(times);
            let [x0, x1] = residues(&parameters, x);
            prop_assert_eq!(integers(&parameters, [&[x0], &[x1]]), [x as u64]);
        }

        #[test]
        fn decoding_undoes_scaling(ring_bits in 8_u32..=50, m: u64, noise in -127_i64..=127) {
            let parameters = parameters(ring_bits);
            let m = m & parameters.ring_mask();
            let guard = parameters.reply_bits() - ring_bits;
            let phase = (m << guard).wrapping_add_signed(noise) & parameters.reply_mask();
            prop_assert_eq!(decode(&parameters, &[phase]), [m]);
        }
    }

    #[test]
    fn zero_encodes_to_zero() {
        let parameters = parameters(37);
        let encoded = encode(&parameters, &[0; 4]);
        assert!(encoded.0.iter().flatten().all(|&x| x == 0));
    }
}
