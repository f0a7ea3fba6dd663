//! `max(x, 0)`, and what a truncation before it drops.

use privet_shark::{self as shark, Gate};

use super::super::gate::Gated;
use super::super::planner::Planner;
use super::{Protocol, Purpose};
use crate::ops::Relu;

impl Protocol for Relu<'_> {
    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32 {
        let (value, output) = (self.0.operation.inputs[0], self.0.operation.output);
        let (input, dropped) = planner.pending.get(&value).copied().unwrap_or((value, 0));
        if dropped == 0 {
            planner.mask(input);
        }
        let (from, width) = (planner.widths[input], planner.widths[value]);
        let to = if planner.needs_ring(output) { planner.ring_bits() } else { width };
        let (gate, len) = (shark::Relu::new(from, dropped, to), planner.len(input));
        planner.exchange(&gate.message_bytes(len));
        planner.step(Purpose::Operation(index), vec![input, output], Gated { input, output, len, gate, to: None });
        to
    }
}
