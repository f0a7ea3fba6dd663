//! Extension to a wider ring: with a truncation before it, SecONNds' known-sign truncation (Algorithm 3).
//!
//! For `0 <= x < 2^(k-1)` the shares wrap around 2^k exactly if one of their top bits is set, so the wrap is
//! `1 - (1 - m_C)(1 - m_S)`: a product of two privately held bits, needed in Z_2^(l-k). One product correlation gives
//! it directly, where the paper spends an AND and a correlated OT. A signed `x` is made non-negative by adding
//! 2^(k-2) first, which every value of a program leaves room for (`|x| < 2^(k-2)`).

use privet_ring::{Bits, Modulus};

use crate::{Error, Party};

/// Shares in `to` of the signed `x` that is shared in `from`; `|x| < 2^(from.bits() - 2)`.
///
/// One round; `n` bits from the client, `n (l - k)` from the server, `n` products sent by the server
/// ([`crate::cost::extend`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn extend(party: &mut Party<'_>, x: &[u64], from: Modulus, to: Modulus) -> Result<Vec<u64>, Error> {
    let n = x.len();
    let (k, high) = (from.bits(), Modulus::new(to.bits() - from.bits()));
    let offset = 1 << (k - 2);
    let shifted: Vec<u64> =
        if party.is_server() { x.iter().map(|x| from.reduce(x + offset)).collect() } else { x.to_vec() };
    let clear_tops: Vec<bool> = shifted.iter().map(|&x| from.sign(x) == 0).collect();

    if party.is_server() {
        let products = party.stock.take_products_sent(n)?;
        let masked: Vec<u64> =
            clear_tops.iter().zip(&products.rho).map(|(&bit, rho)| u64::from(bit).wrapping_sub(*rho)).collect();
        party.channel.send(&high.pack(&masked))?;
        let flips = Bits::from_bytes(&party.channel.recv(n.div_ceil(8))?, n)?;
        let widen = |i: usize| {
            let flip = u64::from(flips.get(i));
            let product =
                (flip * products.rho[i]).wrapping_add(products.share[i].wrapping_mul(1u64.wrapping_sub(2 * flip)));
            // Minus 2^k stands for the 1 of 1 - (1 - m_C)(1 - m_S); minus the offset undoes the shift.
            let wide = shifted[i].wrapping_sub(offset).wrapping_sub(1 << k).wrapping_add(product << k);
            to.reduce(wide)
        };
        Ok((0..n).map(widen).collect())
    } else {
        let products = party.stock.take_products_received(n)?;
        let bits = Bits::from_bools(&clear_tops);
        let flips = bits.xor(&products.choice);
        party.channel.send(&flips.to_bytes())?;
        let theirs = high.unpack(&party.channel.recv(high.packed_bytes(n))?, n)?;
        let widen = |i: usize| {
            let (bit, flip) = (u64::from(bits.get(i)), u64::from(flips.get(i)));
            let product = (bit * theirs[i]).wrapping_add(products.share[i].wrapping_mul(1u64.wrapping_sub(2 * flip)));
            to.reduce(shifted[i].wrapping_add(product << k))
        };
        Ok((0..n).map(widen).collect())
    }
}
