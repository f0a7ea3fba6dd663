//! What each party does on its own shares and codes, whatever the operator.

use privet_ring::layout;
use privet_ring::window::Groups;
use privet_shark::{Key, Party, Values};

use super::super::deal::Dealing;
use super::super::infer::State;
use super::super::planner::Planner;
use super::super::prepare::Preparing;
use super::{Protocol, Purpose, Step};
use crate::Error;
use crate::ops::{Algebra, At, Local, Movement, Node, sources};

impl Protocol for At<'_, dyn Local<Key> + '_> {
    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32 {
        let operation = self.node.operation;
        let constant = self.operation.constant();
        planner.tensors.extend(constant.map(|(name, len)| (name.to_owned(), len)));
        let touched = operation.inputs.iter().copied().chain([operation.output]).collect();
        planner.step(Purpose::Operation(index), touched, Computation { index, constant: constant.map(|(_, len)| len) });
        planner.widths[operation.inputs[0]]
    }
}

struct Computation {
    index: usize,
    /// Elements of the private tensor that it adds.
    constant: Option<usize>,
}

impl Step for Computation {
    fn deal_early(&self, dealing: &mut Dealing<'_>) -> Result<(), Error> {
        if let Some(len) = self.constant {
            dealing.hidden(len);
        }
        Ok(())
    }

    fn prepare(&self, preparing: &mut Preparing<'_>, _party: &mut Party<'_>) -> Result<Option<Values>, Error> {
        if self.constant.is_some() {
            preparing.weights.next();
        }
        Ok(None)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let node = Node::at(state.plan.program(), self.index);
        let operation = node.local::<Key>().expect("a local operation");
        let constant = self.constant.map(|_| state.weights.next().expect("a constant").values());
        let inputs: Vec<_> = node.operation.inputs.iter().map(|&id| state.values(id, party.key())).collect();
        let inputs: Vec<&Values> = inputs.iter().map(|values| &**values).collect();
        let values = operation.evaluate(party.key(), &inputs, constant.as_ref());
        state.write(node.operation.output, values);
        Ok(())
    }
}

/// Authenticated values, whose public constants take the key's codes.
impl Algebra for Key {
    type Shares = Values;
    type Owned = Values;
    type Constant = Values;

    fn keep(&self, x: &Values) -> Values {
        x.clone()
    }

    fn add(&self, x: &Values, y: &Values) -> Values {
        x.add(y)
    }

    fn sub(&self, x: &Values, y: &Values) -> Values {
        x.sub(y)
    }

    fn negate(&self, x: &Values) -> Values {
        x.negate()
    }

    fn shift_left(&self, x: &Values, bits: u32) -> Values {
        x.scale(1 << bits)
    }

    fn add_constant(&self, x: &Values, constant: Option<&Values>, [from, to]: [&[usize]; 2]) -> Values {
        let constant = constant.expect("both parties hold shares of what is added");
        let places: Vec<usize> = (0..constant.len()).collect();
        x.add(&constant.gather(&layout::broadcast(&places, from, to)))
    }

    fn sum_windows(&self, x: &Values, groups: &Groups, factors: &[i64]) -> Values {
        let groups: Vec<Vec<usize>> = groups.iter().map(Iterator::collect).collect();
        let factors: Vec<u64> = (0..groups.len()).map(|i| factors[i % factors.len()] as u64).collect();
        x.sums(&groups).weigh(&factors)
    }

    fn rearrange(&self, inputs: &[&Values], movement: &Movement) -> Values {
        let indices = sources(inputs.iter().map(|x| x.len()), movement);
        if let ([x], None) = (inputs, movement.fill()) {
            return x.gather(&indices);
        }
        let mut all = Values::default();
        inputs.iter().for_each(|x| all.extend(x));
        movement.fill().into_iter().for_each(|fill| all.extend(&Values::public(self, &[fill as u64])));
        all.gather(&indices)
    }
}
