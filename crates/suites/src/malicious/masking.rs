//! Values behind masks: the client's input, and what gates and linear layers read.

use std::rc::Rc;

use privet_fss::KeyBytes;
use privet_shark::dealer::MASK_BYTES;
use privet_shark::{Party, Values};

use super::deal::Dealing;
use super::infer::State;
use super::ops::Step;
use super::prepare::Preparing;
use crate::Error;

/// Puts a value behind a mask.
pub(super) struct Mask {
    pub value: usize,
    pub len: usize,
    /// Whether it is the client's, which knows the mask; any other is opened.
    pub is_input: bool,
}

impl Step for Mask {
    fn key_bytes(&self) -> KeyBytes {
        KeyBytes { words: 0, corrections: self.len * MASK_BYTES }
    }

    fn prepared(&self) -> Option<usize> {
        Some(self.len)
    }

    fn deal_early(&self, dealing: &mut Dealing<'_>) -> Result<(), Error> {
        let dealer = &mut dealing.dealer;
        let masks = if self.is_input { dealer.input_masks(self.len)? } else { dealer.masks(self.len)? };
        dealing.masks.insert(self.value, Rc::new(masks));
        Ok(())
    }

    fn prepare(&self, preparing: &mut Preparing<'_>, party: &mut Party<'_>) -> Result<Option<Values>, Error> {
        let masks = if self.is_input { party.input_masks(self.len)? } else { party.masks(self.len)? };
        preparing.masks.insert(self.value, masks.clone());
        Ok(Some(masks))
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let (ring, mask) = (state.rings[self.value], state.pull(self.len)?);
        let masked = match &mut state.inputs {
            _ if !self.is_input => {
                let values = state.values(self.value, party.key());
                party.mask_with(&values, ring, mask)?
            }
            Some(inputs) => {
                let input = inputs.next().expect("an input for each of the program's");
                let input: Vec<u64> = input.iter().map(|&x| ring.reduce(x as u64)).collect();
                party.input(&input, ring, mask)?
            }
            None => party.input_of_client(ring, mask)?,
        };
        state.held[self.value].masked = Some(masked);
        Ok(())
    }
}
