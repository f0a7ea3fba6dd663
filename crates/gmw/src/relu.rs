//! Sign and ReLU (SecONNds, Algorithm 2).

use privet_ring::{Bits, Modulus, planes};

use crate::compare::carry_out;
use crate::{Error, Party, mux};

/// Shares of `[x >= 0]`; `x`: this party's share in Z_2^k, `[n]`.
///
/// The sign of `x` is the sum of both shares' top bits and of the carry out of the other `k - 1`.
///
/// # Errors
/// If the link fails or the stock lacks [`crate::cost::is_non_negative`]'s correlations.
pub fn is_non_negative(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Bits, Error> {
    let mut planes = planes::from_values(x, ring.bits());
    let tops = planes.pop().expect("a ring has at least one bit");
    let mut bits = carry_out(party, planes)?;
    bits.xor_assign(&tops);
    Ok(if party.is_server() { bits.not() } else { bits })
}

/// Shares of `max(x, 0)`; `x`: this party's share in Z_2^k, `[n]`.
///
/// # Errors
/// If the link fails or the stock lacks [`crate::cost::relu`]'s correlations.
pub fn relu(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    relu_near(party, x, ring, ring.bits())
}

/// As [`relu`], but the sign is that of the top `compared` bits of `x`, at least 2 (HummingBird).
///
/// The carry of the `d = k - compared` bits below is lost, so a positive value below `2^d` may come out as zero: the result
/// is too small by less than `2^d`, and never below zero. `-2^(k-2) <= x`, as in every program.
///
/// # Errors
/// If the link fails or the stock lacks [`crate::cost::relu_near`]'s correlations.
pub fn relu_near(party: &mut Party<'_>, x: &[u64], ring: Modulus, compared: u32) -> Result<Vec<u64>, Error> {
    let dropped = ring.bits() - compared;
    let high: Vec<u64> = x.iter().map(|x| x >> dropped).collect();
    let bits = is_non_negative(party, &high, Modulus::new(compared))?;
    mux(party, &bits, x, ring)
}
