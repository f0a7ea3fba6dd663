//! Shared bits times shared vectors of bits: a [multiplexer](crate::mux) for values shared by exclusive or.
//!
//! A product correlation is an oblivious transfer of two words: of `-share` and `rho - share` at whoever holds `rho`, of which the other
//! party has the one that its choice names. So the two words serve as masks of vectors as well as of ring elements.

use privet_ring::{Bits, Modulus};

use crate::{Error, Party};

/// Shares by exclusive or of `b v`, of vectors of `width` bits; `bits`, `words`: this party's shares, `[n]` each.
///
/// One round, `n (1 + width)` bits each way and `n` products in each direction, as [`crate::cost::mux`].
///
/// # Errors
/// If the link fails or the stock runs dry.
pub(crate) fn select(party: &mut Party<'_>, bits: &Bits, words: &[u64], width: u32) -> Result<Vec<u64>, Error> {
    let (n, vector) = (bits.len(), Modulus::new(width));
    assert_eq!(n, words.len(), "one bit for each vector");
    let claim = party.stock.claim_products(n)?;
    let stock = &*party.stock;
    let ([rho, share], choice, received) = (stock.sent(&claim), stock.choice(&claim), stock.received(&claim));
    let flips = bits.xor(&choice);
    let masked = words.iter().zip(rho.iter().zip(share)).map(|(word, (rho, share))| {
        let [first, second] = [share.wrapping_neg(), rho.wrapping_sub(*share)];
        vector.reduce(word ^ first ^ second)
    });
    let mut message = flips.to_bytes();
    message.extend(vector.pack(&masked.collect::<Vec<_>>()));
    let reply = party.channel.exchange(&message)?;

    let (theirs, masked) = reply.split_at(n.div_ceil(8));
    let (theirs, masked) = (Bits::from_bytes(theirs, n)?, vector.unpack(masked, n)?);
    let mut products = Vec::with_capacity(n);
    for (block, words) in words.chunks(64).enumerate() {
        let [own, choice, flips] = [bits, &choice, &theirs].map(|bits| bits.words()[block]);
        for (i, word) in words.iter().enumerate() {
            let (at, mask) = (block * 64 + i, |bits: u64| (bits >> i & 1).wrapping_neg());
            // My bit times both parties' vectors, where the transferred word is theirs behind the other; and their bit times mine.
            let mine = word & mask(own) ^ masked[at] & mask(choice) ^ received[at];
            let others = word & mask(flips) ^ share[at].wrapping_neg();
            products.push(vector.reduce(mine ^ others));
        }
    }
    Ok(products)
}
