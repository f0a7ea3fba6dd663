//! AES-128 under one key: code for VAES where the processor has it, on vectors of 512 or else of 256 bits; else the `aes` crate,
//! which itself picks AES-NI or a bit-sliced constant-time form.

use ::aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use ::aes::{Aes128Enc, Block as CrateBlock};

#[cfg(target_arch = "x86_64")]
use super::x86::{narrow::NarrowVaes128, vaes::Vaes128};
use crate::Block;
use crate::ggm::{Correction, TREES};
use crate::sparse::{Lanes, ROWS, WORD_BLOCKS};

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
    /// The key in this crate's VAES code for 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Narrow(NarrowVaes128),
}

impl Aes128 {
    /// Schedules a key for the fastest code of this machine, or for the `aes` crate under `PRIVET_PORTABLE=1`.
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if !crate::is_portable_forced() {
            if let Some(vaes) = Vaes128::detect(key) {
                return Self::Vaes(vaes);
            }
            if let Some(narrow) = NarrowVaes128::detect(key) {
                return Self::Narrow(narrow);
            }
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
            #[cfg(target_arch = "x86_64")]
            Self::Narrow(aes) => aes.counters(first, out),
        }
    }

    /// See [`crate::hash::Hash::low_bits`].
    pub(crate) fn hashed_bits<const N: usize>(&self, blocks: &[Block], offset: Block, out: &mut [[u64; N]]) {
        match self {
            Self::Crate(aes) => {
                for (blocks, words) in blocks.chunks(BATCH).zip(out) {
                    let hashes = hashes(aes, blocks, offset);
                    for (bit, word) in words.iter_mut().enumerate() {
                        let bits = hashes[..blocks.len()].iter().enumerate();
                        *word = bits.fold(0, |word, (i, &hash)| word | (hash as u64 >> bit & 1) << i);
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(aes) => aes.hashed_bits(blocks, offset, out),
            #[cfg(target_arch = "x86_64")]
            Self::Narrow(aes) => aes.hashed_bits(blocks, offset, out),
        }
    }

    /// See [`crate::hash::Hash::words`].
    pub(crate) fn hashed_words(&self, blocks: &[Block], offset: Block, out: &mut [u64]) {
        match self {
            Self::Crate(aes) => {
                for (blocks, words) in blocks.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
                    let hashes = hashes(aes, blocks, offset);
                    words.iter_mut().zip(hashes).for_each(|(word, hash)| *word = hash as u64);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(aes) => aes.hashed_words(blocks, offset, out),
            #[cfg(target_arch = "x86_64")]
            Self::Narrow(aes) => aes.hashed_words(blocks, offset, out),
        }
    }

    /// See [`crate::sparse::add`].
    pub(crate) fn add_sparse(&self, out: &mut [[Lanes; ROWS]], parts: &[Lanes], first: u64, stride: u64) {
        #[cfg(target_arch = "x86_64")]
        if let Self::Vaes(aes) = self {
            return aes.add_sparse(out, parts, first, stride);
        }
        let mut words = [0; WORD_BLOCKS];
        for (row, sums) in (0..).zip(out) {
            self.counters(first.wrapping_add(stride.wrapping_mul(row)), &mut words);
            (super::kernels().add_sparse)(sums, parts, &words);
        }
    }

    /// Replaces parents by their left children, and writes the right ones; see [`crate::ggm::grow`]. Returns the sum of
    /// each tree's left children. To parent `correction.paths[g]` of these its difference is added before.
    pub(crate) fn children(
        &self,
        parents: &mut [[Block; TREES]],
        right: &mut [[Block; TREES]],
        correction: &Correction,
    ) -> [Block; TREES] {
        match self {
            Self::Crate(aes) => {
                let mut sums = [0; TREES];
                super::portable::correct(parents.as_flattened_mut(), correction);
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
            Self::Vaes(aes) => aes.children(parents, right, correction),
            #[cfg(target_arch = "x86_64")]
            Self::Narrow(aes) => aes.children(parents, right, correction),
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
        #[cfg(target_arch = "x86_64")]
        every.extend(NarrowVaes128::detect(key).map(Self::Narrow));
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

/// `AES(x) ^ x` of every `x = blocks[i] ^ offset`, of at most [`BATCH`] blocks.
fn hashes(aes: &Aes128Enc, blocks: &[Block], offset: Block) -> [Block; BATCH] {
    let mut hashes = [0; BATCH];
    let some = &mut hashes[..blocks.len()];
    some.iter_mut().zip(blocks).for_each(|(hash, block)| *hash = block ^ offset);
    encrypt(aes, some);
    some.iter_mut().zip(blocks).for_each(|(hash, block)| *hash ^= block ^ offset);
    hashes
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
        fn hashes_are_their_definition(key: [u8; 16], offset: Block, inputs in prop::collection::vec(any::<Block>(), 0..300)) {
            for aes in Aes128::every(&key) {
                let rows = inputs.len().div_ceil(64);
                let (mut one, mut two, mut words) = (vec![[7]; rows], vec![[7; 2]; rows], vec![7; inputs.len()]);
                aes.hashed_bits(&inputs, offset, &mut one);
                aes.hashed_bits(&inputs, offset, &mut two);
                aes.hashed_words(&inputs, offset, &mut words);
                let expected: Vec<u64> = inputs.iter().map(|x| (slow(&key, x ^ offset) ^ x ^ offset) as u64).collect();
                prop_assert_eq!(words, &expected[..]);
                for i in 0..64 * rows {
                    let expected = expected.get(i).map_or(0, |word| word & 3);
                    prop_assert_eq!(one[i / 64][0] >> (i % 64) & 1, expected & 1);
                    prop_assert_eq!(two[i / 64][1] >> (i % 64) & 1, expected >> 1);
                    prop_assert_eq!(two[i / 64][0] >> (i % 64) & 1, expected & 1);
                }
            }
        }
    }
}
