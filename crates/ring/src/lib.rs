//! Values of the ring Z_2^l (l at most 64) and packed bits: what every protocol computes on.
//!
//! A ring element sits in a `u64`; [`Modulus`] reduces it. A vector of bits is packed 64 to a word ([`Bits`]), and
//! [`planes`] turns `n` values of `k` bits into `k` vectors of `n` bits, which is how Boolean protocols see them.

mod arch;
mod bits;
pub mod digit;
mod field;
pub mod layout;
pub mod linear;
mod lines;
mod modulus;
pub mod planes;
pub mod select;
pub mod tournament;
pub mod wide;
pub mod window;

pub use bits::{Bits, WrongLength};
pub use field::Field;
pub use lines::{Lines, Selected};
pub use modulus::{BLOCK, Modulus, in_parts};
