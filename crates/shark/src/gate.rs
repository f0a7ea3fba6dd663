//! What gates on the single elements of a masked value have alike.

use privet_fss::KeyBytes;

use crate::{Dealer, Error, Masked, Party, Values};

/// A function of each element of a value behind a mask.
pub trait Gate {
    /// Bytes of the key of `count` elements.
    fn key_bytes(&self, count: usize) -> KeyBytes;

    /// Bytes of each message that either party sends.
    fn message_bytes(&self, count: usize) -> Vec<usize>;

    /// Deals for values behind `masks`.
    fn deal(&self, dealer: &mut Dealer<'_>, masks: &[u128]) -> Result<(), Error>;

    /// The function of each element; a round for each message.
    ///
    /// # Panics
    /// If `x` is of another ring.
    fn evaluate(&self, party: &mut Party<'_>, x: &Masked) -> Result<Values, Error>;
}
