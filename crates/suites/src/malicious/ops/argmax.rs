//! Positions of maxima along an axis: one tournament.

use privet_fss::KeyBytes;
use privet_shark::dealer::Dealer;
use privet_shark::{Party, Tournament};

use super::super::infer::State;
use super::super::planner::Planner;
use super::{Protocol, Purpose, Step};
use crate::Error;
use crate::ops::{Argmax, Node};

impl Protocol for Argmax<'_> {
    fn reads_wide(&self) -> bool {
        true
    }

    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32 {
        let (input, output) = (self.node.operation.inputs[0], self.node.operation.output);
        let width = planner.widths[input];
        let tournament = Tournament::positions(width, [(self.size(), self.count())]);
        planner.exchange(&tournament.message_bytes());
        planner.step(Purpose::Operation(index), vec![input, output], Positions { index, input, output, tournament });
        width
    }
}

struct Positions {
    index: usize,
    input: usize,
    output: usize,
    tournament: Tournament,
}

impl Step for Positions {
    fn key_bytes(&self) -> KeyBytes {
        self.tournament.key_bytes()
    }

    fn deal(&self, dealer: &mut Dealer<'_>, _masks: &[u128]) -> Result<(), Error> {
        Ok(self.tournament.deal(dealer)?)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let argmax = Node::at(state.plan.program(), self.index).argmax().expect("an argmax");
        let mut groups = argmax.groups();
        if argmax.select_last {
            // The first of equals backwards.
            groups.iter_mut().for_each(|group| group.reverse());
        }
        let values = state.values(self.input, party.key());
        let mut positions =
            self.tournament.evaluate(party, &groups.into(), &values)?.1.expect("a tournament with positions");
        if argmax.select_last {
            let last = argmax.size() as u64 - 1;
            positions = positions.negate().plus(party.key(), &vec![last; positions.len()]);
        }
        state.write(self.output, positions);
        Ok(())
    }
}
