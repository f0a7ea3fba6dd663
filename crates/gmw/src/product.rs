//! Products by product correlations, in blocks that stay in the first cache; of two privately held bits, to begin with.

use std::ops::Range;

use privet_ot::{Claim, PackedRef, Role, Room, Stock};
use privet_ring::{BLOCK, Bits, Modulus, in_parts, select};

use crate::{Error, Party};

/// Shares in `ring` of `b_C b_S`; `bits`: this party's bits, `[n]`.
///
/// The client opens its bit behind the correlation's, the server its own behind the ring element, at once. One round;
/// `n` bits from the client, `n k` from the server, `n` products sent by the server ([`crate::cost::bit_product`]).
pub fn bit_product(party: &mut Party<'_>, bits: &Bits, ring: Modulus) -> Result<Vec<u64>, Error> {
    bit_product_then(party, bits, ring, |_, _, _| {})
}

/// [`bit_product`] of which `finish` makes something else, a block of indices at a time; it is handed as many numbers that it may write over.
pub(crate) fn bit_product_then(
    party: &mut Party<'_>,
    bits: &Bits,
    ring: Modulus,
    finish: impl Fn(Range<usize>, &mut [u64], &mut [u64]) + Sync,
) -> Result<Vec<u64>, Error> {
    let (opening, message) = Opening::of(party.stock, bits, ring)?;
    party.channel.send(&message)?;
    let reply = party.channel.recv(opening.expects())?;
    let mut products = vec![0; bits.len()];
    opening.multiply(party.stock, bits, &reply, &mut products, finish)?;
    Ok(products)
}

/// What this party has opened of products of two privately held bits.
pub(crate) struct Opening {
    claim: Claim,
    /// The client's flips.
    flips: Bits,
    ring: Modulus,
    /// Bytes of the other party's message.
    expects: usize,
}

impl Opening {
    /// Opens this party's factors behind correlations: also the message that does so.
    pub(crate) fn of(stock: &mut Stock, bits: &Bits, ring: Modulus) -> Result<(Self, Vec<u8>), Error> {
        let claim = stock.claim_products_from(Role::Server, ring.bits(), bits.len())?;
        let sizes = [bits.len().div_ceil(8), ring.packed_bytes(bits.len())];
        if stock.role() == Role::Server {
            let ([rho, _], mut message) = (stock.sent(&claim), Vec::new());
            mask(&mut message, rho, ring, |block, out| numbers(bits, &block, out));
            return Ok((Self { claim, flips: Bits::default(), ring, expects: sizes[0] }, message));
        }
        let flips = bits.xor(&stock.choice(&claim));
        let message = flips.to_bytes();
        Ok((Self { claim, flips, ring, expects: sizes[1] }, message))
    }

    /// Bytes of the other party's message.
    pub(crate) fn expects(&self) -> usize {
        self.expects
    }

    /// Writes this party's shares of the products to `products`, which are zero, as [`bit_product_then`]; `bits`: its factors.
    pub(crate) fn multiply(
        self,
        stock: &Stock,
        bits: &Bits,
        reply: &[u8],
        products: &mut [u64],
        finish: impl Fn(Range<usize>, &mut [u64], &mut [u64]) + Sync,
    ) -> Result<(), Error> {
        let Self { claim, flips, ring, .. } = self;
        if stock.role() == Role::Server {
            let ([rho, share], flips) = (stock.sent(&claim), Bits::from_bytes(reply, bits.len())?);
            in_blocks(products, |block, products, spare| {
                let (flips, [mut first, mut second]) = (words(&flips, &block), rooms());
                let (rho, share) = (rho.widen(block.clone(), &mut first), share.widen(block.clone(), &mut second));
                select::add_products(products, flips, rho, flips, share);
                ring.reduce_all(products);
                finish(block, products, spare);
            });
        } else {
            let share = stock.received(&claim);
            in_blocks(products, |block, products, spare| {
                let (bits, flips) = (words(bits, &block), words(&flips, &block));
                ring.unpack_into(spare, &reply[ring.packed_bytes(block.start)..ring.packed_bytes(block.end)]);
                select::add_products(products, bits, spare, flips, share.widen(block.clone(), &mut Room::new()));
                ring.reduce_all(products);
                finish(block, products, spare);
            });
        }
        Ok(())
    }
}

/// Appends elements behind masks, packed, to `message`: `elements` gives those of each block of indices.
pub(crate) fn mask(
    message: &mut Vec<u8>,
    rho: PackedRef<'_>,
    ring: Modulus,
    elements: impl Fn(Range<usize>, &mut [u64]) + Sync,
) {
    let start = message.len();
    message.resize(start + ring.packed_bytes(rho.len()), 0);
    in_parts(&mut message[start..], ring.packed_bytes(BLOCK), |index, bytes| {
        let block = index * BLOCK..rho.len().min((index + 1) * BLOCK);
        let (mut room, masked) = (Room::new(), &mut [0; BLOCK][..block.len()]);
        let rho = rho.widen(block.clone(), &mut room);
        elements(block, masked);
        masked.iter_mut().zip(rho).for_each(|(masked, rho)| *masked = ring.reduce(masked.wrapping_sub(*rho)));
        ring.pack_into(bytes, masked);
    });
}

/// Hands every block of indices to `work` with its part of `values` and as many zeros.
pub(crate) fn in_blocks(values: &mut [u64], work: impl Fn(Range<usize>, &mut [u64], &mut [u64]) + Sync) {
    in_parts(values, BLOCK, |index, values| {
        let (first, len) = (index * BLOCK, values.len());
        work(first..first + len, values, &mut [0; BLOCK][..len]);
    });
}

/// Room for two blocks of correlations.
pub(crate) fn rooms() -> [Room; 2] {
    [Room::new(), Room::new()]
}

/// The words of a block's bits; it begins with a whole word.
pub(crate) fn words<'a>(bits: &'a Bits, block: &Range<usize>) -> &'a [u64] {
    &bits.words()[block.start / 64..block.end.div_ceil(64)]
}

/// A block's bits as numbers.
pub(crate) fn numbers(bits: &Bits, block: &Range<usize>, out: &mut [u64]) {
    for (out, &word) in out.chunks_mut(64).zip(words(bits, block)) {
        out.iter_mut().enumerate().for_each(|(i, out)| *out = word >> i & 1);
    }
}
