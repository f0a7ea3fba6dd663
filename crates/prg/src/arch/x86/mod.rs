//! Code for the vector instructions of x86-64.

use super::Kernels;

/// A key of AES-128 for functions of the same names, which take these features and no others.
macro_rules! scheduled {
    ($name:ident, [$($feature:tt),+]) => {
        /// A scheduled key. It exists only where the processor has all features that the code takes.
        #[derive(Clone, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
        pub(crate) struct $name {
            pub(super) round_keys: [Block; 11],
        }

        impl $name {
            /// Schedules a key, if this processor can run the code.
            pub(crate) fn detect(key: &[u8; 16]) -> Option<Self> {
                let has_all = $(::std::arch::is_x86_feature_detected!($feature))&&+;
                // SAFETY: the processor has AES-NI.
                has_all.then(|| Self { round_keys: unsafe { schedule(Block::from_le_bytes(*key)) } })
            }

            /// See [`crate::arch::Aes128::counters`].
            pub(crate) fn counters(&self, first: u64, out: &mut [Block]) {
                // SAFETY: this value exists, so the processor has the features.
                unsafe { counters(&self.round_keys, first, out) }
            }

            /// See [`crate::hash::Hash::low_bits`].
            pub(crate) fn hashed_bits<const N: usize>(&self, blocks: &[Block], offset: Block, out: &mut [[u64; N]]) {
                // SAFETY: as above.
                unsafe { hashed_bits(&self.round_keys, blocks, offset, out) }
            }

            /// See [`crate::hash::Hash::words`].
            pub(crate) fn hashed_words(&self, blocks: &[Block], offset: Block, out: &mut [u64]) {
                // SAFETY: as above.
                unsafe { hashed_words(&self.round_keys, blocks, offset, out) }
            }

            /// See [`crate::arch::Aes128::children`].
            pub(crate) fn children(
                &self,
                parents: &mut [[Block; TREES]],
                right: &mut [[Block; TREES]],
                correction: &Correction,
            ) -> [Block; TREES] {
                // SAFETY: as above.
                unsafe { children(&self.round_keys, parents, right, correction) }
            }
        }
    };
}

mod gfni;
pub(super) mod narrow;
mod paths;
mod sparse;
mod tags;
pub(super) mod vaes;
mod wide;

/// What this processor can run, slowest first.
pub(super) fn kernels() -> Vec<Kernels> {
    wide::avx2().into_iter().chain(gfni::avx512()).collect()
}
