//! Products by product correlations, in blocks that stay in the first cache; of two privately held bits, to begin with.

use std::ops::Range;

use privet_ring::{BLOCK, BLOCKS_PER_JOB, Bits, Modulus, select};
use rayon::prelude::*;

use crate::{Error, Party};

/// Shares in `ring` of `b_C b_S`; `mine`: this party's bits, `[n]`.
///
/// The client opens its bit behind the correlation's, the server its own behind the ring element, at once. One round;
/// `n` bits from the client, `n k` from the server, `n` products sent by the server ([`crate::cost::bit_product`]).
///
/// # Errors
/// If the link fails or the stock runs dry.
pub fn bit_product(party: &mut Party<'_>, mine: &Bits, ring: Modulus) -> Result<Vec<u64>, Error> {
    let n = mine.len();
    let words = |block: &Range<usize>| block.start / 64..block.end.div_ceil(64);
    if party.is_server() {
        let products = party.stock.take_products_sent(n)?;
        let mut message = Vec::new();
        mask(&mut message, &products.rho, ring, |block, out| {
            let mine = mine.words()[words(&block)].iter();
            for (out, &word) in out.chunks_mut(64).zip(mine) {
                out.iter_mut().enumerate().for_each(|(i, out)| *out = word >> i & 1);
            }
        });
        party.channel.send(&message)?;
        let flips = Bits::from_bytes(&party.channel.recv(n.div_ceil(8))?, n)?;
        let mut shares = products.share;
        in_blocks(&mut shares, |block, shares, [sum, _]| {
            let flips = &flips.words()[words(&block)];
            select::add_products(sum, flips, &products.rho[block], flips, shares);
            shares.iter_mut().zip(sum).for_each(|(share, sum)| *share = ring.reduce(*sum));
        });
        Ok(shares)
    } else {
        let products = party.stock.take_products_received(n)?;
        let flips = mine.xor(&products.choice);
        party.channel.send(&flips.to_bytes())?;
        let theirs = party.channel.recv(ring.packed_bytes(n))?;
        let mut shares = products.share;
        in_blocks(&mut shares, |block, shares, [sum, other]| {
            let (mine, flips) = (&mine.words()[words(&block)], &flips.words()[words(&block)]);
            ring.unpack_into(other, &theirs[ring.packed_bytes(block.start)..ring.packed_bytes(block.end)]);
            select::add_products(sum, mine, other, flips, shares);
            shares.iter_mut().zip(sum).for_each(|(share, sum)| *share = ring.reduce(*sum));
        });
        Ok(shares)
    }
}

/// Appends elements behind masks, packed, to `message`: `elements` gives those of each block of indices.
pub(crate) fn mask(
    message: &mut Vec<u8>,
    rho: &[u64],
    ring: Modulus,
    elements: impl Fn(Range<usize>, &mut [u64]) + Sync,
) {
    let start = message.len();
    message.resize(start + ring.packed_bytes(rho.len()), 0);
    let blocks = message[start..].par_chunks_mut(ring.packed_bytes(BLOCK)).zip(rho.par_chunks(BLOCK)).enumerate();
    blocks.with_min_len(BLOCKS_PER_JOB).for_each(|(index, (bytes, rho))| {
        let (first, masked) = (index * BLOCK, &mut [0; BLOCK][..rho.len()]);
        elements(first..first + rho.len(), masked);
        masked.iter_mut().zip(rho).for_each(|(masked, rho)| *masked = ring.reduce(masked.wrapping_sub(*rho)));
        ring.pack_into(bytes, masked);
    });
}

/// Hands every block of indices to `work` with its part of `values` and two zero vectors as long.
pub(crate) fn in_blocks(values: &mut [u64], work: impl Fn(Range<usize>, &mut [u64], [&mut [u64]; 2]) + Sync) {
    values.par_chunks_mut(BLOCK).enumerate().with_min_len(BLOCKS_PER_JOB).for_each(|(index, values)| {
        let (first, len) = (index * BLOCK, values.len());
        work(first..first + len, values, [&mut [0; BLOCK][..len], &mut [0; BLOCK][..len]]);
    });
}
