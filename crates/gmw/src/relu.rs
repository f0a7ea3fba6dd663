//! Sign and ReLU (SecONNds, Algorithm 2).

use privet_ring::{Bits, Modulus, planes};

use crate::compare::carry_out;
use crate::{Error, Party, mux};

/// Shares of `[x >= 0]`; `x`: this party's share in Z_2^k, `[n]`.
///
/// The sign of `x` is the sum of both shares' top bits and of the carry out of the other `k - 1`.
pub fn is_non_negative(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Bits, Error> {
    let mut planes = planes::from_values(x, ring.bits());
    let tops = planes.pop().expect("a ring has at least one bit");
    let mut bits = carry_out(party, planes)?;
    bits.xor_assign(&tops);
    Ok(if party.is_server() { bits.not() } else { bits })
}

/// Shares of `max(x, 0)`; `x`: this party's share in Z_2^k, `[n]`.
pub fn relu(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let bits = is_non_negative(party, x, ring)?;
    mux(party, &bits, x, ring)
}
