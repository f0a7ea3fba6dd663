//! Large integers, and their limbs in radix 2^52.
//!
//! Everything that is done once for a key, or once for a batch, is done by `crypto-bigint`; what is done for each
//! number is done by [`crate::modulus`].

use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd};
use privet_prg::Prg;

use crate::arch::LIMB_BITS;

/// A natural number of a fixed number of 64-bit words.
pub(crate) type Integer = BoxedUint;

/// `x` in exactly `words` words; higher ones must be zero.
pub(crate) fn resize(x: &Integer, words: usize) -> Integer {
    debug_assert!(x.as_words().iter().skip(words).all(|&word| word == 0), "a number of {words} words");
    Integer::from_words(x.as_words().iter().copied().chain(std::iter::repeat(0)).take(words))
}

/// The limbs of a number of `words`, least significant first; it must fit.
pub(crate) fn to_limbs(words: &[u64], limbs: usize) -> Vec<u64> {
    let word = |i: usize| words.get(i).copied().map_or(0, u128::from);
    let limb = |i: usize| {
        let (at, shift) = (i * LIMB_BITS / 64, i * LIMB_BITS % 64);
        ((word(at) | word(at + 1) << 64) >> shift) as u64 & ((1 << LIMB_BITS) - 1)
    };
    (0..limbs).map(limb).collect()
}

/// The number of these limbs, in `words` words; it must fit.
pub(crate) fn from_limbs(limbs: &[u64], words: usize) -> Integer {
    let mut out = vec![0; words];
    for (i, &limb) in limbs.iter().enumerate() {
        let (at, shift) = (i * LIMB_BITS / 64, i * LIMB_BITS % 64);
        let wide = u128::from(limb) << shift;
        if let Some(word) = out.get_mut(at) {
            *word |= wide as u64;
        }
        if let Some(word) = out.get_mut(at + 1) {
            *word |= (wide >> 64) as u64;
        }
    }
    Integer::from_words(out)
}

/// `x` modulo an odd number, as wide as the latter.
pub(crate) fn reduce(x: &Integer, modulus: &Integer) -> Integer {
    x.rem(&nonzero(modulus))
}

/// `x` modulo a small number that is public, in constant time.
pub(crate) fn remainder(x: &Integer, small: u32) -> u64 {
    let modulus = u64::from(small);
    let reciprocal = u64::MAX / modulus;
    x.as_words().iter().rev().flat_map(|word| [word >> 32, word & u64::from(u32::MAX)]).fold(0, |remainder, half| {
        let value = remainder << 32 | half;
        let quotient = ((u128::from(value) * u128::from(reciprocal)) >> 64) as u64;
        // The quotient is at most one too small.
        let left = value - quotient * modulus;
        let reduced = left.wrapping_sub(modulus);
        reduced.wrapping_add(modulus & (reduced >> 63).wrapping_neg())
    })
}

/// `1 / x` modulo an odd number, if there is one.
pub(crate) fn invert(x: &Integer, modulus: &Integer) -> Option<Integer> {
    let words = modulus.as_words().len();
    resize(&reduce(x, modulus), words).invert_odd_mod(&odd(modulus)).into_option()
}

/// `a b`, as wide as both together.
pub(crate) fn multiply(a: &Integer, b: &Integer) -> Integer {
    a.concatenating_mul(b)
}

/// A uniform number below `bound`, which has its top bit within the last word. Draws again while it is too large.
pub(crate) fn random_below(bound: &Integer, prg: &mut Prg) -> Integer {
    let bits = bound.bits();
    let mut words = vec![0; bound.as_words().len()];
    loop {
        prg.fill_words(&mut words);
        for (i, word) in words.iter_mut().enumerate() {
            *word &= match bits.saturating_sub(64 * i as u32) {
                0 => 0,
                left => u64::MAX >> (64 - left.min(64)),
            };
        }
        let candidate = Integer::from_words(words.iter().copied());
        if candidate < *bound {
            return candidate;
        }
    }
}

/// The number as a divisor.
///
/// # Panics
/// If it is zero.
pub(crate) fn nonzero(x: &Integer) -> NonZero<Integer> {
    x.to_nz().into_option().expect("a modulus is not zero")
}

/// The number as an odd modulus.
///
/// # Panics
/// If it is even.
pub(crate) fn odd(x: &Integer) -> Odd<Integer> {
    x.to_odd().into_option().expect("a modulus is odd")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn limbs_and_words_hold_the_same_number(words in prop::collection::vec(any::<u64>(), 1..80)) {
            let limbs = to_limbs(&words, (64 * words.len()).div_ceil(LIMB_BITS));
            prop_assert!(limbs.iter().all(|limb| limb >> LIMB_BITS == 0));
            let integer = from_limbs(&limbs, words.len());
            prop_assert_eq!(integer.as_words(), &words[..]);
        }

        #[test]
        fn remainders_are_those_of_a_division(
            words in prop::collection::vec(prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)], 1..20),
            small in prop_oneof![2_u32.., Just(u32::MAX), 2_u32..9],
        ) {
            let integer = Integer::from_words(words);
            let expected = reduce(&integer, &Integer::from(u64::from(small)));
            prop_assert_eq!(remainder(&integer, small), expected.as_words()[0]);
        }
    }
}
