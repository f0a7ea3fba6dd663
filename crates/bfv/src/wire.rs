//! Numbers of a fixed width, packed bit after bit, least significant first.

use crate::error::{Error, PeerMisbehaved};

/// Bytes that `count` numbers of `bits` bits take, the last byte filled up with zeros.
pub(crate) const fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Appends `values`, each below `2^bits` with `1 <= bits <= 64`, filling the last byte with zeros.
pub(crate) fn pack(values: impl IntoIterator<Item = u64>, bits: u32, out: &mut Vec<u8>) {
    let (mut pending, mut held) = (0_u128, 0);
    for value in values {
        pending |= u128::from(value) << held;
        held += bits;
        if held >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            held -= 64;
        }
    }
    let tail = (pending as u64).to_le_bytes();
    out.extend_from_slice(&tail[..held.div_ceil(8) as usize]);
}

/// Reads `count` numbers of `bits` bits from exactly [`packed_bytes`] bytes.
///
/// # Errors
/// [`PeerMisbehaved`] if there are more or fewer bytes, or if the bits after the last number are not zero.
pub(crate) fn unpack(what: &'static str, bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u64>, Error> {
    let expected = packed_bytes(count, bits);
    if bytes.len() != expected {
        return Err(PeerMisbehaved::WrongLength { what, expected, actual: bytes.len() }.into());
    }
    let mask = u64::MAX >> (64 - bits);
    let mut words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let (mut pending, mut held) = (0_u128, 0);
    let values = (0..count)
        .map(|_| {
            if held < bits {
                pending |= u128::from(words.next().unwrap_or(0)) << held;
                held += 64;
            }
            let value = pending as u64 & mask;
            pending >>= bits;
            held -= bits;
            value
        })
        .collect();
    if pending != 0 {
        return Err(PeerMisbehaved::DirtyPadding { what }.into());
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unpacking_undoes_packing(bits in 1_u32..=64, values in prop::collection::vec(any::<u64>(), 0..200)) {
            let values: Vec<u64> = values.into_iter().map(|x| x & u64::MAX >> (64 - bits)).collect();
            let mut bytes = vec![7];
            pack(values.iter().copied(), bits, &mut bytes);
            prop_assert_eq!(bytes.len() - 1, packed_bytes(values.len(), bits));
            prop_assert_eq!(unpack("test", &bytes[1..], values.len(), bits)?, values);
        }
    }

    #[test]
    fn bits_lie_least_significant_first() {
        let mut bytes = Vec::new();
        pack([0b101, 0b011, 0b110], 3, &mut bytes);
        assert_eq!(bytes, [0b10_011_101, 0b1]);
    }

    #[test]
    fn wrong_lengths_and_dirty_padding_are_named() {
        let wrong = unpack("reply", &[0; 3], 4, 7);
        assert_eq!(wrong, Err(PeerMisbehaved::WrongLength { what: "reply", expected: 4, actual: 3 }.into()));
        let dirty = unpack("reply", &[0, 0, 0, 0x10], 4, 7);
        assert_eq!(dirty, Err(PeerMisbehaved::DirtyPadding { what: "reply" }.into()));
        assert!(unpack("reply", &[0, 0, 0, 0x0f], 4, 7).is_ok());
    }
}
