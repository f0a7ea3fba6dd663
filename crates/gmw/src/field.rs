//! Between a ring and a prime field just above it: where the linear layers of a program are shared modulo a prime.
//!
//! Both ways need the wrap of two shares, as an [extension](crate::extend) does, wanted in the ring or field that the value goes
//! to. Into the field it is that of an extension. Out of it, `x_C + x_S >= p` is the carry of `x_C` and `x_S + 2^b - p` out of
//! the `b` bits of `p`.

use privet_channel::Channel;
use privet_ot::Role;
use privet_ring::{Bits, Field, Modulus};

use crate::extend::{Sign, Wraps, offset};
use crate::{Error, Party, bit_product, carry};

/// Shares modulo `p` of the signed value that is shared in `from`; `p > 2^k` for `k = from.bits()`.
///
/// If the value is known to be non-negative, one round; `n` bits from the client, `n` residues from the server, `n`
/// products sent by the server. If not, a carry of `k` bits before that ([`crate::cost::to_field`]).
pub fn to_field(party: &mut Party<'_>, x: &[u64], from: Modulus, field: Field, sign: Sign) -> Result<Vec<u64>, Error> {
    let wraps = Wraps::of(party, x, from, sign)?;
    let whole = field.reduce(1 << from.bits());
    let products = field_product(party, wraps.factors(), field.reduce(wraps.times() * whole), field)?;
    let (offset, is_server) = (offset(party, from, sign), party.is_server());
    let mut summands = vec![0; x.len()];
    wraps.summands(&(0..x.len()), is_server, &mut summands);
    let value = |((x, summand), product): ((&u64, u64), u64)| {
        let raised = field.reduce(from.reduce(x.wrapping_add(offset)));
        field.add(field.sub(field.sub(raised, offset), summand.wrapping_neg() & whole), product)
    };
    Ok(x.iter().zip(summands).zip(products).map(value).collect())
}

/// Shares in `to` of the residue that is shared modulo `p`, as the integer from `-(p - 1) / 2` to `(p - 1) / 2`.
///
/// A carry of as many bits as `p` has, and a round: `n` bits from the client, `n k` from the server, `n` products sent by the
/// server ([`crate::cost::from_field`]).
pub fn from_field(party: &mut Party<'_>, x: &[u64], field: Field, to: Modulus) -> Result<Vec<u64>, Error> {
    let (prime, packing) = (field.prime(), field.packing());
    // The server raises its residue, for the value to be non-negative, and its summand, for the carry to be at `p`.
    let (added, lifted) = if party.is_server() { (prime / 2, packing.mask() - prime + 1) } else { (0, 0) };
    let raised: Vec<u64> = x.iter().map(|&x| field.add(x, added)).collect();
    let summands: Vec<u64> = raised.iter().map(|x| x + lifted).collect();
    let wraps = carry(party, &summands, packing.bits())?;
    let products = bit_product(party, &wraps, to)?;
    let value = |((&x, bit), product): ((&u64, bool), u64)| {
        let wrap = u64::from(bit).wrapping_sub(2 * product);
        to.reduce(x.wrapping_sub(added).wrapping_sub(wrap.wrapping_mul(prime)))
    };
    Ok(raised.iter().zip(wraps.iter()).zip(products).map(value).collect())
}

/// The server learns `x - r` modulo `p`; `share`: this party's residues, `[n]`; `mask`: the client's uniform `r`, which the
/// server does not have. The client gets nothing back.
///
/// One flight of `n` residues.
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

/// Shares modulo `p` of `factor b_C b_S`; `bits`: this party's bits, `[n]`.
///
/// As [`bit_product`]; the words of its correlations are reduced modulo `p`, which leaves them uniform ([`Field::over`]).
fn field_product(party: &mut Party<'_>, bits: &Bits, factor: u64, field: Field) -> Result<Vec<u64>, Error> {
    let (n, packing) = (bits.len(), field.packing());
    let times = |bit: bool, x: u64| x & u64::from(bit).wrapping_neg();
    // With the client's bit c flipped: b_C e = b_C (e - rho) + flip rho + (1 - 2 flip) c rho.
    let turned = |flip: bool, share: u64| {
        let negated = field.sub(0, share);
        share ^ (u64::from(flip).wrapping_neg() & (share ^ negated))
    };
    let claim = party.stock.claim_products_from(Role::Server, u64::BITS, n)?;
    if party.is_server() {
        let [rho, share] = party.stock.sent(&claim);
        // The two words of the OT behind a product, of which the client has one.
        let words = rho.iter().zip(share.iter()).map(|(rho, share)| [0, rho].map(|x| x.wrapping_sub(share)));
        let (shares, rho): (Vec<u64>, Vec<u64>) = words
            .map(|[first, second]| (field.reduce(first), field.reduce(second)))
            .map(|(first, second)| (field.sub(0, first), field.sub(second, first)))
            .unzip();
        let masked = bits.iter().zip(&rho).map(|(bit, &rho)| field.sub(times(bit, factor), rho));
        party.channel.send(&packing.pack(&masked.collect::<Vec<_>>()))?;
        let flips = Bits::from_bytes(&party.channel.recv(n.div_ceil(8))?, n)?;
        let result = flips.iter().zip(rho.iter().zip(&shares));
        Ok(result.map(|(flip, (&rho, &share))| field.add(times(flip, rho), turned(flip, share))).collect())
    } else {
        let (choice, share) = (party.stock.choice(&claim), party.stock.received(&claim));
        let flips = bits.xor(&choice);
        party.channel.send(&flips.to_bytes())?;
        let masked = packing.unpack(&party.channel.recv(packing.packed_bytes(n))?, n)?;
        let shares = share.iter().map(|share| field.reduce(share));
        let result = bits.iter().zip(flips.iter()).zip(masked.iter().zip(shares));
        Ok(result
            .map(|((bit, flip), (&masked, share))| field.add(times(bit, field.reduce(masked)), turned(flip, share)))
            .collect())
    }
}
