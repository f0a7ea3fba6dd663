//! Extension to a wider ring: with a truncation before it, SecONNds' known-sign truncation (Algorithm 3).
//!
//! For `0 <= x < 2^(k-1)` the shares wrap around 2^k exactly if one of their top bits is set, so the wrap is
//! `1 - (1 - m_C)(1 - m_S)`: a product of two privately held bits, needed in Z_2^(l-k). One product correlation gives
//! it directly, where the paper spends an AND and a correlated OT. A signed `x` is made non-negative by adding
//! 2^(k-2) - 1 first, which every value of a program leaves room for: `-2^(k-2) < x <= 2^(k-2)`.

use privet_ring::{Bits, Modulus};

use crate::product::{bit_product, in_blocks};
use crate::{Error, Party};

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
    let tops = |x: &u64| from.sign(x.wrapping_add(offset)) ^ 1;
    let mut values = bit_product(party, &Bits::from_lowest(x.iter().map(tops)), high)?;
    in_blocks(&mut values, |block, values, _| {
        for (value, x) in values.iter_mut().zip(&x[block]) {
            let shifted = from.reduce(x.wrapping_add(offset));
            *value = to.reduce(shifted.wrapping_sub(offset).wrapping_sub(wrap).wrapping_add(*value << k));
        }
    });
    Ok(values)
}
