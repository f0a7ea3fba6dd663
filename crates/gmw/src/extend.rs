//! Extension to a wider ring: with a truncation before it, SecONNds' known-sign truncation (Algorithm 3).
//!
//! For `0 <= x < 2^(k-1)` the shares wrap around 2^k exactly if one of their top bits is set, so the wrap is
//! `1 - (1 - m_C)(1 - m_S)`: a product of two privately held bits, needed in Z_2^(l-k). One product correlation gives
//! it directly, where the paper spends an AND and a correlated OT. A signed `x` is made non-negative by adding
//! 2^(k-2) - 1 first, which every value of a program leaves room for: `-2^(k-2) < x <= 2^(k-2)`.

use privet_ring::{Bits, Modulus};

use crate::{Error, Party, bit_product};

/// Shares in `to` of the signed `x` that is shared in `from`; `-2^(k-2) < x <= 2^(k-2)` for `k = from.bits()`.
///
/// One round; `n` bits from the client, `n (l - k)` from the server, `n` products sent by the server
/// ([`crate::cost::extend`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn extend(party: &mut Party<'_>, x: &[u64], from: Modulus, to: Modulus) -> Result<Vec<u64>, Error> {
    let (k, high) = (from.bits(), Modulus::new(to.bits() - from.bits()));
    // Of what only the server adds: the offset now, and later the 1 of 1 - (1 - m_C)(1 - m_S), times -2^k.
    let (offset, wrap) = if party.is_server() { ((1 << (k - 2)) - 1, 1 << k) } else { (0, 0) };
    let shifted: Vec<u64> = x.iter().map(|x| from.reduce(x + offset)).collect();
    let clear_tops: Vec<bool> = shifted.iter().map(|&x| from.sign(x) == 0).collect();
    let products = bit_product(party, &Bits::from_bools(&clear_tops), high)?;
    let widen =
        |(x, product): (&u64, u64)| to.reduce(x.wrapping_sub(offset).wrapping_sub(wrap).wrapping_add(product << k));
    Ok(shifted.iter().zip(products).map(widen).collect())
}
