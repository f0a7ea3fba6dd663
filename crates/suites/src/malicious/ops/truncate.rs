//! `floor(x / 2^bits)`: into the smaller ring, in the wide ring, or left to the ReLU that reads it.

use privet_shark::{self as shark, Extend, Gate, Party};

use super::super::gate::Gated;
use super::super::infer::State;
use super::super::planner::Planner;
use super::{Protocol, Purpose, Step};
use crate::Error;
use crate::ops::Truncate;

impl Protocol for Truncate<'_> {
    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32 {
        let (input, output) = (self.node.operation.inputs[0], self.node.operation.output);
        let (bits, width, len) = (self.bits, planner.widths[input], planner.len(input));
        let (purpose, touched) = (Purpose::Operation(index), vec![input, output]);
        if bits == 0 {
            planner.step(purpose, touched, Same { input, output });
            return width;
        }
        let exact = planner.is_exact();
        planner.mask(input);
        if !exact && planner.is_for_a_relu(output) {
            planner.pending.insert(output, (input, bits));
            return width - bits;
        }
        if !exact && planner.needs_ring(output) && width >= bits + 2 {
            let gate = Extend::signed(width, bits);
            planner.step(purpose, touched, Gated { input, output, len, gate, to: None });
            return width;
        }
        let gate = if exact { shark::Truncate::exact(width, bits) } else { shark::Truncate::near(width, bits) };
        planner.exchange(&gate.message_bytes(len));
        planner.step(purpose, touched, Gated { input, output, len, gate, to: None });
        width - bits
    }
}

/// A truncation that drops nothing.
struct Same {
    input: usize,
    output: usize,
}

impl Step for Same {
    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<(), Error> {
        let values = state.values(self.input, party.key()).into_owned();
        state.write(self.output, values);
        Ok(())
    }
}
