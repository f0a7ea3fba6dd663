//! Maxima over windows of images: a tournament for each stage.

use std::borrow::Cow;

use privet_fss::KeyBytes;
use privet_shark::dealer::Dealer;
use privet_shark::{Party, Tournament};

use super::super::infer::State;
use super::super::planner::Planner;
use super::{Protocol, Purpose, Step};
use crate::Error;
use crate::ops::{MaxPool2d, Node};

impl Protocol for MaxPool2d<'_> {
    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32 {
        let (input, output) = (self.0.node.operation.inputs[0], self.0.node.operation.output);
        let width = planner.widths[input];
        let stages: Vec<_> = self.0.sizes().into_iter().map(|sizes| Tournament::maxima(width, sizes)).collect();
        stages.iter().for_each(|stage| planner.exchange(&stage.message_bytes()));
        planner.step(Purpose::Operation(index), vec![input, output], Maxima { index, input, output, stages });
        width
    }
}

struct Maxima {
    index: usize,
    input: usize,
    output: usize,
    stages: Vec<Tournament>,
}

impl Step for Maxima {
    fn key_bytes(&self) -> KeyBytes {
        self.stages.iter().map(Tournament::key_bytes).fold(KeyBytes::default(), |sum, bytes| sum + bytes)
    }

    fn deal(&self, dealer: &mut Dealer<'_>, _masks: &[u128]) -> Result<(), Error> {
        Ok(self.stages.iter().try_for_each(|stage| stage.deal(dealer))?)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let node = Node::at(state.plan.program(), self.index);
        let MaxPool2d(pooling) = node.max_pool2d().expect("a max pooling");
        let mut values = state.values(self.input, party.key());
        for (stage, groups) in self.stages.iter().zip(pooling.stages()) {
            values = Cow::Owned(stage.evaluate(party, &groups, &values)?.0);
        }
        let values = values.into_owned();
        state.write(self.output, values);
        Ok(())
    }
}
