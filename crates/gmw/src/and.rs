//! AND of bits: with Beaver triples for shared bits (GMW), with one random OT for privately held ones.

use privet_ot::{BitsReceived, BitsSent, PrivateAnds};
use privet_ring::Bits;

use crate::{Error, Party};

/// Shares of `x & y` for shared bits; `x`, `y`: this party's shares, `[n]` each.
///
/// One round, `2n` bits each way and `n` triples ([`crate::cost::and`]).
///
/// # Errors
/// If the link fails or fewer than `n` triples are left.
pub fn and(party: &mut Party<'_>, x: &Bits, y: &Bits) -> Result<Bits, Error> {
    let n = x.len();
    let triples = party.stock.take_triples(n)?;
    let mut mine = x.xor(&triples.a);
    mine.extend(&y.xor(&triples.b));
    let mut opened = Bits::from_bytes(&party.channel.exchange(&mine.to_bytes())?, 2 * n)?;
    opened.xor_assign(&mine);
    let (d, e) = (opened.slice(0, n), opened.slice(n, n));

    let mut z = triples.c;
    z.xor_assign(&d.and(&triples.b));
    z.xor_assign(&e.and(&triples.a));
    if party.is_server() {
        z.xor_assign(&d.and(&e));
    }
    Ok(z)
}

/// Shares of `x & y` where the server knows `x` and the client knows `y`; `mine`: this party's bits, `[n]`.
///
/// A random OT of the server's `r_0, r_1` is turned to the client's bit: the client sends `y ^ c`, the server
/// `x ^ r_0 ^ r_1`, at once. One round, `n` bits each way ([`crate::cost::private_and`]).
///
/// # Errors
/// If the link fails or fewer than `n` correlations are left.
pub fn private_and(party: &mut Party<'_>, mine: &Bits) -> Result<Bits, Error> {
    let n = mine.len();
    match party.stock.take_private_ands(n)? {
        PrivateAnds::Server(BitsSent { r0, r1 }) => {
            let difference = r0.xor(&r1);
            let reply = party.channel.exchange(&mine.xor(&difference).to_bytes())?;
            let flip = Bits::from_bytes(&reply, n)?;
            // r_d, where d is the client's flip.
            Ok(r0.xor(&flip.and(&difference)))
        }
        PrivateAnds::Client(BitsReceived { choice, received }) => {
            let reply = party.channel.exchange(&mine.xor(&choice).to_bytes())?;
            let correction = Bits::from_bytes(&reply, n)?;
            Ok(received.xor(&mine.and(&correction)))
        }
    }
}
