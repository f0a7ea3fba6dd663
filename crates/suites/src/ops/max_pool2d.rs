//! Maxima over windows of images.

use privet_gmw::Sign;

use super::{Pooling, Rules, chosen};

pub(crate) struct MaxPool2d<'a>(pub Pooling<'a>);

impl Rules for MaxPool2d<'_> {
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        chosen(inputs)
    }
}
