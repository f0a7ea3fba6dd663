//! Samples side by side: one plaintext holds an element of several samples, and one linear map serves them all.
//!
//! A slot must hold every value of its sample that a party opens, and those are in the program's ring: its ranges were checked
//! when it was compiled. Sums on the way are integers modulo the key, so what goes beyond a slot in between does no harm.

use privet_paillier::{KeySize, Packing, Plaintext};
use privet_program::Program;

use crate::Error;

/// How many samples a plaintext holds, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    count: usize,
    /// None for a sample that has its plaintexts to itself.
    packing: Option<Packing>,
}

impl Samples {
    /// Room for `count` samples of a program.
    ///
    /// # Errors
    /// [`Error::Encryption`] if a plaintext has less; [`Error::Misuse`] for none.
    pub fn new(program: &Program, size: KeySize, count: usize) -> Result<Self, Error> {
        if count == 0 {
            return Err(Error::Misuse("an inference is on one sample at least".into()));
        }
        let bound = 1_u128 << (program.ring_bits() - 1);
        let packing = (count > 1).then(|| Packing::new(size, count, bound)).transpose()?;
        Ok(Self { count, packing })
    }

    /// One sample.
    pub const ONE: Self = Self { count: 1, packing: None };

    /// How many samples.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Packs values that lie sample after sample: a plaintext for each element of one.
    ///
    /// # Errors
    /// [`Error::Encryption`] for a value beyond the bound.
    pub fn pack(&self, values: &[i64]) -> Result<Vec<Plaintext>, Error> {
        let Some(packing) = &self.packing else { return Ok(values.iter().map(|&value| value.into()).collect()) };
        let group_size = values.len() / self.count;
        let slots = |element: usize| values.iter().skip(element).step_by(group_size).copied().collect::<Vec<_>>();
        (0..group_size).map(|element| Ok(packing.pack(&slots(element))?)).collect()
    }

    /// The same value in every slot.
    ///
    /// # Errors
    /// [`Error::Encryption`] for a value beyond the bound.
    pub fn constant(&self, value: i64) -> Result<Plaintext, Error> {
        match &self.packing {
            Some(packing) => Ok(packing.pack(&vec![value; self.count])?),
            None => Ok(value.into()),
        }
    }

    /// The samples' values in a plaintext; none if they are seen to be too large.
    pub fn unpack(&self, plaintext: &Plaintext) -> Option<Vec<i64>> {
        match &self.packing {
            Some(packing) => Some(packing.unpack(plaintext)),
            None => plaintext.to_i64().map(|value| vec![value]),
        }
    }
}
