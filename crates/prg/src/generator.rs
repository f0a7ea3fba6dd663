//! The pseudorandom generator of the protocols.

use zeroize::Zeroize;

use crate::{Block, Error, KeyStream, Seed, wipe};

/// Blocks made ahead: what AES takes at once.
const BATCH: usize = 64;

/// A pseudorandom generator: AES-128 in counter mode, read as one stream of bytes.
///
/// Every call takes the next bytes of the stream, whatever its unit, so cutting one call into several changes nothing.
/// Words and blocks are little-endian.
pub struct Prg {
    stream: KeyStream,
    next_block: u64,
    /// Little-endian whatever the machine, so that it can be read as bytes.
    buffer: [Block; BATCH],
    used_bytes: usize,
}

impl Prg {
    /// A generator with a fresh seed from the operating system: the only source of entropy in release code.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system gives no entropy.
    pub fn from_os() -> Result<Self, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        let seed = Seed::from_bytes(bytes);
        bytes.zeroize();
        Ok(Self::from_seed(&seed))
    }

    /// The generator of a seed that protocols exchange, or that a test fixes.
    pub fn from_seed(seed: &Seed) -> Self {
        Self { stream: KeyStream::new(seed), next_block: 0, buffer: [0; BATCH], used_bytes: 16 * BATCH }
    }

    /// The next `out.len()` bytes.
    pub fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.used_bytes == 16 * BATCH {
                let whole = out.len() / (16 * BATCH) * (16 * BATCH);
                // Whole batches are made where they are wanted, if blocks may lie there.
                if let (true, Ok(blocks)) = (whole > 0, bytemuck::try_cast_slice_mut(&mut out[..whole])) {
                    make(&self.stream, &mut self.next_block, blocks);
                    out = &mut out[whole..];
                    continue;
                }
                self.refill();
            }
            let bytes: &[u8] = bytemuck::must_cast_slice(&self.buffer);
            let count = out.len().min(bytes.len() - self.used_bytes);
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&bytes[self.used_bytes..self.used_bytes + count]);
            self.used_bytes += count;
            out = later;
        }
    }

    /// The next `out.len()` words.
    pub fn fill_words(&mut self, out: &mut [u64]) {
        self.fill(bytemuck::must_cast_slice_mut(out));
        out.iter_mut().for_each(|word| *word = u64::from_le(*word));
    }

    /// The next `out.len()` blocks.
    pub fn fill_blocks(&mut self, out: &mut [Block]) {
        self.fill(bytemuck::must_cast_slice_mut(out));
        out.iter_mut().for_each(|block| *block = Block::from_le(*block));
    }

    /// The next word.
    pub fn word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// The next block.
    pub fn block(&mut self) -> Block {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        Block::from_le_bytes(bytes)
    }

    /// A seed of the next 16 bytes.
    pub fn seed(&mut self) -> Seed {
        Seed::from_block(self.block())
    }

    /// A number below `bound`, each equally likely (Lemire 2019: multiply, reject the few words that would favour some).
    ///
    /// The number of words drawn depends on their values, not on the result.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound != 0, "no number is below zero");
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.word()) * u128::from(bound);
            if product as u64 >= rejected {
                return (product >> 64) as u64;
            }
        }
    }

    fn refill(&mut self) {
        make(&self.stream, &mut self.next_block, &mut self.buffer);
        self.used_bytes = 0;
    }
}

/// The blocks from the next one on, as bytes lie.
fn make(stream: &KeyStream, next_block: &mut u64, out: &mut [Block]) {
    stream.blocks(*next_block, out);
    out.iter_mut().for_each(|block| *block = block.to_le());
    *next_block += out.len() as u64;
}

impl Drop for Prg {
    fn drop(&mut self) {
        wipe(&mut self.buffer);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seed(byte: u8) -> Seed {
        Seed::from_bytes([byte; 16])
    }

    #[test]
    fn two_generators_from_the_system_differ() -> Result<(), Error> {
        assert_ne!(Prg::from_os()?.block(), Prg::from_os()?.block());
        Ok(())
    }

    #[test]
    fn the_key_stream_reads_the_same_bytes_from_anywhere() {
        let mut whole = vec![0; 300];
        Prg::from_seed(&seed(7)).fill_blocks(&mut whole);
        let stream = KeyStream::new(&seed(7));
        for (first, len) in [(0, 300), (1, 64), (17, 3), (40, 200), (299, 1), (300, 0)] {
            let mut part = vec![0; len];
            stream.blocks(first as u64, &mut part);
            assert_eq!(part, whole[first..first + len], "{len} blocks from {first}");
        }
    }

    proptest! {
        #[test]
        fn cutting_a_call_changes_nothing(cuts in prop::collection::vec(0_usize..3000, 1..6)) {
            let mut whole = vec![0; cuts.iter().sum()];
            Prg::from_seed(&seed(1)).fill(&mut whole);
            let mut prg = Prg::from_seed(&seed(1));
            let mut parts = Vec::new();
            for cut in cuts {
                let mut part = vec![0; cut];
                prg.fill(&mut part);
                parts.extend(part);
            }
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn words_and_blocks_are_the_same_bytes(words in 0_usize..500) {
            let mut expected = vec![0; 16 * words];
            Prg::from_seed(&seed(2)).fill(&mut expected);
            let mut as_words = vec![0; 2 * words];
            Prg::from_seed(&seed(2)).fill_words(&mut as_words);
            let mut as_blocks = vec![0; words];
            Prg::from_seed(&seed(2)).fill_blocks(&mut as_blocks);
            prop_assert_eq!(as_words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(as_blocks.iter().flat_map(|b| b.to_le_bytes()).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn numbers_stay_below_their_bound(bound in 1_u64.., byte: u8) {
            prop_assert!(Prg::from_seed(&seed(byte)).below(bound) < bound);
        }
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        let mut prg = Prg::from_seed(&seed(3));
        let mut counts = [0_i64; 6];
        for _ in 0..60_000 {
            counts[prg.below(6) as usize] += 1;
        }
        // Six standard deviations of a binomial count around 10,000.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 550), "{counts:?}");
    }
}
