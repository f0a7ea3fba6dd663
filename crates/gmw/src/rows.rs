//! Products of shared ring elements of which many have a factor in common: its bits choose once for all of them.
//!
//! As in [`crate::multiply`] a bit of `x_own` chooses what `y_other` adds. Two product correlations make the halves of a seed, of which
//! the other party knows the one for a bit that is clear and the one for a bit that is set. What grows from the seeds hides a
//! row of elements in place of one.

use privet_prg::{KeyStream, Seed};
use privet_ring::{Bits, Modulus, in_parts, planes};
use zeroize::Zeroizing;

use crate::compare::join;
use crate::multiply::mask_of;
use crate::{Error, Party};

/// Shares of `x y` where each factor `x`, `[m]`, is that of a row of as many `y`, `[m, r]`; this party's shares in `ring`. Exact.
///
/// Two rounds; with `k` bits of the ring `2 m k + m r k (k + 1) / 2` bits each way and `2 m k` products in each direction
/// ([`crate::cost::multiply_rows`]).
pub fn multiply_rows(party: &mut Party<'_>, x: &[u64], y: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let (n, rows) = (y.len(), x.len());
    let row = n.checked_div(rows).unwrap_or(0);
    assert_eq!(rows * row, n, "rows of one length");
    let seeds = rows * ring.bits() as usize;
    let claim = party.stock.claim_products(u64::BITS, 2 * seeds)?;
    let stock = &*party.stock;
    let ([rho, sent], choice, received) = (stock.sent(&claim), stock.choice(&claim), stock.received(&claim));
    // Bit `i` of factor `j` is at `i m + j`.
    let bits = Zeroizing::new(join(&planes::from_values(x, ring.bits())));
    let flips = join([&*bits, &*bits]).xor(&choice);
    let peer_flips = Bits::from_bytes(&party.channel.exchange(&flips.to_bytes())?, 2 * seeds)?;

    // Streams are read at places of their own, so that no trial at a key compares with more than one of them.
    let grow = |at: usize, half: &dyn Fn(usize) -> u64, pads: &mut [u64]| {
        let [low, high] = [at, seeds + at].map(half);
        let mut blocks = Zeroizing::new(vec![0; row.div_ceil(2)]);
        KeyStream::new(&Seed::from_block(u128::from(high) << 64 | u128::from(low)))
            .blocks((at * blocks.len()) as u64, &mut blocks);
        for (pads, &block) in pads.chunks_mut(2).zip(&*blocks) {
            pads.iter_mut().zip([block as u64, (block >> 64) as u64]).for_each(|(pad, word)| *pad = word);
        }
    };
    // The two words of a correlation are `-sent` and `rho - sent`, and a flip swaps them.
    let of_clear = |at: usize| (rho.get(at) & mask_of(&peer_flips, at)).wrapping_sub(sent.get(at));
    let of_set = |at: usize| (rho.get(at) & !mask_of(&peer_flips, at)).wrapping_sub(sent.get(at));
    let of_chosen = |at: usize| received.get(at);

    let mut shares: Vec<u64> = (0..n).map(|i| x[i / row].wrapping_mul(y[i])).collect();
    let mut message = Vec::new();
    let mut pads = Zeroizing::new(vec![[0; 2]; n]);
    for bit in 0..ring.bits() {
        let (part, first) = (Modulus::new(ring.bits() - bit), bit as usize * rows);
        in_parts(&mut pads, row.max(1), |j, pads| {
            let mut words = Zeroizing::new(vec![0; 2 * row]);
            let (clear, set) = words.split_at_mut(row);
            grow(first + j, &of_clear, clear);
            grow(first + j, &of_set, set);
            pads.iter_mut().zip(clear.iter().zip(set)).for_each(|(pads, (clear, set))| *pads = [*clear, *set]);
        });
        shares.iter_mut().zip(&*pads).for_each(|(share, [clear, _])| *share = share.wrapping_sub(clear << bit));
        let masked =
            y.iter().zip(&*pads).map(|(y, [clear, set])| part.reduce(y.wrapping_add(*clear).wrapping_sub(*set)));
        message.extend(part.pack(&masked.collect::<Vec<_>>()));
    }
    let reply = party.channel.exchange(&message)?;

    let mut rest = reply.as_slice();
    for bit in 0..ring.bits() {
        let (part, first) = (Modulus::new(ring.bits() - bit), bit as usize * rows);
        let (masked, after) = rest.split_at(part.packed_bytes(n));
        rest = after;
        let masked = part.unpack(masked, n)?;
        in_parts(&mut shares, row.max(1), |j, shares| {
            let (mut pads, chosen) = (Zeroizing::new(vec![0; row]), mask_of(&bits, first + j));
            grow(first + j, &of_chosen, &mut pads);
            for (share, (pad, masked)) in shares.iter_mut().zip(pads.iter().zip(&masked[j * row..])) {
                *share = share.wrapping_add(pad.wrapping_add(masked & chosen) << bit);
            }
        });
    }
    ring.reduce_all(&mut shares);
    Ok(shares)
}
