//! Multiplexer: a shared bit times a shared ring element.
//!
//! With `b = b_C ^ b_S`, `b x` is the sum over the two parties of `b_own (x_own)` and cross terms in which one party
//! holds a bit and the other a ring element: `b_C ^ b_S = b_S + b_C (1 - 2 b_S)`, so the server contributes
//! `(1 - 2 b_S) x_S` to the client's bit and the other way round. Each cross term takes one product correlation
//! (bit `c` and element `rho` with shares of `c rho`), and both are opened in one exchange, where the usual pair of
//! correlated OTs takes two flights.

use privet_ring::{Bits, Modulus, select};

use crate::{Error, Party, product};

/// Shares of `b * x` in Z_2^k; `bits`, `x`: this party's shares, `[n]` each.
///
/// One round, `n (1 + k)` bits each way and `n` products in each direction ([`crate::cost::mux`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn mux(party: &mut Party<'_>, bits: &Bits, x: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    Ok(mux_all(party, bits, &[(x, ring)])?.swap_remove(0))
}

/// [`mux`] of several vectors by the same bits, each in its own ring, in the same round.
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn mux_all(party: &mut Party<'_>, bits: &Bits, values: &[(&[u64], Modulus)]) -> Result<Vec<Vec<u64>>, Error> {
    mux_each(party, &values.iter().map(|&(values, ring)| Choice { bits, values, ring }).collect::<Vec<_>>())
}

/// Values and the bits that choose among them, of which this party has shares.
pub(crate) struct Choice<'a> {
    pub bits: &'a Bits,
    /// As many as bits.
    pub values: &'a [u64],
    /// The ring of the products, and of what is read of the values.
    pub ring: Modulus,
}

/// [`mux`] of several vectors, each by bits of its own, in the same round.
///
/// # Errors
/// If the link fails or the stock runs dry.
pub(crate) fn mux_each(party: &mut Party<'_>, choices: &[Choice<'_>]) -> Result<Vec<Vec<u64>>, Error> {
    let mut message = Vec::new();
    let mut pending = Vec::with_capacity(choices.len());
    for &Choice { bits, values: x, ring } in choices {
        let n = bits.len();
        assert_eq!(x.len(), n, "one bit for each value");
        let claim = party.stock.claim_products(n)?;
        let ([rho, _], my_flips) = (party.stock.sent(&claim), bits.xor(&party.stock.choice(&claim)));
        message.extend_from_slice(&my_flips.to_bytes());
        product::mask(&mut message, rho, ring, |block, out| {
            select::signed(out, &bits.words()[block.start / 64..block.end.div_ceil(64)], &x[block]);
        });
        pending.push((claim, my_flips));
    }
    let reply = party.channel.exchange(&message)?;

    let mut rest = reply.as_slice();
    let mut take = |len: usize| rest.split_off(..len).expect("the reply is as long as the message");
    let mut results = Vec::with_capacity(choices.len());
    for (&Choice { bits, values: x, ring }, (claim, my_flips)) in choices.iter().zip(pending) {
        let n = bits.len();
        let ([rho, sent], received) = (party.stock.sent(&claim), party.stock.received(&claim));
        let mut shares = vec![0; n];
        let flips = Bits::from_bytes(take(n.div_ceil(8)), n)?;
        let theirs = take(ring.packed_bytes(n));
        product::in_blocks(&mut shares, |block, shares, [sum, other]| {
            let words = block.start / 64..block.end.div_ceil(64);
            let (bits, flips, my_flips) =
                (&bits.words()[words.clone()], &flips.words()[words.clone()], &my_flips.words()[words]);
            // Their bit, my element: c = flip ^ c', so c delta = flip rho + (1 - 2 flip) c' rho + c e, and they add c e.
            select::add_products(sum, flips, &rho[block.clone()], flips, &sent[block.clone()]);
            // My bit, their element; and my bit times my own.
            ring.unpack_into(other, &theirs[ring.packed_bytes(block.start)..ring.packed_bytes(block.end)]);
            other.iter_mut().zip(&x[block.clone()]).for_each(|(other, x)| *other = other.wrapping_add(*x));
            select::add_products(sum, bits, other, my_flips, &received[block]);
            shares.iter_mut().zip(sum).for_each(|(share, sum)| *share = ring.reduce(*sum));
        });
        results.push(shares);
    }
    Ok(results)
}
