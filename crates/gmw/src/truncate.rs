//! Truncation: drop low bits of each share and go on in the smaller ring.

use privet_ring::Modulus;

use crate::Party;

/// Shares in Z_2^(k - bits) of `floor(x / 2^bits)` or one more; `x`: this party's share in Z_2^k. Local.
///
/// Each party drops its own low bits, and with them what the two low parts carry together: the one-bit error of
/// SecONNds, section 5.2. On average that loses one unit in the last place, which the server adds beforehand, so that
/// errors of many truncations cancel instead of adding up. The top `bits` bits go too: [`crate::extend`] brings them
/// back where a later step needs the wide ring.
pub fn drop_low_bits(party: &Party<'_>, x: &[u64], bits: u32, ring: Modulus) -> Vec<u64> {
    let unit = if party.is_server() { 1 << bits } else { 0 };
    x.iter().map(|x| ring.reduce(x.wrapping_add(unit)) >> bits).collect()
}
