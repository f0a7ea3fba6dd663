//! Multiplexer: a shared bit times a shared ring element.
//!
//! With `b = b_C ^ b_S`, `b x` is the sum over the two parties of `b_own (x_own)` and cross terms in which one party
//! holds a bit and the other a ring element: `b_C ^ b_S = b_S + b_C (1 - 2 b_S)`, so the server contributes
//! `(1 - 2 b_S) x_S` to the client's bit and the other way round. Each cross term takes one product correlation
//! (bit `c` and element `rho` with shares of `c rho`), and both are opened in one exchange, where the usual pair of
//! correlated OTs takes two flights.

use privet_ring::{Bits, Modulus};

use crate::{Error, Party};

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
    let n = bits.len();
    let mut message = Vec::new();
    let mut pending = Vec::with_capacity(values.len());
    for &(x, ring) in values {
        assert_eq!(x.len(), n, "one bit for each value");
        let (sent, received) = (party.stock.take_products_sent(n)?, party.stock.take_products_received(n)?);
        let masked: Vec<u64> = (x.iter().zip(bits.iter()).zip(&sent.rho))
            .map(|((&x, bit), rho)| signed_by(bit, x).wrapping_sub(*rho))
            .collect();
        message.extend_from_slice(&bits.xor(&received.choice).to_bytes());
        message.extend_from_slice(&ring.pack(&masked));
        pending.push((sent, received));
    }
    let reply = party.channel.exchange(&message)?;

    let mut at = 0;
    let mut take = |len: usize| {
        at += len;
        &reply[at - len..at]
    };
    let mut results = Vec::with_capacity(values.len());
    for (&(x, ring), (sent, received)) in values.iter().zip(&pending) {
        let flips = Bits::from_bytes(take(n.div_ceil(8)), n)?;
        let theirs = ring.unpack(take(ring.packed_bytes(n)), n)?;
        let result = (0..n).map(|i| {
            let (bit, flip) = (bits.get(i), flips.get(i));
            let own = masked_by(bit, x[i]);
            // Their bit, my element: c = flip ^ c', so c delta = flip rho + (1 - 2 flip) c' rho + c e, and they add c e.
            let as_sender = masked_by(flip, sent.rho[i]).wrapping_add(signed_by(flip, sent.share[i]));
            let my_flip = bit != received.choice.get(i);
            let as_receiver = masked_by(bit, theirs[i]).wrapping_add(signed_by(my_flip, received.share[i]));
            ring.reduce(own.wrapping_add(as_sender).wrapping_add(as_receiver))
        });
        results.push(result.collect());
    }
    Ok(results)
}

/// `(1 - 2 bit) value`, without a branch.
fn signed_by(bit: bool, value: u64) -> u64 {
    let mask = u64::from(bit).wrapping_neg();
    (value ^ mask).wrapping_sub(mask)
}

/// `bit * value`, without a branch.
fn masked_by(bit: bool, value: u64) -> u64 {
    value & u64::from(bit).wrapping_neg()
}
