//! Products of shared ring elements, bit by bit (Gilboa, CRYPTO 1999): before there is an input, triples of single elements.
//!
//! Of the four terms of `(x_C + x_S)(y_C + y_S)` each party computes one on its own. The others are `x_own` of one party times `y_other`
//! of the other: for each bit of the former one product correlation, and of the latter only the bits that count above it.

use privet_ring::{Bits, Modulus, planes};

use crate::compare::join;
use crate::{Error, Party, product};

/// Shares of `x y`; `x`, `y`: this party's shares in `ring`, `[n]` each. Exact.
///
/// One round; with `k` bits of the ring `n (k + k (k + 1) / 2)` bits each way and `n k` products in each direction
/// ([`crate::cost::multiply`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn multiply(party: &mut Party<'_>, x: &[u64], y: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let (n, width) = (x.len(), ring.bits());
    assert_eq!(n, y.len(), "pairs of values");
    let products = n * width as usize;
    let claim = party.stock.claim_products(products)?;
    let stock = &*party.stock;
    let ([rho, sent], choice, received) = (stock.sent(&claim), stock.choice(&claim), stock.received(&claim));
    // Bit `i` of element `j` is at `i n + j`.
    let flips = join(&planes::from_values(x, width)).xor(&choice);
    let mut message = flips.to_bytes();
    for (bit, rho) in (0..width).zip(rho.chunks(n.max(1))) {
        product::mask(&mut message, rho, Modulus::new(width - bit), |block, out| out.copy_from_slice(&y[block]));
    }
    let reply = party.channel.exchange(&message)?;

    let (theirs, mut rest) = reply.split_at(products.div_ceil(8));
    let theirs = Bits::from_bytes(theirs, products)?;
    let mut shares: Vec<u64> = x.iter().zip(y).map(|(x, y)| x.wrapping_mul(*y)).collect();
    for bit in 0..width {
        let part = Modulus::new(width - bit);
        let (masked, after) = rest.split_at(part.packed_bytes(n));
        rest = after;
        let masked = part.unpack(masked, n)?;
        for (j, share) in shares.iter_mut().enumerate() {
            let at = bit as usize * n + j;
            let mine = (masked[j] & mask_of(&choice, at)).wrapping_add(received[at]);
            let flipped = mask_of(&theirs, at);
            let others = (y[j] & flipped).wrapping_add(negated(sent[at], flipped));
            *share = share.wrapping_add(negated(mine, mask_of(&flips, at)).wrapping_add(others) << bit);
        }
    }
    ring.reduce_all(&mut shares);
    Ok(shares)
}

/// All ones where a bit is set.
fn mask_of(bits: &Bits, at: usize) -> u64 {
    (bits.words()[at / 64] >> (at % 64) & 1).wrapping_neg()
}

/// `-x` where `mask` is all ones, `x` where it is zero.
fn negated(x: u64, mask: u64) -> u64 {
    (x ^ mask).wrapping_sub(mask)
}
