//! Values behind masks: the client's input, and what gates and linear layers read.

use std::rc::Rc;

use privet_fss::KeyBytes;
use privet_shark::dealer::MASK_BYTES;
use privet_shark::{Party, Values, ends};

use super::deal::Dealing;
use super::infer::State;
use super::ops::Step;
use super::prepare::Preparing;
use crate::Error;

/// The client's input.
pub(super) struct Input {
    pub value: usize,
    pub len: usize,
}

impl Step for Input {
    fn key_bytes(&self) -> KeyBytes {
        ends::key_bytes(self.len)
    }

    fn prepared(&self) -> Option<usize> {
        Some(self.len)
    }

    fn deal_early(&self, dealing: &mut Dealing<'_>) -> Result<(), Error> {
        let masks = dealing.dealer.input_masks(self.len)?;
        dealing.masks.insert(self.value, Rc::new(masks));
        Ok(())
    }

    fn prepare(&self, preparing: &mut Preparing<'_>, party: &mut Party<'_>) -> Result<Option<Values>, Error> {
        let masks = party.input_masks(self.len)?;
        preparing.masks.insert(self.value, masks.clone());
        Ok(Some(masks))
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let ring = state.rings[self.value];
        let mask = state.pull(self.len)?;
        let masked = match &mut state.inputs {
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

/// Opens a value behind a mask.
pub(super) struct Mask {
    pub value: usize,
    pub len: usize,
}

impl Step for Mask {
    fn key_bytes(&self) -> KeyBytes {
        KeyBytes { words: 0, corrections: self.len * MASK_BYTES }
    }

    fn prepared(&self) -> Option<usize> {
        Some(self.len)
    }

    fn deal_early(&self, dealing: &mut Dealing<'_>) -> Result<(), Error> {
        let masks = dealing.dealer.masks(self.len)?;
        dealing.masks.insert(self.value, Rc::new(masks));
        Ok(())
    }

    fn prepare(&self, preparing: &mut Preparing<'_>, party: &mut Party<'_>) -> Result<Option<Values>, Error> {
        let masks = party.masks(self.len)?;
        preparing.masks.insert(self.value, masks.clone());
        Ok(Some(masks))
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let mask = state.pull(self.len)?;
        let values = state.values(self.value, party.key());
        let masked = party.mask_with(&values, state.rings[self.value], mask)?;
        state.held[self.value].masked = Some(masked);
        Ok(())
    }
}
