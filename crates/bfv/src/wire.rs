//! Numbers of a fixed width, packed bit after bit, least significant first.

use privet_ring::Modulus;

use crate::error::{Error, PeerMisbehaved};

/// Bytes that `count` numbers of `bits` bits take, the last byte filled up with zeros.
pub(crate) const fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Appends `values`, each below `2^bits` with `1 <= bits <= 64`, filling the last byte with zeros.
pub(crate) fn pack(values: &[u64], bits: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + packed_bytes(values.len(), bits), 0);
    Modulus::new(bits).pack_into(&mut out[start..], values);
}

/// Reads `count` numbers of `bits` bits from exactly [`packed_bytes`] bytes. Fails with [`PeerMisbehaved`] if there are
/// more or fewer bytes, or if the bits after the last number are not zero.
pub(crate) fn unpack(what: &'static str, bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u64>, Error> {
    let mut values = vec![0; count];
    unpack_to(what, bytes, &mut values, bits)?;
    Ok(values)
}

/// [`unpack`] to as many places as there are numbers.
pub(crate) fn unpack_to(what: &'static str, bytes: &[u8], values: &mut [u64], bits: u32) -> Result<(), Error> {
    let (expected, used_bits) = (packed_bytes(values.len(), bits), values.len() * bits as usize);
    if bytes.len() != expected {
        return Err(PeerMisbehaved::WrongLength { what, expected, actual: bytes.len() }.into());
    }
    if bytes.last().is_some_and(|last| used_bits % 8 != 0 && last >> (used_bits % 8) != 0) {
        return Err(PeerMisbehaved::DirtyPadding { what }.into());
    }
    Modulus::new(bits).unpack_into(values, bytes);
    Ok(())
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
            pack(&values, bits, &mut bytes);
            prop_assert_eq!(bytes.len() - 1, packed_bytes(values.len(), bits));
            prop_assert_eq!(unpack("test", &bytes[1..], values.len(), bits)?, values);
        }
    }

    #[test]
    fn bits_lie_least_significant_first() {
        let mut bytes = Vec::new();
        pack(&[0b101, 0b011, 0b110], 3, &mut bytes);
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
