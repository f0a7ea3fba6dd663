//! Several signed values in one plaintext: samples of a batch, or positions of a tensor that share their weights.
//!
//! Slot `i` of `s` holds a value `v_i` at `v_i 2^(i B)`, negative ones by subtraction. A linear map on the plaintext
//! acts on all slots at once. Let every value, before and after all maps, be at most `bound` in magnitude, and `B` be
//! the bits of `bound` and one for the sign, so that `bound <= 2^(B-1) - 1`.
//!
//! - *The sum fits.* `|sum of v_i 2^(iB)| <= (2^(B-1) - 1) (2^(sB) - 1) / (2^B - 1) < 2^(sB-1)`, which is at most half
//!   of a public key of `b` bits if `s B <= b - 1`.
//! - *The slots can be told apart.* Modulo `2^B` the sum is `v_0`, and only one value within the bound is so; take it
//!   away, divide by `2^B`, and go on.

use crate::error::{Error, Misuse};
use crate::keys::KeySize;
use crate::plaintext::Plaintext;

/// How values lie in a plaintext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    slots: usize,
    slot_bits: usize,
    bound: u64,
}

impl Packing {
    /// Room for `slots` values that never exceed `bound` in magnitude: not when they are packed, and not after any
    /// linear map that is applied to them ([`crate::Weights::bound`]).
    ///
    /// # Errors
    /// [`Misuse::Bound`] unless the bound is from 1 to 2^62; [`Misuse::SlotsDoNotFit`] if a plaintext under a key of
    /// this size has less room.
    pub fn new(size: KeySize, slots: usize, bound: u128) -> Result<Self, Error> {
        let packing = Self { slots, ..Self::largest(size, bound)? };
        let plaintext_bits = size.bits() - 1;
        let slot_bits = packing.slot_bits;
        if slots == 0 || slots > plaintext_bits / slot_bits {
            return Err(Misuse::SlotsDoNotFit { slots, slot_bits, plaintext_bits }.into());
        }
        Ok(packing)
    }

    /// As many slots as there is room for.
    ///
    /// # Errors
    /// [`Misuse::Bound`] as for [`Packing::new`].
    pub fn largest(size: KeySize, bound: u128) -> Result<Self, Error> {
        if bound == 0 || bound > 1 << 62 {
            return Err(Misuse::Bound { bound }.into());
        }
        let bound = bound as u64;
        let slot_bits = (u64::BITS - bound.leading_zeros()) as usize + 1;
        Ok(Self { slots: (size.bits() - 1) / slot_bits, slot_bits, bound })
    }

    /// Values in a plaintext.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bits from one value to the next.
    pub fn slot_bits(&self) -> usize {
        self.slot_bits
    }

    /// Packs at most [`Packing::slots`] values; further slots hold zero.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] for more values, [`Misuse::ValueTooLarge`] for one beyond the bound.
    pub fn pack(&self, values: &[i64]) -> Result<Plaintext, Error> {
        if values.len() > self.slots {
            return Err(Misuse::WrongLength { what: "values", expected: self.slots, actual: values.len() }.into());
        }
        if let Some(index) = values.iter().position(|value| value.unsigned_abs() > self.bound) {
            return Err(Misuse::ValueTooLarge { index, bound: self.bound }.into());
        }
        let mut words = vec![0; self.words()];
        for (slot, &value) in values.iter().enumerate() {
            add_shifted(&mut words, value, slot * self.slot_bits);
        }
        Ok(Plaintext::from_words(words))
    }

    /// The values of all slots, as long as they are within the bound.
    pub fn unpack(&self, plaintext: &Plaintext) -> Vec<i64> {
        let mut carry = 0;
        (0..self.slots)
            .map(|slot| {
                // A negative value below took one away from this slot, and so from those above if there was none to
                // take.
                let raw = bits_at(plaintext, slot * self.slot_bits) & (u64::MAX >> (64 - self.slot_bits));
                let (raw, overflow) = raw.overflowing_add(carry);
                let value = (raw << (64 - self.slot_bits)) as i64 >> (64 - self.slot_bits);
                carry = (value as u64) >> 63 | raw.checked_shr(self.slot_bits as u32).unwrap_or(u64::from(overflow));
                value
            })
            .collect()
    }

    /// Words that all slots and a sign fill.
    fn words(&self) -> usize {
        self.slots * self.slot_bits / 64 + 1
    }
}

/// `words += value 2^shift` in two's complement.
fn add_shifted(words: &mut [u64], value: i64, shift: usize) {
    let wide = i128::from(value) << (shift % 64);
    let sign = (wide >> 127) as u64;
    let mut carry = false;
    for (i, word) in words.iter_mut().enumerate().skip(shift / 64) {
        let addend = match i - shift / 64 {
            0 => wide as u64,
            1 => (wide >> 64) as u64,
            _ => sign,
        };
        let (sum, first) = word.overflowing_add(addend);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (*word, carry) = (sum, first | second);
    }
}

/// 64 bits from bit `at`.
fn bits_at(plaintext: &Plaintext, at: usize) -> u64 {
    let wide = u128::from(plaintext.word(at / 64)) | u128::from(plaintext.word(at / 64 + 1)) << 64;
    (wide >> (at % 64)) as u64
}
