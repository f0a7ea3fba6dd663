//! Correlated OT by extension of 128 base OTs: SoftSpokenOT (Roy, CRYPTO 2022), semi-honest, with the repetition code.
//!
//! Each of `128 / k` groups gives a small-field VOLE ([`crate::vole`]); the receiver takes the `u` of group 0 as its
//! choice bits and sends, for every other group, the difference of that group's `u` from it: `128 / k - 1` bits per OT,
//! one message, no reply. `k = 1` is IKNP without its first column. Larger `k` trades computation
//! (`128 / k * 2^k / 128` AES calls per OT) for bytes.
//!
//! Work goes through in chunks of 8192 OTs, each in cache, spread over the threads of rayon's pool.

use privet_channel::Channel;
use privet_prg::{Block, Wiped, transpose};
use privet_ring::Bits;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::correlated::{CotReceiver, CotSender};
use crate::vole::{Forest, add};
use crate::{Error, tree};

/// Blocks of 128 OTs in a chunk: what AES takes at once, and what keeps a chunk in the second-level cache.
const CHUNK: usize = 64;

/// Chunks that a thread takes at once, so that its working memory pays off.
const CHUNKS_PER_TASK: usize = 4;

/// The parameter `k` of SoftSpokenOT: log2 of the field's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FieldBits {
    /// IKNP: 127 bits on the wire and two AES calls of each party per OT.
    One,
    /// 63 bits and two AES calls.
    Two,
    /// 31 bits and four AES calls.
    #[default]
    Four,
    /// 15 bits and 32 AES calls.
    Eight,
}

impl FieldBits {
    /// The number `k`.
    pub fn k(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// Blocks that the receiver sends per 128 OTs.
    pub(crate) fn sent_blocks(self) -> usize {
        128 / self.k() - 1
    }
}

/// The sender of the extension: it was the receiver of the base OTs.
pub struct SoftSpokenSender {
    field: FieldBits,
    delta: Block,
    forest: Forest,
    next_block: u64,
    /// The receiver's last message, and the blocks from it.
    message: Vec<[u8; 16]>,
    q: Zeroizing<Vec<Block>>,
}

impl SoftSpokenSender {
    /// `seeds`: from [`tree::grow`] with the same `delta`.
    pub(crate) fn new(field: FieldBits, delta: Block, seeds: &tree::Seeds) -> Self {
        let forest = Forest::new(field.k(), seeds, true);
        Self { field, delta, forest, next_block: 0, message: Vec::new(), q: Zeroizing::default() }
    }

    /// The blocks `q` of a chunk from the receiver's message for it.
    fn chunk(&self, first: u64, message: &[[u8; 16]], q: &mut [Block], scratch: &mut [Block]) {
        let (k, width) = (self.field.k(), q.len() / 128);
        let (rows, leaves) = cut(scratch, k, width);
        for (group, rows) in rows.chunks_exact_mut(k * width).enumerate() {
            self.forest.sums(group, first, rows, leaves);
            let Some(before) = group.checked_sub(1) else { continue };
            let correction = &message[before * width..][..width];
            for (bit, row) in rows.chunks_exact_mut(width).enumerate() {
                let mask = (self.delta >> (group * k + bit) & 1).wrapping_neg();
                for (row, correction) in row.iter_mut().zip(correction) {
                    *row ^= Block::from_le_bytes(*correction) & mask;
                }
            }
        }
        transpose::columns(rows, q);
    }

    /// The blocks `q` of 128 OTs from [`SoftSpokenReceiver::correlate`]'s message.
    pub(crate) fn correlate(&mut self, message: &[u8]) -> Vec<Block> {
        let (message, _) = message.as_chunks::<16>();
        let mut q = vec![0; 128];
        self.chunk(self.next_block, message, &mut q, &mut scratch(self.field, 1));
        self.next_block += 1;
        q
    }

    /// The first blocks `q` of the last extension, which keeps none of them.
    pub(crate) fn take_blocks(&mut self, count: usize) -> Vec<Block> {
        taken(&mut self.q, count)
    }
}

impl CotSender for SoftSpokenSender {
    fn delta(&self) -> Block {
        self.delta
    }

    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<&[Block], Error> {
        let blocks = count.div_ceil(128);
        let sent = self.field.sent_blocks();
        let (mut message, mut q) = (std::mem::take(&mut self.message), std::mem::take(&mut self.q));
        message.resize(sent * blocks, [0; 16]);
        channel.recv_into(message.as_flattened_mut())?;
        resize(&mut q, 128 * blocks);
        q.par_chunks_mut(128 * CHUNK)
            .zip(message.par_chunks(sent * CHUNK))
            .enumerate()
            .with_min_len(CHUNKS_PER_TASK)
            .for_each_init(
                || scratch(self.field, CHUNK),
                |scratch, (index, (q, message))| {
                    self.chunk(self.next_block + (index * CHUNK) as u64, message, q, scratch);
                },
            );
        self.next_block += blocks as u64;
        (self.message, self.q) = (message, q);
        Ok(&self.q[..count])
    }
}

impl Drop for SoftSpokenSender {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

/// The receiver of the extension: it was the sender of the base OTs.
pub struct SoftSpokenReceiver {
    field: FieldBits,
    forest: Forest,
    next_block: u64,
    /// The last message, and the blocks that belong to it.
    message: Vec<[u8; 16]>,
    t: Zeroizing<Vec<Block>>,
}

impl SoftSpokenReceiver {
    /// `seeds`: from [`tree::plant`].
    pub(crate) fn new(field: FieldBits, seeds: &tree::Seeds) -> Self {
        let forest = Forest::new(field.k(), seeds, false);
        Self { field, forest, next_block: 0, message: Vec::new(), t: Zeroizing::default() }
    }

    /// Choice bits, blocks `t` and the message of a chunk.
    fn chunk(
        &self,
        first: u64,
        message: &mut [[u8; 16]],
        choice: &mut [Block],
        t: &mut [Block],
        scratch: &mut [Block],
    ) {
        let (k, width) = (self.field.k(), choice.len());
        let (rows, leaves) = cut(scratch, k, width);
        for (group, rows) in rows.chunks_exact_mut(k * width).enumerate() {
            self.forest.sums(group, first, rows, leaves);
            let u = &mut leaves[..width];
            let Some(before) = group.checked_sub(1) else {
                choice.copy_from_slice(u);
                continue;
            };
            add(u, choice);
            for (bytes, block) in message[before * width..][..width].iter_mut().zip(u) {
                *bytes = block.to_le_bytes();
            }
        }
        transpose::columns(rows, t);
    }

    /// The first blocks `t` of the last extension, which keeps none of them.
    pub(crate) fn take_blocks(&mut self, count: usize) -> Vec<Block> {
        taken(&mut self.t, count)
    }

    /// 128 OTs without a channel: choice bits, blocks `t`, and the message for the sender.
    pub(crate) fn correlate(&mut self) -> (Block, Vec<Block>, Vec<u8>) {
        let mut message = vec![[0; 16]; self.field.sent_blocks()];
        let (mut choice, mut t) = ([0], vec![0; 128]);
        self.chunk(self.next_block, &mut message, &mut choice, &mut t, &mut scratch(self.field, 1));
        self.next_block += 1;
        (choice[0], t, message.as_flattened().to_vec())
    }
}

impl CotReceiver for SoftSpokenReceiver {
    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<(Bits, &[Block]), Error> {
        let blocks = count.div_ceil(128);
        let sent = self.field.sent_blocks();
        let (mut message, mut t) = (std::mem::take(&mut self.message), std::mem::take(&mut self.t));
        message.resize(sent * blocks, [0; 16]);
        resize(&mut t, 128 * blocks);
        let mut choice = Zeroizing::new(vec![0; blocks]);
        t.par_chunks_mut(128 * CHUNK)
            .zip(choice.par_chunks_mut(CHUNK))
            .zip(message.par_chunks_mut(sent * CHUNK))
            .enumerate()
            .with_min_len(CHUNKS_PER_TASK)
            .for_each_init(
                || scratch(self.field, CHUNK),
                |scratch, (index, ((t, choice), message))| {
                    self.chunk(self.next_block + (index * CHUNK) as u64, message, choice, t, scratch);
                },
            );
        self.next_block += blocks as u64;
        channel.send(message.as_flattened())?;
        (self.message, self.t) = (message, t);
        let mut words: Vec<u64> = choice.iter().flat_map(|&block| [block as u64, (block >> 64) as u64]).collect();
        words.truncate(count.div_ceil(64));
        let choice =
            Bits::from_words(words, count).map_err(|_| Error::Misuse { what: "a count of OTs is too large" })?;
        Ok((choice, &self.t[..count]))
    }
}

/// The first of some blocks, which are then gone, as all of them are.
fn taken(blocks: &mut Zeroizing<Vec<Block>>, count: usize) -> Vec<Block> {
    let mut head = std::mem::take(&mut **blocks);
    head.truncate(count);
    head
}

/// Makes so many blocks of those there, which mean nothing. What is too short is wiped, not moved.
fn resize(blocks: &mut Vec<Block>, len: usize) {
    if blocks.capacity() < len {
        blocks.zeroize();
        *blocks = Vec::with_capacity(len);
    }
    blocks.resize(len, 0);
}

/// The working memory of chunks of up to `width` blocks of 128 OTs.
fn scratch(field: FieldBits, width: usize) -> Wiped<Block> {
    vec![0; (128 + (1 << field.k())) * width].into()
}

/// 128 rows and `2^k` leaves of `width` blocks.
fn cut(scratch: &mut [Block], k: usize, width: usize) -> (&mut [Block], &mut [Block]) {
    scratch[..(128 + (1 << k)) * width].split_at_mut(128 * width)
}

#[cfg(test)]
mod tests {
    use privet_channel::pair;
    use privet_prg::{Prg, Seed};

    use super::*;

    const FIELDS: [FieldBits; 4] = [FieldBits::One, FieldBits::Two, FieldBits::Four, FieldBits::Eight];

    /// Two matching ends over ideal base OTs.
    fn ends(field: FieldBits, seed: u8) -> (SoftSpokenSender, SoftSpokenReceiver) {
        let mut prg = Prg::from_seed(&Seed::from_bytes([seed; 16]));
        let delta = prg.block();
        let keys: Vec<[Block; 2]> = (0..128).map(|_| [prg.block(), prg.block()]).collect();
        let chosen: Vec<Block> = keys.iter().enumerate().map(|(i, keys)| keys[(delta >> i & 1) as usize]).collect();
        let (seeds, message) = tree::plant(field.k(), &keys, &mut prg);
        let punctured_seeds = tree::grow(field.k(), delta, &chosen, &message);
        (SoftSpokenSender::new(field, delta, &punctured_seeds), SoftSpokenReceiver::new(field, &seeds))
    }

    #[test]
    fn blocks_differ_by_delta_where_the_choice_is_one() -> Result<(), Error> {
        for field in FIELDS {
            let (mut sender, mut receiver) = ends(field, 1);
            let (mut to_receiver, mut to_sender) = pair();
            let delta = sender.delta();
            let mut seen = Vec::<Block>::new();
            for count in [1, 127, 128, 129, 0, 8191, 8192, 20_001] {
                let (choice, t) = receiver.extend(&mut to_sender, count)?;
                to_sender.flush()?;
                let q = sender.extend(&mut to_receiver, count)?;
                assert_eq!((q.len(), t.len(), choice.len()), (count, count, count));
                for i in 0..count {
                    let expected = if choice.get(i) { delta } else { 0 };
                    assert_eq!(q[i] ^ t[i], expected, "{field:?}, OT {i} of {count}");
                }
                seen.extend(q);
            }
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count, "{field:?} made a block twice");
        }
        Ok(())
    }

    #[test]
    fn choices_and_blocks_look_uniform() -> Result<(), Error> {
        const COUNT: usize = 100_000;
        // Six standard deviations of a binomial count.
        const SLACK: i64 = 950;
        for field in FIELDS {
            let (_, mut receiver) = ends(field, 2);
            let (mut channel, _peer) = pair();
            let (choice, t) = receiver.extend(&mut channel, COUNT)?;
            let near_half = |ones: usize| (ones as i64 - COUNT as i64 / 2).abs() < SLACK;
            assert!(near_half(choice.iter().filter(|&bit| bit).count()), "{field:?}");
            for bit in 0..128 {
                assert!(near_half(t.iter().filter(|&t| t >> bit & 1 == 1).count()), "{field:?}, bit {bit}");
                let equal = t.iter().zip(choice.iter()).filter(|&(t, c)| (t >> bit & 1 == 1) == c).count();
                assert!(near_half(equal), "{field:?}, bit {bit} against the choice");
            }
        }
        Ok(())
    }

    #[test]
    fn ends_with_different_fields_notice() -> Result<(), Error> {
        let ((mut sender, _), (_, mut receiver)) = (ends(FieldBits::Two, 3), ends(FieldBits::Four, 3));
        let (mut to_receiver, mut to_sender) = pair();
        receiver.extend(&mut to_sender, 1000)?;
        to_sender.flush()?;
        assert!(matches!(sender.extend(&mut to_receiver, 1000), Err(Error::Channel(_))));
        Ok(())
    }
}
