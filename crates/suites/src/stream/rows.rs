//! Tensors on their way between stages: rows of one length, an element in each.
//!
//! Under Paillier a row is a ciphertext; over BFV it is a number of the program's ring in whole bytes, little-endian, so
//! that whoever moves rows can cut and reorder either.

use privet_ring::Modulus;

use crate::{Error, PeerMisbehaved};

/// Bytes of a ring element.
pub(super) fn ring_bytes(ring: Modulus) -> usize {
    (ring.bits() as usize).div_ceil(8)
}

/// Ring elements, a row each.
pub(super) fn from_ring(ring: Modulus, values: &[u64]) -> Vec<u8> {
    let bytes = ring_bytes(ring);
    let mut rows = Vec::with_capacity(values.len() * bytes);
    values.iter().for_each(|&value| rows.extend_from_slice(&ring.reduce(value).to_le_bytes()[..bytes]));
    rows
}

/// The elements of rows. Fails with [`PeerMisbehaved::Element`] if one is not of the ring; [`Error::Misuse`] if a row
/// is cut.
pub(super) fn to_ring(ring: Modulus, rows: &[u8]) -> Result<Vec<u64>, Error> {
    let bytes = ring_bytes(ring);
    if !rows.len().is_multiple_of(bytes) {
        return Err(Error::Misuse("a row of a tensor is cut".into()));
    }
    let mut over = 0;
    let values = rows
        .chunks_exact(bytes)
        .map(|row| {
            let value = row.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            over |= value & !ring.mask();
            value
        })
        .collect();
    if over == 0 { Ok(values) } else { Err(PeerMisbehaved::Element.into()) }
}

/// Sums of elements, modulo the ring.
///
/// # Errors
/// As [`to_ring`]; [`Error::Misuse`] if there are not as many of both.
pub(super) fn add(ring: Modulus, one: &[u8], other: &[u8]) -> Result<Vec<u8>, Error> {
    match one.len() == other.len() {
        true => Ok(from_ring(ring, &ring.add(&to_ring(ring, one)?, &to_ring(ring, other)?))),
        false => Err(Error::Misuse("a mask does not fit its tensor".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_ring_elements_and_nothing_else() {
        let ring = Modulus::new(37);
        let values = [0, 1, ring.mask(), 1 << 36, 0x12_3456_789a];
        let rows = from_ring(ring, &values);
        assert_eq!(rows.len(), 5 * values.len());
        assert_eq!(to_ring(ring, &rows).expect("elements"), values.map(|value| ring.reduce(value)));
        let over = (1_u64 << 37).to_le_bytes();
        assert!(matches!(to_ring(ring, &over[..5]), Err(Error::PeerMisbehaved(PeerMisbehaved::Element))));
        assert!(matches!(to_ring(ring, &rows[1..]), Err(Error::Misuse(_))));
        let sums = add(ring, &rows[5..15], &rows[5..15]).expect("sums");
        assert_eq!(to_ring(ring, &sums).expect("elements"), [2, ring.mask() - 1]);
        assert!(matches!(add(ring, &rows[..5], &rows[..10]), Err(Error::Misuse(_))));
    }
}
