//! Arithmetic modulo 2^l on `u64`.

use rayon::prelude::*;

use crate::arch::kernels;

/// Values packed at once: a multiple of 64, so that a block ends with a whole word in any ring.
pub const BLOCK: usize = 1024;

/// Parts that a thread takes at once.
const PARTS_PER_JOB: usize = 32;

/// Blocks that a thread packs or reads at once.
const BLOCKS_PER_JOB: usize = 128;

/// Hands parts of `size` elements of `out`, the last one shorter, to `work` with their indices: on several threads where there are more than 32,
/// else on this one, as asking others takes longer than so little work.
pub fn in_parts<T: Send>(out: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    in_jobs(out, size, PARTS_PER_JOB, work);
}

/// The same with `per_job` parts for each thread.
fn in_jobs<T: Send>(out: &mut [T], size: usize, per_job: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let job = |(index, part): (usize, &mut [T])| work(index, part);
    if out.len() <= size * per_job {
        out.chunks_mut(size).enumerate().for_each(job);
    } else {
        out.par_chunks_mut(size).enumerate().with_min_len(per_job).for_each(job);
    }
}

/// The ring Z_2^l for `1 <= l <= 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    bits: u32,
}

impl Modulus {
    /// The ring of `bits`-bit integers; panics unless `1 <= bits <= 64`.
    #[inline]
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 64, "a ring has 1 to 64 bits");
        Self { bits }
    }

    /// The width l in bits.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// 2^l - 1.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// `value` modulo 2^l.
    pub const fn reduce(self, value: u64) -> u64 {
        value & self.mask()
    }

    /// Reduces every value in place.
    pub fn reduce_all(self, values: &mut [u64]) {
        let mask = self.mask();
        values.iter_mut().for_each(|value| *value &= mask);
    }

    /// The representative in `[-2^(l-1), 2^(l-1))`.
    pub const fn signed(self, value: u64) -> i64 {
        let unused = 64 - self.bits;
        (value << unused) as i64 >> unused
    }

    /// The top bit of `value`: its sign.
    pub const fn sign(self, value: u64) -> u64 {
        value >> (self.bits - 1) & 1
    }

    /// Elementwise `a + b`.
    pub fn add(self, a: &[u64], b: &[u64]) -> Vec<u64> {
        assert_eq!(a.len(), b.len(), "sum of two lengths");
        a.iter().zip(b).map(|(a, b)| self.reduce(a.wrapping_add(*b))).collect()
    }

    /// Elementwise `a + b`, in the place of `a`.
    pub fn add_assign(self, a: &mut [u64], b: &[u64]) {
        assert_eq!(a.len(), b.len(), "sum of two lengths");
        a.iter_mut().zip(b).for_each(|(a, b)| *a = self.reduce(a.wrapping_add(*b)));
    }

    /// Elementwise `a - b`.
    pub fn sub(self, a: &[u64], b: &[u64]) -> Vec<u64> {
        assert_eq!(a.len(), b.len(), "difference of two lengths");
        a.iter().zip(b).map(|(a, b)| self.reduce(a.wrapping_sub(*b))).collect()
    }

    /// Bytes that `count` values take when packed to l bits each.
    pub const fn packed_bytes(self, count: usize) -> usize {
        (count * self.bits as usize).div_ceil(8)
    }

    /// Packs values, modulo 2^l, to l bits each, the wire form of a ring vector.
    pub fn pack(self, values: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; self.packed_bytes(values.len())];
        in_jobs(&mut bytes, self.packed_bytes(BLOCK), BLOCKS_PER_JOB, |index, bytes| {
            let values = &values[index * BLOCK..values.len().min((index + 1) * BLOCK)];
            let reduced = &mut [0; BLOCK][..values.len()];
            reduced.iter_mut().zip(values).for_each(|(reduced, value)| *reduced = self.reduce(*value));
            self.pack_into(bytes, reduced);
        });
        bytes
    }

    /// Packs reduced values to l bits each in `out`.
    ///
    /// # Panics
    /// Unless `out` has [`Modulus::packed_bytes`].
    pub fn pack_into(self, out: &mut [u8], values: &[u64]) {
        assert_eq!(out.len(), self.packed_bytes(values.len()), "space for {} packed values", values.len());
        (kernels().pack)(out, values, self.bits);
    }

    /// Reads `count` packed values.
    ///
    /// # Errors
    /// [`crate::WrongLength`] if `bytes` is not exactly [`Modulus::packed_bytes`] long.
    pub fn unpack(self, bytes: &[u8], count: usize) -> Result<Vec<u64>, crate::WrongLength> {
        self.check_packed(bytes, count)?;
        let mut values = vec![0; count];
        in_jobs(&mut values, BLOCK, BLOCKS_PER_JOB, |index, values| self.unpack_into(values, self.block(bytes, index)));
        Ok(values)
    }

    /// Adds packed values to `sums`, modulo 2^l.
    ///
    /// # Errors
    /// [`crate::WrongLength`] if `bytes` is not exactly [`Modulus::packed_bytes`] long.
    pub fn add_packed(self, sums: &mut [u64], bytes: &[u8]) -> Result<(), crate::WrongLength> {
        self.check_packed(bytes, sums.len())?;
        in_jobs(sums, BLOCK, BLOCKS_PER_JOB, |index, sums| {
            let values = &mut [0; BLOCK][..sums.len()];
            self.unpack_into(values, self.block(bytes, index));
            self.add_assign(sums, values);
        });
        Ok(())
    }

    /// The bytes of a block of packed values.
    fn block(self, bytes: &[u8], index: usize) -> &[u8] {
        let bytes = &bytes[self.packed_bytes(index * BLOCK)..];
        &bytes[..bytes.len().min(self.packed_bytes(BLOCK))]
    }

    /// Reads packed values to `out`.
    ///
    /// # Panics
    /// Unless `bytes` has [`Modulus::packed_bytes`]; see [`Modulus::check_packed`].
    pub fn unpack_into(self, out: &mut [u64], bytes: &[u8]) {
        assert_eq!(bytes.len(), self.packed_bytes(out.len()), "bytes of {} packed values", out.len());
        (kernels().unpack)(out, bytes, self.bits);
    }

    /// Whether `bytes` can hold `count` packed values.
    ///
    /// # Errors
    /// [`crate::WrongLength`] if not.
    pub fn check_packed(self, bytes: &[u8], count: usize) -> Result<(), crate::WrongLength> {
        let (expected, actual) = (self.packed_bytes(count), bytes.len());
        if actual == expected { Ok(()) } else { Err(crate::WrongLength { expected, actual }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_round_trips(bits in 1u32..=64, values: Vec<u64>) {
            let ring = Modulus::new(bits);
            let reduced: Vec<u64> = values.iter().map(|&value| ring.reduce(value)).collect();
            let bytes = ring.pack(&values);
            prop_assert_eq!(bytes.len(), ring.packed_bytes(values.len()));
            prop_assert_eq!(ring.unpack(&bytes, values.len()), Ok(reduced));
        }

        #[test]
        fn signed_is_congruent_and_in_range(bits in 1u32..=64, value: u64) {
            let ring = Modulus::new(bits);
            let signed = ring.signed(value);
            prop_assert_eq!(ring.reduce(signed as u64), ring.reduce(value));
            prop_assert_eq!(ring.sign(value) == 1, signed < 0);
        }
    }

    #[test]
    fn many_values_are_packed_as_their_blocks_are() {
        let ring = Modulus::new(13);
        let values: Vec<u64> = (0..(BLOCK * BLOCKS_PER_JOB + 100) as u64).map(|i| ring.reduce(i * 77)).collect();
        let packed = ring.pack(&values);
        assert_eq!(packed, values.chunks(BLOCK).flat_map(|block| ring.pack(block)).collect::<Vec<_>>());
        assert_eq!(ring.unpack(&packed, values.len()).as_ref(), Ok(&values));
        let mut sums: Vec<u64> = values.iter().map(|value| ring.reduce(value + 5)).collect();
        let expected: Vec<u64> = values.iter().map(|value| ring.reduce(2 * value + 5)).collect();
        assert_eq!(ring.add_packed(&mut sums, &packed), Ok(()));
        assert_eq!(sums, expected);
        assert!(ring.add_packed(&mut sums, &packed[1..]).is_err());
        assert_eq!(sums, expected, "a message of another length changes nothing");
    }
}
