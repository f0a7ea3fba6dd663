//! Bit planes: `n` values of `k` bits as `k` packed vectors of `n` bits.

use privet_prg::transpose;

use crate::Bits;

/// Planes `0 .. bits` of `values`: plane `j` holds bit `j` of every value.
pub fn from_values(values: &[u64], bits: u32) -> Vec<Bits> {
    let mut planes = vec![Vec::with_capacity(values.len().div_ceil(64)); bits as usize];
    for chunk in values.chunks(64) {
        let mut square = [0; 64];
        square[..chunk.len()].copy_from_slice(chunk);
        transpose::square(&mut square);
        for (plane, &word) in planes.iter_mut().zip(&square) {
            plane.push(word);
        }
    }
    planes.into_iter().map(|words| pack(words, values.len())).collect()
}

fn pack(words: Vec<u64>, len: usize) -> Bits {
    Bits::from_words(words, len).expect("one word per 64 values")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn planes_hold_the_bits(values: Vec<u64>, bits in 1u32..=64) {
            let planes = from_values(&values, bits);
            prop_assert_eq!(planes.len(), bits as usize);
            for (j, plane) in planes.iter().enumerate() {
                for (i, &value) in values.iter().enumerate() {
                    prop_assert_eq!(plane.get(i), value >> j & 1 == 1);
                }
            }
        }
    }
}
