//! The dealer's side of a run: the same steps, on the masks alone.

use std::collections::HashMap;
use std::rc::Rc;

use privet_fss::Seeds;
use privet_shark::dealer::{Dealer, Masks};
use privet_shark::{Hiding, Keys};

use super::plan::Step;
use super::{Plan, layers};
use crate::Error;
use crate::bodies::Body;

/// The masks of every value at each step that reads it behind them, by step.
pub(super) struct Early(HashMap<usize, Rc<Masks>>);

/// Deals what the parties use up offline: masks, and for linear layers `-A r`.
///
/// `setup`: the seeds of what the two parties keep. `seeds`: fresh for this run, and for this part alone.
pub(super) fn deal_early(plan: &Plan, setup: &Seeds, seeds: &Seeds, bodies: &mut [Body; 2]) -> Result<Early, Error> {
    let [client, server] = bodies;
    let mut dealer = Dealer::new(&Keys::new(setup), seeds, client, server);
    let mut hiding = Hiding::new(setup);
    let program = plan.program();
    let mut masks: HashMap<usize, Rc<Masks>> = HashMap::new();
    let mut early = HashMap::new();
    for (index, step) in plan.steps().iter().enumerate() {
        let input = |operation: usize| program.operations()[operation].inputs[0];
        let len = |value: usize| program.value(value).len();
        match step {
            Step::Input { value } => {
                masks.insert(*value, Rc::new(dealer.input_masks(len(*value))?));
            }
            Step::Mask { value } => {
                masks.insert(*value, Rc::new(dealer.masks(len(*value))?));
            }
            Step::Linear { operation, layer } => {
                let hidden = hiding.next(plan.ring(), layer.weights());
                layer.deal(&mut dealer, &hidden, &masks[&input(*operation)])?;
                let (_, tensors) = layers::linear(program, &program.operations()[*operation]).expect("a linear layer");
                tensors[1..].iter().for_each(|(_, len)| drop(hiding.next(plan.ring(), *len)));
            }
            Step::Local { operation } => {
                let constant = layers::constant(&program.operations()[*operation]);
                constant.iter().for_each(|(_, len)| drop(hiding.next(plan.ring(), *len)));
            }
            Step::Relu { input, .. } | Step::Extend { value: input, .. } => {
                early.insert(index, Rc::clone(&masks[input]));
            }
            Step::Truncate { operation, .. } | Step::Shorten { operation, .. } => {
                early.insert(index, Rc::clone(&masks[&input(*operation)]));
            }
            Step::MaxPool { .. } | Step::Argmax { .. } => {}
        }
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
    for (index, step) in plan.steps().iter().enumerate() {
        let mut masks = || masks.remove(&index).expect("the masks of a step that reads them");
        match step {
            Step::Relu { relu, .. } => drop(relu.deal(&mut dealer, &masks())?),
            Step::Truncate { truncate, .. } => truncate.deal(&mut dealer, &masks())?,
            Step::Shorten { extend, .. } | Step::Extend { extend, .. } => extend.deal(&mut dealer, &masks())?,
            Step::MaxPool { stages, .. } => stages.iter().try_for_each(|stage| stage.deal(&mut dealer))?,
            Step::Argmax { tournament, .. } => tournament.deal(&mut dealer)?,
            Step::Input { .. } | Step::Mask { .. } | Step::Linear { .. } | Step::Local { .. } => {}
        }
    }
    Ok(dealer.output_masks(plan.output_ring(), plan.output_len())?)
}

/// Deals what the server keeps of a setup: the codes of what hides its weights.
pub(super) fn deal_codes(plan: &Plan, setup: &Seeds, body: &mut Body) -> Result<(), Error> {
    let mut hiding = Hiding::new(setup);
    let deal = |(_, len): &(String, usize)| hiding.deal(plan.ring(), *len, body);
    Ok(plan.tensors().iter().try_for_each(deal)?)
}
