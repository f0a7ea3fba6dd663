//! Extension to a wider ring, of every value: with a truncation before it, SecONNds' known-sign truncation (Algorithm 3).
//!
//! Shares of a value `0 <= z < 2^k` modulo 2^k add up to `z + w 2^k`, and a wider ring needs the wrap `w`.
//!
//! - For `z < 2^(k-1)` the shares wrap exactly if one of their top bits is set, so `w` is `1 - (1 - m_C)(1 - m_S)`: one product
//!   of two privately held bits, where the paper spends an AND and a correlated OT.
//! - For any other `z` the wrap is the carry of the shares, a comparison of `k` bits. A signed value is made such a `z`
//!   by adding 2^(k-1).
//!
//! Which of the two applies follows from the program alone ([`Sign`]). So a value of the ring never comes out
//! wrong: a wrong wrap would add `2^k` times the weights behind it to the output, for some shares of a value and not for
//! others.

use std::ops::Range;

use privet_ring::{Bits, Modulus};

use crate::product::{bit_product_then, numbers};
use crate::{Error, Party, carry};

/// What is known of a signed value, whatever the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Its top bit is clear, as that of a ReLU's result.
    NonNegative,
    /// Nothing.
    Unknown,
}

/// Shares in `to` of the signed value that is shared in `from`.
///
/// If the value is known to be non-negative, one round; `n` bits from the client, `n (l - k)` from the server, `n`
/// products sent by the server. If not, a carry of `k` bits before that ([`crate::cost::extend`]).
pub fn extend(party: &mut Party<'_>, x: &[u64], from: Modulus, to: Modulus, sign: Sign) -> Result<Vec<u64>, Error> {
    let (k, high) = (from.bits(), Modulus::new(to.bits() - from.bits()));
    let wraps = Wraps::of(party, x, from, sign)?;
    let (offset, is_server) = (offset(party, from, sign), party.is_server());
    bit_product_then(party, wraps.factors(), high, |block, products, summands| {
        wraps.summands(&block, is_server, summands);
        for ((value, x), summand) in products.iter_mut().zip(&x[block]).zip(summands) {
            let wrap = summand.wrapping_sub(wraps.times().wrapping_mul(*value));
            let raised = from.reduce(x.wrapping_add(offset));
            *value = to.reduce(raised.wrapping_sub(offset).wrapping_sub(wrap << k));
        }
    })
}

/// Whether two shares wrap, as a product of one bit of each party and a part that each knows.
pub(crate) enum Wraps {
    /// `1 - b_C b_S`.
    Either(Bits),
    /// `b_C ^ b_S`, that is `b_C + b_S - 2 b_C b_S`.
    Carried(Bits),
}

impl Wraps {
    /// Whether the shares wrap of the non-negative number that stands for `x`: `x` and the parties' [offsets](offset).
    pub(crate) fn of(party: &mut Party<'_>, x: &[u64], ring: Modulus, sign: Sign) -> Result<Self, Error> {
        let offset = offset(party, ring, sign);
        let raised = x.iter().map(|x| ring.reduce(x.wrapping_add(offset)));
        Ok(match sign {
            Sign::NonNegative => Self::Either(Bits::from_lowest(raised.map(|x| ring.sign(x) ^ 1))),
            Sign::Unknown => Self::Carried(carry(party, &raised.collect::<Vec<_>>(), ring.bits())?),
        })
    }

    /// This party's factors of the product.
    pub(crate) fn factors(&self) -> &Bits {
        match self {
            Self::Either(bits) | Self::Carried(bits) => bits,
        }
    }

    /// How often the product is subtracted.
    pub(crate) fn times(&self) -> u64 {
        match self {
            Self::Either(_) => 1,
            Self::Carried(_) => 2,
        }
    }

    /// What this party adds to it for each element of a block.
    pub(crate) fn summands(&self, block: &Range<usize>, is_server: bool, out: &mut [u64]) {
        match self {
            Self::Either(_) => out.fill(u64::from(is_server)),
            Self::Carried(bits) => numbers(bits, block, out),
        }
    }
}

/// What this party adds to its share so that the value becomes non-negative.
pub(crate) fn offset(party: &Party<'_>, ring: Modulus, sign: Sign) -> u64 {
    match sign {
        Sign::Unknown if party.is_server() => 1 << (ring.bits() - 1),
        _ => 0,
    }
}
