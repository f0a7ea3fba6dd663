//! AES-128 under one key: code for VAES where the processor has it, else the `aes` crate, which itself picks AES-NI or a
//! bit-sliced constant-time form.

use ::aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use ::aes::{Aes128Enc, Block as CrateBlock};

#[cfg(target_arch = "x86_64")]
use super::x86::vaes::Vaes128;
use crate::Block;
use crate::ggm::TREES;

/// Blocks that go through the `aes` crate at once: the widest batch that it keeps in registers.
pub(super) const BATCH: usize = 64;

/// A scheduled key, wiped on drop.
#[derive(Clone)]
pub(crate) enum Aes128 {
    /// The key in the `aes` crate.
    Crate(Aes128Enc),
    /// The key in this crate's VAES code.
    #[cfg(target_arch = "x86_64")]
    Vaes(Vaes128),
}

impl Aes128 {
    /// Schedules a key for the fastest code of this machine, or for the `aes` crate under `PRIVET_PORTABLE=1`.
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if !crate::is_portable_forced()
            && let Some(vaes) = Vaes128::detect(key)
        {
            return Self::Vaes(vaes);
        }
        Self::Crate(Aes128Enc::new(&Array(*key)))
    }

    /// Writes `AES(first), AES(first + 1), ...`; the counter is a 64-bit number and wraps around.
    pub(crate) fn counters(&self, first: u64, out: &mut [Block]) {
        match self {
            Self::Crate(aes) => {
                for (i, block) in out.iter_mut().enumerate() {
                    *block = Block::from(first.wrapping_add(i as u64));
                }
                encrypt(aes, out);
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(aes) => aes.counters(first, out),
        }
    }

    /// Replaces every `x` by `AES(AES(x) ^ tweak) ^ AES(x)`, with `tweak` counting from `first`.
    pub(crate) fn tweaked_hash(&self, first: u64, blocks: &mut [Block]) {
        match self {
            Self::Crate(aes) => {
                for (batch, blocks) in blocks.chunks_mut(BATCH).enumerate() {
                    encrypt(aes, blocks);
                    let mut outer = [0; BATCH];
                    let outer = &mut outer[..blocks.len()];
                    for (i, (outer, inner)) in outer.iter_mut().zip(blocks.iter()).enumerate() {
                        *outer = inner ^ Block::from(first.wrapping_add((batch * BATCH + i) as u64));
                    }
                    encrypt(aes, outer);
                    blocks.iter_mut().zip(outer).for_each(|(block, outer)| *block ^= *outer);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(aes) => aes.tweaked_hash(first, blocks),
        }
    }

    /// Replaces parents by their left children, and writes the right ones; see [`crate::ggm::grow`]. Returns the sum of
    /// each tree's left children.
    pub(crate) fn children(&self, parents: &mut [[Block; TREES]], right: &mut [[Block; TREES]]) -> [Block; TREES] {
        match self {
            Self::Crate(aes) => {
                let mut sums = [0; TREES];
                for (left, right) in parents.chunks_mut(BATCH / TREES).zip(right.chunks_mut(BATCH / TREES)) {
                    let (left, right) = (left.as_flattened_mut(), right.as_flattened_mut());
                    let mut hashes = [0; BATCH];
                    let hashes = &mut hashes[..left.len()];
                    hashes.iter_mut().zip(left.iter()).for_each(|(hash, parent)| *hash = mix(*parent));
                    encrypt(aes, hashes);
                    for (i, ((left, right), hash)) in left.iter_mut().zip(right).zip(hashes).enumerate() {
                        let child = *hash ^ mix(*left);
                        *right = *left ^ child;
                        *left = child;
                        sums[i % TREES] ^= child;
                    }
                }
                sums
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(aes) => aes.children(parents, right),
        }
    }
}

#[cfg(test)]
impl Aes128 {
    /// The key in the code that runs everywhere.
    pub(crate) fn portable(key: &[u8; 16]) -> Self {
        Self::Crate(Aes128Enc::new(&Array(*key)))
    }

    /// The same key in all the code that this machine can run.
    pub(crate) fn every(key: &[u8; 16]) -> Vec<Self> {
        let mut every = vec![Self::portable(key)];
        #[cfg(target_arch = "x86_64")]
        every.extend(Vaes128::detect(key).map(Self::Vaes));
        every
    }

    /// AES of one block, by the `aes` crate.
    pub(crate) fn encrypt_one(&self, block: Block) -> Block {
        let Self::Crate(aes) = self else { panic!("the portable code only") };
        let mut blocks = [block];
        encrypt(aes, &mut blocks);
        blocks[0]
    }
}

/// The linear map before the permutation of [`crate::ggm`]: `(high, low)` becomes `(high ^ low, high)`.
pub(super) fn mix(x: Block) -> Block {
    (x ^ x << 64) & !(u64::MAX as Block) | x >> 64
}

pub(super) fn encrypt(aes: &Aes128Enc, blocks: &mut [Block]) {
    blocks.iter_mut().for_each(|block| *block = block.to_le());
    let (bytes, _) = bytemuck::must_cast_slice_mut::<Block, u8>(blocks).as_chunks_mut();
    aes.encrypt_blocks(CrateBlock::cast_slice_from_core_mut(bytes));
    blocks.iter_mut().for_each(|block| *block = Block::from_le(*block));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// AES of one block, by the `aes` crate.
    fn slow(key: &[u8; 16], block: Block) -> Block {
        let mut bytes = Array(block.to_le_bytes());
        Aes128Enc::new(&Array(*key)).encrypt_block(&mut bytes);
        Block::from_le_bytes(bytes.0)
    }

    #[test]
    fn one_block_is_as_in_fips_197() {
        // Appendix C.1 of FIPS 197 encrypts 00112233..., which is no counter; the zero block under the zero key is the
        // hash key of test case 1 in McGrew and Viega's GCM specification.
        let expected = 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e_u128.swap_bytes();
        for aes in Aes128::every(&[0; 16]) {
            let mut block = [1];
            aes.counters(0, &mut block);
            assert_eq!(block, [expected]);
        }
    }

    proptest! {
        #[test]
        fn counters_are_their_definition(key: [u8; 16], first: u64, count in 0_usize..300) {
            for aes in Aes128::every(&key) {
                let mut blocks = vec![1; count];
                aes.counters(first, &mut blocks);
                for (i, block) in blocks.iter().enumerate() {
                    prop_assert_eq!(*block, slow(&key, Block::from(first.wrapping_add(i as u64))));
                }
            }
        }

        #[test]
        fn hashes_are_their_definition(key: [u8; 16], first: u64, inputs in prop::collection::vec(any::<Block>(), 0..300)) {
            for aes in Aes128::every(&key) {
                let mut blocks = inputs.clone();
                aes.tweaked_hash(first, &mut blocks);
                for (i, (block, input)) in blocks.iter().zip(&inputs).enumerate() {
                    let inner = slow(&key, *input);
                    let tweak = Block::from(first.wrapping_add(i as u64));
                    prop_assert_eq!(*block, slow(&key, inner ^ tweak) ^ inner);
                }
            }
        }
    }
}
