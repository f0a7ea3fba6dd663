//! Digits of public numbers in tables of shared bits.

use crate::arch::kernels;

/// Which digit of a number, and where in a word its table begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// The lowest bit of the digit.
    pub low: u32,
    /// How many bits it has: its table has two to the power of that, at most 128.
    pub bits: u32,
    /// Bit of the first word where its table begins.
    pub offset: u32,
}

/// For each number, the table's bit at its digit (`equal`) and the sum of the bits behind that (`less`), as packed bits.
///
/// `tables`: the word in which each number's table begins, and of a table of 128 bits the next word. Bits behind the last number are
/// undefined. No branch and no address depends on a table.
///
/// # Panics
/// Unless there is a word of tables for each number, and of `less` and `equal` for each 64, or if a table is in more words than that.
pub fn compare(numbers: &[u64], digit: Digit, tables: [&[u64]; 2], [less, equal]: [&mut [u64]; 2]) {
    let words = numbers.len().div_ceil(64);
    assert_eq!([less.len(), equal.len()], [words; 2], "two bits for each number");
    assert!(tables[0].len() == numbers.len() && digit.low + digit.bits <= 64, "a table for each number");
    let is_wide = digit.bits == 7;
    assert!(digit.offset + (1 << digit.bits.min(6)) <= 64 && digit.bits <= 7, "a table in one word, or in two");
    assert_eq!(tables[1].len(), if is_wide { numbers.len() } else { 0 }, "a second word for tables of 128 bits alone");
    (kernels().compare)(numbers, digit, tables, [less, equal]);
}
