//! Random OT from correlated OT: hashing breaks the correlation (Ishai, Kilian, Nissim and Petrank, CRYPTO 2003), with
//! the hash of [`privet_prg::hash`]. Both parties hash the same chunks of [`CHUNK`] OTs, each under a key of its own that the running
//! index of the chunk's first OT chooses.
//!
//! The sender's two messages are `H(q)` and `H(q ^ delta)`; the receiver knows `H(t)`, the one its choice bit
//! selects. A bit OT keeps bit 0 of the hash, one of two bits the lowest two, and a product as many low bytes as are wanted of it. All of
//! it is wiped on drop.

use privet_prg::Block;
use privet_prg::hash::Keys;
use privet_ring::{BLOCK, Bits};
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::columns::columns;
use crate::correlations::{ProductsReceived, ProductsSent};
use crate::packed::Room;

/// Blocks hashed at once, under one key.
pub(crate) const CHUNK: usize = 4096;

/// Chunks that a thread takes at once.
pub(crate) const CHUNKS_PER_TASK: usize = 8;

/// The sender's side of random bit OTs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct BitsSent {
    /// What the receiver gets where it chose 0.
    pub r0: Bits,
    /// What the receiver gets where it chose 1.
    pub r1: Bits,
}

/// The receiver's side of random bit OTs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct BitsReceived {
    /// The choice bits.
    pub choice: Bits,
    /// `r0` where the choice bit is 0, `r1` where it is 1.
    pub received: Bits,
}

/// The sender's side of random OTs of two bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct PairsSent {
    /// What the receiver gets where it chose 0: the first bits, and the second.
    pub r0: [Bits; 2],
    /// What the receiver gets where it chose 1.
    pub r1: [Bits; 2],
}

/// The receiver's side of random OTs of two bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct PairsReceived {
    /// The choice bits.
    pub choice: Bits,
    /// `r0` where the choice bit is 0, `r1` where it is 1.
    pub received: [Bits; 2],
}

columns! {
    BitsSent { r0, r1 }
    BitsReceived { choice, received }
    PairsSent { r0, r1 }
    PairsReceived { choice, received }
}

/// Hashes of all `blocks[i] ^ offset`, the first with index `first`: their low `N` bits, packed.
pub(crate) fn bits<const N: usize>(keys: &Keys, blocks: &[Block], offset: Block, first: u64) -> [Bits; N] {
    let mut words = Zeroizing::new(vec![[0; N]; blocks.len().div_ceil(64)]);
    blocks.par_chunks(CHUNK).zip(words.par_chunks_mut(CHUNK / 64)).enumerate().with_min_len(CHUNKS_PER_TASK).for_each(
        |(chunk, (blocks, words))| {
            keys.at(first + (chunk * CHUNK) as u64).low_bits(blocks, offset, words);
        },
    );
    packed(&words, blocks.len())
}

/// As [`bits`], for both messages of the sender.
pub(crate) fn both_bits<const N: usize>(keys: &Keys, q: &[Block], delta: Block, first: u64) -> [[Bits; N]; 2] {
    let words = q.len().div_ceil(64);
    let [mut r0, mut r1] = [0; 2].map(|_| Zeroizing::new(vec![[0; N]; words]));
    q.par_chunks(CHUNK)
        .zip(r0.par_chunks_mut(CHUNK / 64))
        .zip(r1.par_chunks_mut(CHUNK / 64))
        .enumerate()
        .with_min_len(CHUNKS_PER_TASK)
        .for_each(|(chunk, ((q, r0), r1))| {
            let hash = keys.at(first + (chunk * CHUNK) as u64);
            hash.low_bits(q, 0, r0);
            hash.low_bits(q, delta, r1);
        });
    [packed(&r0, q.len()), packed(&r1, q.len())]
}

/// Products whose first OT has index `first`, as sender, behind those that are made: with the low bytes of both hashes, the element is
/// `m1 - m0` and the share `-m0`.
pub(crate) fn products_sent(keys: &Keys, q: &[Block], delta: Block, first: u64, products: &mut ProductsSent) {
    let width = products.rho.width();
    let (ring, block) = (width.ring(), BLOCK * width.bytes());
    q.par_chunks(CHUNK)
        .zip(products.rho.grow(q.len()).par_chunks_mut(CHUNK * width.bytes()))
        .zip(products.share.grow(q.len()).par_chunks_mut(CHUNK * width.bytes()))
        .enumerate()
        .with_min_len(CHUNKS_PER_TASK)
        .for_each(|(chunk, ((q, rho), share))| {
            let hash = keys.at(first + (chunk * CHUNK) as u64);
            let [mut clear, mut set] = [0; 2].map(|_| Room::new());
            for ((q, rho), share) in q.chunks(BLOCK).zip(rho.chunks_mut(block)).zip(share.chunks_mut(block)) {
                let (m0, m1) = (&mut clear.0[..q.len()], &mut set.0[..q.len()]);
                hash.words(q, 0, m0);
                hash.words(q, delta, m1);
                for (m0, m1) in m0.iter_mut().zip(&mut *m1) {
                    (*m1, *m0) = (ring.reduce(m1.wrapping_sub(*m0)), ring.reduce(m0.wrapping_neg()));
                }
                ring.pack_into(rho, m1);
                ring.pack_into(share, m0);
            }
        });
}

/// As [`products_sent`], as receiver: the share is what it chose.
pub(crate) fn products_received(keys: &Keys, choice: &Bits, t: &[Block], first: u64, products: &mut ProductsReceived) {
    products.choice.extend(choice);
    let width = products.share.width();
    let (ring, block) = (width.ring(), BLOCK * width.bytes());
    t.par_chunks(CHUNK)
        .zip(products.share.grow(t.len()).par_chunks_mut(CHUNK * width.bytes()))
        .enumerate()
        .with_min_len(CHUNKS_PER_TASK)
        .for_each(|(chunk, (t, share))| {
            let hash = keys.at(first + (chunk * CHUNK) as u64);
            let mut chosen = Room::new();
            for (t, share) in t.chunks(BLOCK).zip(share.chunks_mut(block)) {
                let chosen = &mut chosen.0[..t.len()];
                hash.words(t, 0, chosen);
                ring.reduce_all(chosen);
                ring.pack_into(share, chosen);
            }
        });
}

/// Bit 0 of every block.
pub(crate) fn lowest_bits(blocks: &[Block]) -> Bits {
    Bits::from_lowest(blocks.iter().map(|&block| block as u64))
}

fn packed<const N: usize>(words: &[[u64; N]], len: usize) -> [Bits; N] {
    std::array::from_fn(|bit| {
        let words = words.iter().map(|words| words[bit]).collect();
        Bits::from_words(words, len).expect("one word per 64 bits")
    })
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};
    use proptest::prelude::*;

    use super::*;
    use crate::Width;

    proptest! {
        #[test]
        fn the_receiver_gets_the_message_it_chose(count in 0_usize..9000, seed: [u8; 16], first in 0..u64::MAX / 2) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let (delta, keys) = (prg.block(), Keys::new(&prg.seed()));
            let mut q = vec![0; count];
            prg.fill_blocks(&mut q);
            let choice: Vec<bool> = (0..count).map(|_| prg.word() & 1 == 1).collect();
            let t: Vec<Block> = q.iter().zip(&choice).map(|(q, &c)| if c { q ^ delta } else { *q }).collect();

            let ([r0, r1], received) = (both_bits::<2>(&keys, &q, delta, first), bits::<2>(&keys, &t, 0, first));
            let ([[only0], [only1]], [only]) = (both_bits(&keys, &q, delta, first), bits(&keys, &t, 0, first));
            prop_assert_eq!((&r0[0], &r1[0], &received[0]), (&only0, &only1, &only));
            let chosen = Bits::from_bools(&choice);
            let products = Width::ALL.map(|width| {
                let (mut sent, mut received) = (ProductsSent::none(width), ProductsReceived::none(width));
                // The later ones begin at an offset.
                let offset = count / 2 / CHUNK * CHUNK;
                let behind = first + offset as u64;
                products_sent(&keys, &q[..offset], delta, first, &mut sent);
                products_sent(&keys, &q[offset..], delta, behind, &mut sent);
                products_received(&keys, &chosen.slice(0, offset), &t[..offset], first, &mut received);
                products_received(&keys, &chosen.slice(offset, count - offset), &t[offset..], behind, &mut received);
                let words = [&sent.rho, &sent.share, &received.share].map(|elements| elements.all().to_words());
                prop_assert!(words.iter().all(|words| words.len() == count));
                for i in 0..count {
                    let product = if choice[i] { words[0][i] } else { 0 };
                    prop_assert_eq!(width.ring().reduce(words[1][i].wrapping_add(words[2][i])), product);
                }
                Ok(words)
            });
            let whole = products[7].as_ref().map_err(Clone::clone)?;
            for (products, width) in products.iter().zip(Width::ALL) {
                for (narrow, whole) in products.as_ref().map_err(Clone::clone)?.iter().zip(whole) {
                    prop_assert!(narrow.iter().zip(&**whole).all(|(narrow, whole)| *narrow == width.ring().reduce(*whole)));
                }
            }
            for i in 0..count {
                let chosen = if choice[i] { &r1 } else { &r0 };
                for bit in 0..2 {
                    prop_assert_eq!(received[bit].get(i), chosen[bit].get(i));
                    prop_assert_eq!(received[bit].get(i), whole[2][i] >> bit & 1 == 1);
                }
            }
        }
    }
}
