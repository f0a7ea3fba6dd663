//! Random OT from correlated OT: hashing breaks the correlation (Ishai, Kilian, Nissim and Petrank, CRYPTO 2003), with
//! the hash of [`privet_prg::hash`]. Both parties hash the same chunks of [`CHUNK`] OTs, each under a key of its own that the running
//! index of the chunk's first OT chooses.
//!
//! The sender's two messages are `H(q)` and `H(q ^ delta)`; the receiver knows `H(t)`, the one its choice bit
//! selects. A bit OT keeps bit 0 of the hash, one of two bits the lowest two, a word OT the low 64. All of it is wiped on drop.

use privet_prg::Block;
use privet_prg::hash::Keys;
use privet_ring::Bits;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::columns::columns;

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

/// The sender's side of random word OTs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct WordsSent {
    /// What the receiver gets where it chose 0.
    pub m0: Vec<u64>,
    /// What the receiver gets where it chose 1.
    pub m1: Vec<u64>,
}

/// The receiver's side of random word OTs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct WordsReceived {
    /// The choice bits.
    pub choice: Bits,
    /// `m0` where the choice bit is 0, `m1` where it is 1.
    pub received: Vec<u64>,
}

columns! {
    BitsSent { r0, r1 }
    BitsReceived { choice, received }
    PairsSent { r0, r1 }
    PairsReceived { choice, received }
}

/// Hashes of all `blocks[i] ^ offset`, the first with index `first`: their low `N` bits, packed.
pub(crate) fn bits<const N: usize>(keys: &Keys, blocks: &[Block], offset: Block, first: u64) -> [Bits; N] {
    let mut words = vec![[0; N]; blocks.len().div_ceil(64)];
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
    let (mut r0, mut r1) = (vec![[0; N]; words], vec![[0; N]; words]);
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

/// Hashes of all `blocks[i]`, the first with index `first`: the low word of each, in place of those in `words`.
pub(crate) fn words(keys: &Keys, blocks: &[Block], first: u64, words: &mut Vec<u64>) {
    resize(words, blocks.len());
    blocks.par_chunks(CHUNK).zip(words.par_chunks_mut(CHUNK)).enumerate().with_min_len(CHUNKS_PER_TASK).for_each(
        |(chunk, (blocks, words))| {
            keys.at(first + (chunk * CHUNK) as u64).words(blocks, 0, words);
        },
    );
}

/// As [`words`], for both messages of the sender.
pub(crate) fn both_words(keys: &Keys, q: &[Block], delta: Block, first: u64, words: &mut WordsSent) {
    resize(&mut words.m0, q.len());
    resize(&mut words.m1, q.len());
    q.par_chunks(CHUNK)
        .zip(words.m0.par_chunks_mut(CHUNK))
        .zip(words.m1.par_chunks_mut(CHUNK))
        .enumerate()
        .with_min_len(CHUNKS_PER_TASK)
        .for_each(|(chunk, ((q, m0), m1))| {
            let hash = keys.at(first + (chunk * CHUNK) as u64);
            hash.words(q, 0, m0);
            hash.words(q, delta, m1);
        });
}

/// Makes so many values of those there, which mean nothing. What is too short is wiped, not moved.
pub(crate) fn resize<T: Zeroize + Copy + Default>(values: &mut Vec<T>, len: usize) {
    if values.capacity() < len {
        values.zeroize();
        *values = Vec::with_capacity(len);
    }
    values.resize(len, T::default());
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
            let (mut sent_words, mut received_words) = (WordsSent::default(), vec![1; 5000]);
            both_words(&keys, &q, delta, first, &mut sent_words);
            words(&keys, &t, first, &mut received_words);
            for i in 0..count {
                let chosen = if choice[i] { &r1 } else { &r0 };
                for bit in 0..2 {
                    prop_assert_eq!(received[bit].get(i), chosen[bit].get(i));
                    prop_assert_eq!(received[bit].get(i), received_words[i] >> bit & 1 == 1);
                }
                let chosen = if choice[i] { &sent_words.m1 } else { &sent_words.m0 };
                prop_assert_eq!(received_words[i], chosen[i]);
            }
        }
    }
}
