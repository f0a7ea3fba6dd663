//! AND of bits: with Beaver triples for shared bits (GMW), with one random OT for privately held ones.

use privet_ot::{PairedTriples, PrivateAnds, Triples};
use privet_ring::Bits;

use crate::{Error, Party};

/// Shares of `x & y` for shared bits; `x`, `y`: this party's shares, `[n]` each.
///
/// One round, `2n` bits each way and `n` triples ([`crate::cost::and`]).
pub fn and(party: &mut Party<'_>, x: &Bits, y: &Bits) -> Result<Bits, Error> {
    let nothing = Bits::default();
    let (product, _) = and_with_pairs(party, x, y, &nothing, [&nothing; 2])?;
    Ok(product)
}

/// Shares of `x & y`, and of `shared & factors[0]` and `shared & factors[1]`; `x`, `y`: `[n]`, `shared`, `factors`: `[m]`.
///
/// One round, `2n + 3m` bits each way, `n` triples and `m` pairs of triples ([`crate::cost::and_with_pairs`]): the
/// operand that two ANDs share is opened once.
pub fn and_with_pairs(
    party: &mut Party<'_>,
    x: &Bits,
    y: &Bits,
    shared: &Bits,
    factors: [&Bits; 2],
) -> Result<(Bits, [Bits; 2]), Error> {
    let (n, m) = (x.len(), shared.len());
    let triples = party.stock.take_triples(n)?;
    let pairs = party.stock.take_paired_triples(m)?;
    let masked = Masked::new(triples, pairs, [x, y], shared, factors);
    let reply = party.channel.exchange(&masked.message.to_bytes())?;
    let reply = Bits::from_bytes(&reply, masked.message.len())?;
    Ok(masked.multiply(reply, party.is_server()))
}

/// This party's shares of the operands of ANDs behind correlations: what it opens, and what it does with what the other opens.
pub(crate) struct Masked {
    triples: Triples,
    pairs: PairedTriples,
    /// What this party opens.
    pub(crate) message: Bits,
}

impl Masked {
    /// Operands as in [`and_with_pairs`], and as many correlations.
    pub(crate) fn new(
        triples: Triples,
        pairs: PairedTriples,
        [x, y]: [&Bits; 2],
        shared: &Bits,
        factors: [&Bits; 2],
    ) -> Self {
        let mut message = x.xor(&triples.a);
        message.extend(&y.xor(&triples.b));
        message.extend(&shared.xor(&pairs.a));
        for (factor, b) in factors.into_iter().zip(&pairs.b) {
            message.extend(&factor.xor(b));
        }
        Self { triples, pairs, message }
    }

    /// The products, from what the other party opens.
    pub(crate) fn multiply(self, mut opened: Bits, is_server: bool) -> (Bits, [Bits; 2]) {
        let Self { triples, pairs, message } = self;
        opened.xor_assign(&message);
        let (n, m) = (triples.a.len(), pairs.a.len());
        let multiply = |d: &Bits, e: &Bits, a: &Bits, b: &Bits, c: &Bits| {
            let mut z = c.xor(&d.and(b));
            z.xor_assign(&e.and(a));
            if is_server {
                z.xor_assign(&d.and(e));
            }
            z
        };
        let single = multiply(&opened.slice(0, n), &opened.slice(n, n), &triples.a, &triples.b, &triples.c);
        let d = opened.slice(2 * n, m);
        let paired = [0, 1].map(|i| {
            let e = opened.slice(2 * n + (i + 1) * m, m);
            multiply(&d, &e, &pairs.a, &pairs.b[i], &pairs.c[i])
        });
        (single, paired)
    }
}

/// Shares of `x & y` where the server knows `x` and the client knows `y`; `bits`: this party's bits, `[n]`.
///
/// A random OT of the server's `r_0, r_1` is turned to the client's bit: the client sends `y ^ c`, the server
/// `x ^ r_0 ^ r_1`, at once. One round, `n` bits each way ([`crate::cost::private_and`]).
pub fn private_and(party: &mut Party<'_>, bits: &Bits) -> Result<Bits, Error> {
    let ots = party.stock.take_private_ands(bits.len())?;
    let reply = party.channel.exchange(&private_message(&ots, bits).to_bytes())?;
    Ok(private_product(&ots, bits, &Bits::from_bytes(&reply, bits.len())?))
}

/// What this party sends of its `bits` for [`private_and`]; it may come before or after the other's.
pub(crate) fn private_message(ots: &PrivateAnds, bits: &Bits) -> Bits {
    match ots {
        PrivateAnds::Server(ots) => bits.xor(&ots.r0.xor(&ots.r1)),
        PrivateAnds::Client(ots) => bits.xor(&ots.choice),
    }
}

/// This party's shares of the products, from what the other sent of its bits.
pub(crate) fn private_product(ots: &PrivateAnds, bits: &Bits, reply: &Bits) -> Bits {
    match ots {
        // r_d, where d is the client's flip.
        PrivateAnds::Server(ots) => ots.r0.xor(&reply.and(&ots.r0.xor(&ots.r1))),
        PrivateAnds::Client(ots) => ots.received.xor(&bits.and(reply)),
    }
}
