//! AES-128 in counter mode with random access.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block as AesBlock};

use crate::{Block, Seed};

/// Blocks that go through AES at once: the widest batch that the `aes` crate keeps in registers.
pub(crate) const BATCH: usize = 64;

/// The stream of blocks `AES_seed(0), AES_seed(1), ...`, readable from any position.
///
/// [`crate::Prg`] reads the same stream from its start, so a seed must be given to one of the two only.
#[derive(Clone)]
pub struct KeyStream {
    cipher: Aes128Enc,
}

impl KeyStream {
    /// Schedules the key; the schedule is wiped on drop.
    pub fn new(seed: &Seed) -> Self {
        Self { cipher: Aes128Enc::new(&Array(*seed.as_bytes())) }
    }

    /// Writes blocks `first .. first + out.len()` of the stream. Fastest for multiples of 64 blocks.
    pub fn blocks(&self, first: u64, out: &mut [Block]) {
        self.bytes(first, bytemuck::must_cast_slice_mut(out));
        out.iter_mut().for_each(|block| *block = Block::from_le(*block));
    }

    /// Writes the stream's bytes from block `first` on; `out` may end inside a block.
    pub(crate) fn bytes(&self, first: u64, out: &mut [u8]) {
        let mut position = Block::from(first);
        let mut batches = out.chunks_exact_mut(16 * BATCH);
        for batch in &mut batches {
            let (blocks, _) = batch.as_chunks_mut();
            self.encrypt_counters(position, blocks);
            position += BATCH as Block;
        }
        let rest = batches.into_remainder();
        if !rest.is_empty() {
            // A whole batch costs less than half a batch block by block.
            let mut batch = [[0; 16]; BATCH];
            let needed = rest.len().div_ceil(16);
            let computed = if needed <= 4 { needed } else { BATCH };
            self.encrypt_counters(position, &mut batch[..computed]);
            rest.copy_from_slice(&batch.as_flattened()[..rest.len()]);
        }
    }

    fn encrypt_counters(&self, first: Block, blocks: &mut [[u8; 16]]) {
        for (offset, block) in blocks.iter_mut().enumerate() {
            *block = (first + offset as Block).to_le_bytes();
        }
        self.cipher.encrypt_blocks(AesBlock::cast_slice_from_core_mut(blocks));
    }
}
