//! The way from products to one result: in order, each sum rotated by what it is ahead of the next (Horner's rule), so that
//! products are made of fresh ciphertexts and few different rotations are needed.

use privet_bfv::slots::Rotation;

/// What input is multiplied by at once: the weights that meet it when it has been rotated by `left` slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Whether rows change places.
    pub(super) swap: bool,
    /// Slots of the rotation.
    pub(super) left: usize,
    /// Blocks of it.
    pub(super) ahead: usize,
    /// The kernel element, down and right.
    pub(super) tap: [usize; 2],
}

/// The rotation of the sum after each of some steps in order, if any: by what it is ahead of the next step of its row, or of none.
pub(super) fn rotations<'a>(steps: impl Iterator<Item = &'a Step> + Clone) -> Vec<Option<Rotation>> {
    let next = steps.clone().skip(1).map(Some).chain([None]);
    let ahead = steps.zip(next).map(|(step, next)| match next {
        Some(next) if next.swap == step.swap => step.left - next.left,
        _ => step.left,
    });
    ahead.map(|left| (left > 0).then_some(Rotation::Left(left))).collect()
}
