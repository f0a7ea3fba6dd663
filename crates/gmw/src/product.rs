//! The product of two privately held bits, as a ring element.

use privet_ring::{Bits, Modulus};

use crate::{Error, Party};

/// Shares in `ring` of `b_C b_S`; `mine`: this party's bits, `[n]`.
///
/// The client opens its bit behind the correlation's, the server its own behind the ring element, at once. One round;
/// `n` bits from the client, `n k` from the server, `n` products sent by the server ([`crate::cost::bit_product`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn bit_product(party: &mut Party<'_>, mine: &Bits, ring: Modulus) -> Result<Vec<u64>, Error> {
    let n = mine.len();
    if party.is_server() {
        let products = party.stock.take_products_sent(n)?;
        let masked: Vec<u64> =
            mine.iter().zip(&products.rho).map(|(bit, rho)| u64::from(bit).wrapping_sub(*rho)).collect();
        party.channel.send(&ring.pack(&masked))?;
        let flips = Bits::from_bytes(&party.channel.recv(n.div_ceil(8))?, n)?;
        let product = |i: usize| {
            let flip = u64::from(flips.get(i));
            (flip * products.rho[i]).wrapping_add(products.share[i].wrapping_mul(1u64.wrapping_sub(2 * flip)))
        };
        Ok((0..n).map(|i| ring.reduce(product(i))).collect())
    } else {
        let products = party.stock.take_products_received(n)?;
        let flips = mine.xor(&products.choice);
        party.channel.send(&flips.to_bytes())?;
        let theirs = ring.unpack(&party.channel.recv(ring.packed_bytes(n))?, n)?;
        let product = |i: usize| {
            let (bit, flip) = (u64::from(mine.get(i)), u64::from(flips.get(i)));
            (bit * theirs[i]).wrapping_add(products.share[i].wrapping_mul(1u64.wrapping_sub(2 * flip)))
        };
        Ok((0..n).map(|i| ring.reduce(product(i))).collect())
    }
}
