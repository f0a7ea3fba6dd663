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

#[cfg(test)]
mod tests {
    use privet_channel::pair;
    use privet_ot::{Demand, Role, Stock};
    use privet_prg::{Prg, Seed};

    use super::*;
    use crate::Rounds;

    const N: usize = 4096;
    const WIDTH: u32 = 13;

    #[test]
    fn what_is_sent_is_balanced_whatever_is_selected() {
        let demand = Demand { products_sent_by_client: N, products_sent_by_server: N, ..Demand::NONE };
        for (role, secret) in [Role::Client, Role::Server].into_iter().flat_map(|role| [(role, 0), (role, u64::MAX)]) {
            let (client, server) = Stock::deal(&demand, &mut Prg::from_seed(&Seed::from_block(7)));
            let mut stock = if role == Role::Client { client } else { server };
            let (mut near, mut far) = pair();
            let vector = Modulus::new(WIDTH);
            let length = N / 8 + vector.packed_bytes(N);
            let peer = std::thread::spawn(move || far.exchange(&vec![0; length]).expect("a message"));
            let mut party = Party { role, channel: &mut near, stock: &mut stock, rounds: Rounds::Log };
            let bits = Bits::from_lowest([secret; N].into_iter());
            select(&mut party, &bits, &[vector.reduce(secret); N], WIDTH).expect("products");

            let message = peer.join().expect("the peer does not panic");
            let (flips, words) = message.split_at(N / 8);
            let words = vector.unpack(words, N).expect("as many words as bits");
            let columns = (0..WIDTH).map(|bit| words.iter().map(|word| word >> bit & 1).sum::<u64>());
            let flips = flips.iter().map(|byte| u64::from(byte.count_ones())).sum();
            for ones in columns.chain([flips]) {
                // Six deviations.
                assert!(ones.abs_diff(N as u64 / 2) < 192, "{ones} of {N} for {secret:x} at the {role:?}");
            }
        }
    }
}
