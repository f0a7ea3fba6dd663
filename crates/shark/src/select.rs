//! A chosen bit times a value: nothing to send beyond the value's opening.
//!
//! With `d = d^ ^ v` from a [sign](crate::sign) and `x^ = x + r` public, `d x = v x + d^ (1 - 2v) x` is linear in `v`, `r` and
//! `v r`, of which the dealer shares the last.

use privet_fss::KeyBytes;
use privet_ring::Bits;
use zeroize::Zeroizing;

use crate::bits::all;
use crate::dealer::{Dealer, SECRET_BYTES};
use crate::sign::Choice;
use crate::values::affine;
use crate::{Error, Masked, Party, Values};

/// Bytes of the key of `count` products.
pub fn key_bytes(count: usize) -> KeyBytes {
    KeyBytes { words: 0, corrections: count * SECRET_BYTES }
}

/// Deals for the hidden bits of a choice and values behind `masks`.
pub fn deal(dealer: &mut Dealer<'_>, hidden: &Bits, masks: &[u128]) -> Result<(), Error> {
    let product = |(r, v): (&u128, bool)| r & u128::from(v).wrapping_neg();
    Ok(dealer.secrets(&Zeroizing::new(masks.iter().zip(hidden.iter()).map(product).collect::<Vec<_>>()))?)
}

/// `d x`, valid in the ring of `x`. No message.
///
/// # Panics
/// If the lengths differ.
pub fn evaluate(party: &mut Party<'_>, choice: &Choice, x: &Masked) -> Result<Values, Error> {
    let products = party.secrets(x.len())?;
    Ok(affine(party.key(), [&choice.hidden, x.mask(), &products], |i, unit, [v, mask, product]| {
        let opened = u128::from(x.opened()[i]);
        let hidden = v.wrapping_mul(opened).wrapping_sub(product);
        let whole = unit.wrapping_mul(opened).wrapping_sub(mask);
        hidden ^ (hidden ^ whole.wrapping_sub(hidden)) & all(&choice.public, i)
    }))
}
