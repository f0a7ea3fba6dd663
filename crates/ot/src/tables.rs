//! Tables: one of `2^m` random entries for each `m` correlated OTs (as 1-of-N OT of Kolesnikov and Kumaresan, CRYPTO 2013, from
//! the sums that Yang et al., "Ferret", make of correlated OTs).
//!
//! The `m` blocks of a table are added up over GF(2^128), block `j` times `X^j`. So the sender has `Q`, the receiver
//! `T = Q + c * delta`, where the number `c` of its choice bits is a polynomial of degree below `m`. Entry `v` is the hash of
//! `Q + v * delta`: the receiver's own is that of `T`, and all others are hashes of `T + y * delta` with `y = c ^ v`, not zero, so
//! that `y * delta` is as uniform as `delta` is. A chunk of tables has a key of its own, chosen by its first table's running index.

use privet_prg::hash::Keys;
use privet_prg::{Block, Wiped};
use privet_ring::Bits;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::columns::columns;
use crate::random::{CHUNK, CHUNKS_PER_TASK};

/// What is in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Eight entries of one bit, from three correlated OTs.
    Eight,
    /// Sixteen entries of three bits, from four.
    Sixteen,
}

impl Shape {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Eight, Self::Sixteen];

    /// Bits of a choice, and correlated OTs of a table.
    pub const fn choice_bits(self) -> usize {
        match self {
            Self::Eight => 3,
            Self::Sixteen => 4,
        }
    }

    /// Entries of a table.
    pub const fn entries(self) -> usize {
        1 << self.choice_bits()
    }

    /// Bits of an entry.
    pub const fn entry_bits(self) -> usize {
        match self {
            Self::Eight => 1,
            Self::Sixteen => 3,
        }
    }

    /// Bits that the sender holds for a table.
    pub const fn sent_bits(self) -> usize {
        self.entries() * self.entry_bits()
    }

    /// Bits that the receiver holds for a table.
    pub const fn received_bits(self) -> usize {
        self.choice_bits() + self.entry_bits()
    }

    /// Tables whose entries are hashed under one key.
    const fn chunk(self) -> usize {
        CHUNK / self.entries()
    }
}

/// The sender's side of tables of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct TablesSent {
    /// Bit `i` of entry `v` of all tables at `v * entry_bits + i`.
    pub entries: Vec<Bits>,
}

/// The receiver's side of tables of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct TablesReceived {
    /// The bits of the number of an entry, the lowest first.
    pub choice: Vec<Bits>,
    /// The bits of that entry.
    pub received: Vec<Bits>,
}

columns! {
    TablesSent { entries }
    TablesReceived { choice, received }
}

impl TablesSent {
    pub(crate) fn none(shape: Shape) -> Self {
        Self { entries: vec![Bits::default(); shape.sent_bits()] }
    }

    /// How many tables.
    pub fn count(&self) -> usize {
        self.entries[0].len()
    }
}

impl TablesReceived {
    pub(crate) fn none(shape: Shape) -> Self {
        let none = |count| vec![Bits::default(); count];
        Self { choice: none(shape.choice_bits()), received: none(shape.entry_bits()) }
    }

    /// How many tables.
    pub fn count(&self) -> usize {
        self.choice[0].len()
    }
}

/// Moves entry `v` of each table to where `v ^ by` is, without a branch; `entries` as in [`TablesSent`], `by`: the bits of each
/// table's number. Entry 0 is then the one with this number.
pub fn shift(entries: &mut [Bits], by: &[Bits]) {
    let entry_bits = entries.len() >> by.len();
    for (bit, flip) in by.iter().enumerate() {
        let half = entry_bits << bit;
        for both in entries.chunks_exact_mut(2 * half) {
            let (low, high) = both.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                let swapped = low.xor(high).and(flip);
                low.xor_assign(&swapped);
                high.xor_assign(&swapped);
            }
        }
    }
}

/// Tables of the blocks `q`, of which block `j` of table `i` of `n` is at `j * n + i`, the first with index `first`.
pub(crate) fn sent(keys: &Keys, shape: Shape, q: &[Block], delta: Block, first: u64) -> TablesSent {
    let mut times = [0; 16];
    for v in 1..shape.entries() {
        times[v] = double(times[v / 2]) ^ if v % 2 == 1 { delta } else { 0 };
    }
    TablesSent { entries: hashes(keys, shape, q, &times[..shape.entries()], first) }
}

/// The other side of [`sent`], from choice bits and blocks in the same order.
pub(crate) fn received(keys: &Keys, shape: Shape, choice: &Bits, t: &[Block], first: u64) -> TablesReceived {
    let count = choice.len() / shape.choice_bits();
    let choice = (0..shape.choice_bits()).map(|j| choice.slice(j * count, count)).collect();
    TablesReceived { choice, received: hashes(keys, shape, t, &[0], first) }
}

/// The lowest bits of the hashes of all tables' sums and each of `offsets`, as many as an entry has: those of an offset side by side.
fn hashes(keys: &Keys, shape: Shape, blocks: &[Block], offsets: &[Block], first: u64) -> Vec<Bits> {
    match shape {
        Shape::Eight => hashes_of::<3, 1>(keys, shape, blocks, offsets, first),
        Shape::Sixteen => hashes_of::<4, 3>(keys, shape, blocks, offsets, first),
    }
}

/// Of tables of `M` blocks and entries of `N` bits.
fn hashes_of<const M: usize, const N: usize>(
    keys: &Keys,
    shape: Shape,
    blocks: &[Block],
    offsets: &[Block],
    first: u64,
) -> Vec<Bits> {
    let count = blocks.len() / M;
    let chunk_words = offsets.len() * shape.chunk() / 64;
    let mut words = Zeroizing::new(vec![[0; N]; offsets.len() * count.div_ceil(64)]);
    words.par_chunks_mut(chunk_words).enumerate().with_min_len(CHUNKS_PER_TASK).for_each_init(
        || Wiped::from(vec![0; shape.chunk()]),
        |sums, (chunk, words)| {
            let start = chunk * shape.chunk();
            let sums = &mut sums[..shape.chunk().min(count - start)];
            add_up(std::array::from_fn::<_, M, _>(|j| &blocks[j * count + start..][..sums.len()]), sums);
            let hash = keys.at(first + start as u64);
            for (&offset, words) in offsets.iter().zip(words.chunks_exact_mut(sums.len().div_ceil(64))) {
                hash.low_bits(sums, offset, words);
            }
        },
    );
    let plane = |plane: usize| {
        let mut column = Vec::with_capacity(count.div_ceil(64));
        for words in words.chunks(chunk_words) {
            let len = words.len() / offsets.len();
            column.extend(words[plane / N * len..][..len].iter().map(|word| word[plane % N]));
        }
        Bits::from_words(column, count).expect("one word per 64 bits")
    };
    (0..offsets.len() * N).map(plane).collect()
}

/// The sum of each table's blocks, block `j` times `X^j`.
fn add_up<const M: usize>(columns: [&[Block]; M], sums: &mut [Block]) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let (mut low, mut over) = (columns[0][i], 0);
        for (j, column) in columns.iter().enumerate().skip(1) {
            low ^= column[i] << j;
            over ^= column[i] >> (128 - j);
        }
        // What goes beyond `X^127`, modulo `X^128 + X^7 + X^2 + X + 1`.
        *sum = low ^ over ^ over << 1 ^ over << 2 ^ over << 7;
    }
}

/// A block times `X` in GF(2^128), modulo `X^128 + X^7 + X^2 + X + 1`.
fn double(block: Block) -> Block {
    block << 1 ^ (block >> 127).wrapping_neg() & 0x87
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use privet_prg::{Prg, Seed};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_receiver_gets_the_entry_it_chose(count in 0_usize..1200, seed: [u8; 16], first in 0..u64::MAX / 2) {
            let mut prg = Prg::from_seed(&Seed::from_bytes(seed));
            let (delta, keys) = (prg.block(), Keys::new(&prg.seed()));
            for shape in Shape::ALL {
                let mut q = vec![0; count * shape.choice_bits()];
                prg.fill_blocks(&mut q);
                let choice: Vec<bool> = q.iter().map(|_| prg.word() & 1 == 1).collect();
                let t: Vec<Block> = q.iter().zip(&choice).map(|(q, &c)| if c { q ^ delta } else { *q }).collect();
                let mut sent = sent(&keys, shape, &q, delta, first);
                let received = received(&keys, shape, &Bits::from_bools(&choice), &t, first);
                for i in 0..count {
                    let number = (0..shape.choice_bits()).map(|j| usize::from(choice[j * count + i]) << j).sum::<usize>();
                    for bit in 0..shape.entry_bits() {
                        let entry = &sent.entries[number * shape.entry_bits() + bit];
                        prop_assert_eq!(entry.get(i), received.received[bit].get(i));
                    }
                }
                shift(&mut sent.entries, &received.choice);
                prop_assert_eq!(&sent.entries[..shape.entry_bits()], &received.received[..]);
            }
        }
    }

    #[test]
    fn no_two_entries_of_a_table_hash_the_same_block() {
        let keys = Keys::new(&Seed::from_bytes([1; 16]));
        // Even where all blocks are alike and `delta` has few ones: 4,096 tables of one entry each are their words.
        for (shape, delta) in
            Shape::ALL.into_iter().flat_map(|shape| [1, 1 << 127, 3 << 126].map(|delta| (shape, delta)))
        {
            let tables = sent(&keys, shape, &vec![7; 4096 * shape.choice_bits()], delta, 0);
            let entries: HashSet<Vec<u8>> = tables.entries.iter().map(Bits::to_bytes).collect();
            assert_eq!(entries.len(), shape.sent_bits(), "{shape:?}, {delta:x}");
        }
    }

    #[test]
    fn sums_are_those_of_repeated_doubling() {
        let mut blocks = vec![0; 12 * 50];
        Prg::from_seed(&Seed::from_bytes([2; 16])).fill_blocks(&mut blocks);
        for shape in Shape::ALL {
            let count = blocks.len() / shape.choice_bits();
            let doubled =
                |i: usize| blocks.iter().skip(i).step_by(count).rev().fold(0, |sum, block| double(sum) ^ block);
            let column = |j: usize| &blocks[j * count..][..count];
            let mut sums = vec![0; count];
            match shape {
                Shape::Eight => add_up([0, 1, 2].map(column), &mut sums),
                Shape::Sixteen => add_up([0, 1, 2, 3].map(column), &mut sums),
            }
            assert_eq!(sums, (0..count).map(doubled).collect::<Vec<_>>(), "{shape:?}");
        }
    }

    #[test]
    fn doubling_is_a_product_in_a_field() {
        assert_eq!((double(1), double(1 << 127)), (2, 0x87));
        // The order of X divides 2^128 - 1 and no smaller power of two less one, as its polynomial is irreducible.
        let power = (0..128).fold(2, |block: Block, _| {
            (0..128).fold(0, |sum, bit| double(sum) ^ if block >> (127 - bit) & 1 == 1 { block } else { 0 })
        });
        assert_eq!(power, 2);
    }
}
