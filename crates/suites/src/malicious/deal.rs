//! The dealer's side of a run: the same steps, on the masks alone.

use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use privet_fss::Seeds;
use privet_ring::Modulus;
use privet_shark::dealer::{Dealer, Masks};
use privet_shark::{Hiding, Keys};

use super::Plan;
use super::ops::Placed;
use crate::Error;
use crate::bodies::Body;

/// The masks of every value at each step that reads it behind them, by step.
pub(super) struct Early(HashMap<usize, Rc<Masks>>);

/// What a dealer works on while it deals what is used up offline.
pub(super) struct Dealing<'a> {
    pub dealer: Dealer<'a>,
    /// The last mask of each value.
    pub masks: HashMap<usize, Rc<Masks>>,
    hiding: Hiding,
    ring: Modulus,
}

impl Dealing<'_> {
    /// What hides the next private tensor, of this length.
    pub(super) fn hidden(&mut self, len: usize) -> impl Deref<Target = Vec<u64>> + use<> {
        self.hiding.next(self.ring, len)
    }
}

/// Deals what the parties use up offline: masks, and for linear layers `-A r`.
///
/// `setup`: the seeds of what the two parties keep. `seeds`: fresh for this run, and for this part alone.
pub(super) fn deal_early(plan: &Plan, setup: &Seeds, seeds: &Seeds, bodies: &mut [Body; 2]) -> Result<Early, Error> {
    let [client, server] = bodies;
    let dealer = Dealer::new(&Keys::new(setup), seeds, client, server);
    let mut dealing = Dealing { dealer, masks: HashMap::new(), hiding: Hiding::new(setup), ring: plan.ring() };
    let mut early = HashMap::new();
    for (index, Placed { step, .. }) in plan.steps.iter().enumerate() {
        step.deal_early(&mut dealing)?;
        early.extend(step.reads_masked().map(|value| (index, Rc::clone(&dealing.masks[&value]))));
    }
    Ok(Early(early))
}

/// Deals what the parties use up online; `seeds`: as for [`deal_early`], others.
pub(super) fn deal(
    plan: &Plan,
    setup: &Seeds,
    seeds: &Seeds,
    Early(mut masks): Early,
    bodies: &mut [Body; 2],
) -> Result<(), Error> {
    let [client, server] = bodies;
    let mut dealer = Dealer::new(&Keys::new(setup), seeds, client, server);
    for (index, Placed { step, .. }) in plan.steps.iter().enumerate() {
        let masks = masks.remove(&index);
        step.deal(&mut dealer, masks.as_ref().map_or(&[], |masks| masks.as_slice()))?;
    }
    Ok(dealer.output_masks(plan.output_ring(), plan.output_len())?)
}

/// Deals what the server keeps of a setup: the codes of what hides its weights.
pub(super) fn deal_codes(plan: &Plan, setup: &Seeds, body: &mut Body) -> Result<(), Error> {
    let mut hiding = Hiding::new(setup);
    let deal = |(_, len): &(String, usize)| hiding.deal(plan.ring(), *len, body);
    Ok(plan.tensors.iter().try_for_each(deal)?)
}
