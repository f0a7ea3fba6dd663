//! Truncation: drop low bits of each share and go on in the smaller ring.

/// Shares in Z_2^(k - bits) of `floor(x / 2^bits)` or one less; `x`: this party's share in Z_2^k. Local.
///
/// The carry out of the dropped bits is lost (the one-bit error of SecONNds, section 5.2), and with it the top `bits`
/// bits: [`crate::extend`] brings them back where a later step needs the wide ring.
pub fn drop_low_bits(x: &[u64], bits: u32) -> Vec<u64> {
    x.iter().map(|x| x >> bits).collect()
}
