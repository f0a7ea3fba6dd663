//! Between a ring and a prime field just above it: where the linear layers of a program are shared modulo a prime.
//!
//! A value that leaves a bit of its width unused is shared with a wrap that each party can almost tell: once it is made
//! non-negative, the shares wrap around exactly if one of them lies in the upper half. That holds in a ring (as in
//! [`crate::extend`]) and modulo `p` alike, so both ways take one product of two privately held bits, in the ring or field
//! that the value goes to, and no comparison with `p`.

use privet_channel::Channel;
use privet_ring::{Bits, Field, Modulus};

use crate::{Error, Party, bit_product};

/// Shares modulo `p` of the signed `x` that is shared in `from`; `-2^(k-2) < x <= 2^(k-2)` for `k = from.bits()`.
///
/// One round; `n` bits from the client, `n` residues from the server, `n` products sent by the server
/// ([`crate::cost::to_field`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn to_field(party: &mut Party<'_>, x: &[u64], from: Modulus, field: Field) -> Result<Vec<u64>, Error> {
    let offset = (1 << (from.bits() - 2)) - 1;
    let (added, wrap) = if party.is_server() { (offset, field.reduce(1 << from.bits())) } else { (0, 0) };
    let raised: Vec<u64> = x.iter().map(|x| from.reduce(x.wrapping_add(added))).collect();
    // The wrap is 1 - (1 - m_C)(1 - m_S) for the top bits m.
    let tops = Bits::from_lowest(raised.iter().map(|&x| from.sign(x) ^ 1));
    let products = field_product(party, &tops, field.reduce(1 << from.bits()), field)?;
    let off = field.add(wrap, added);
    let value = |(&x, product): (&u64, u64)| field.add(field.sub(field.reduce(x), off), product);
    Ok(raised.iter().zip(products).map(value).collect())
}

/// Shares in `to` of the signed `x` that is shared modulo `p`; `-2^(k-2) < x <= 2^(k-2)` for `k = to.bits()`, and `p > 2^k`.
///
/// One round; `n` bits from the client, `n k` from the server, `n` products sent by the server ([`crate::cost::from_field`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn from_field(party: &mut Party<'_>, x: &[u64], field: Field, to: Modulus) -> Result<Vec<u64>, Error> {
    let offset = (1 << (to.bits() - 2)) - 1;
    let (added, wrap) = if party.is_server() { (offset, field.prime()) } else { (0, 0) };
    let raised: Vec<u64> = x.iter().map(|&x| field.add(x, added)).collect();
    let tops = Bits::from_lowest(raised.iter().map(|&x| field.upper(x) ^ 1));
    let products = bit_product(party, &tops, to)?;
    let value = |(&x, product): (&u64, u64)| {
        let wrapped = product.wrapping_mul(field.prime());
        to.reduce(x.wrapping_sub(added).wrapping_sub(wrap).wrapping_add(wrapped))
    };
    Ok(raised.iter().zip(products).map(value).collect())
}

/// The server learns `x - r` modulo `p`; `share`: this party's residues, `[n]`; `mask`: the client's uniform `r`, which the
/// server does not have. The client gets nothing back.
///
/// One flight of `n` residues.
///
/// # Errors
/// If the link fails.
pub fn open_to_server_in_field(
    channel: &mut Channel,
    share: &[u64],
    mask: Option<&[u64]>,
    field: Field,
) -> Result<Option<Vec<u64>>, Error> {
    let packing = field.packing();
    if let Some(mask) = mask {
        let masked: Vec<u64> = share.iter().zip(mask).map(|(&x, &r)| field.sub(x, r)).collect();
        channel.send(&packing.pack(&masked))?;
        return Ok(None);
    }
    let masked = packing.unpack(&channel.recv(packing.packed_bytes(share.len()))?, share.len())?;
    Ok(Some(share.iter().zip(masked).map(|(&x, masked)| field.add(x, field.reduce(masked))).collect()))
}

/// Shares modulo `p` of `factor b_C b_S`; `mine`: this party's bits, `[n]`.
///
/// As [`bit_product`]; the words of its correlations are reduced modulo `p`, which leaves them uniform ([`Field::over`]).
fn field_product(party: &mut Party<'_>, mine: &Bits, factor: u64, field: Field) -> Result<Vec<u64>, Error> {
    let (n, packing) = (mine.len(), field.packing());
    let times = |bit: bool, x: u64| x & u64::from(bit).wrapping_neg();
    // With the client's bit c flipped: b_C e = b_C (e - rho) + flip rho + (1 - 2 flip) c rho.
    let turned = |flip: bool, share: u64| {
        let negated = field.sub(0, share);
        share ^ (u64::from(flip).wrapping_neg() & (share ^ negated))
    };
    if party.is_server() {
        let products = party.stock.take_products_sent(n)?;
        // The two words of the OT behind a product, of which the client has one.
        let words =
            products.rho.iter().zip(&products.share).map(|(rho, share)| [0, *rho].map(|x| x.wrapping_sub(*share)));
        let (shares, rho): (Vec<u64>, Vec<u64>) = words
            .map(|[first, second]| (field.reduce(first), field.reduce(second)))
            .map(|(first, second)| (field.sub(0, first), field.sub(second, first)))
            .unzip();
        let masked = mine.iter().zip(&rho).map(|(bit, &rho)| field.sub(times(bit, factor), rho));
        party.channel.send(&packing.pack(&masked.collect::<Vec<_>>()))?;
        let flips = Bits::from_bytes(&party.channel.recv(n.div_ceil(8))?, n)?;
        let result = flips.iter().zip(rho.iter().zip(&shares));
        Ok(result.map(|(flip, (&rho, &share))| field.add(times(flip, rho), turned(flip, share))).collect())
    } else {
        let products = party.stock.take_products_received(n)?;
        let flips = mine.xor(&products.choice);
        party.channel.send(&flips.to_bytes())?;
        let theirs = packing.unpack(&party.channel.recv(packing.packed_bytes(n))?, n)?;
        let shares = products.share.iter().map(|&share| field.reduce(share));
        let result = mine.iter().zip(flips.iter()).zip(theirs.iter().zip(shares));
        Ok(result
            .map(|((bit, flip), (&theirs, share))| field.add(times(bit, field.reduce(theirs)), turned(flip, share)))
            .collect())
    }
}
