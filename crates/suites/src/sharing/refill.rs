//! Correlations made while the network runs, for an inference without material.
//!
//! The stock is a buffer: it holds what the next steps use up, and when it is empty the parties make as much again, by the
//! same OT extension over the same link (SecONNds, Section 4.2, where triples come in chunks from silent OT). A chunk is the
//! demand of as many steps as fit the buffer, or of one step that takes more. So memory is bounded by the largest step, not by
//! the network; and both parties know from the plan and the buffer's size what to make when. Nothing of it outlives the
//! inference.

use std::collections::VecDeque;

use privet_channel::Channel;
use privet_ot::{Demand, OtParty, Role, Stock, cost as ot_cost};

use super::Plan;
use crate::Error;
use crate::forecast::RefillForecast;
use crate::suite::Filling;

/// OTs in either direction that a buffer takes, unless a client chooses another.
pub(super) const BUFFER: usize = 1 << 22;

/// The correlations of some steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Index of the first of them.
    pub step: usize,
    /// What they all use up.
    pub demand: Demand,
}

impl Plan {
    /// How the demand of all steps falls into chunks for a buffer of so many OTs.
    pub(super) fn chunks(&self, buffer: usize) -> Vec<Chunk> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let demands = self.demands().iter().enumerate().filter(|(_, demand)| **demand != Demand::NONE);
        for (step, &demand) in demands {
            match chunks.last_mut() {
                Some(chunk) if size(&(chunk.demand + demand)) <= buffer => chunk.demand = chunk.demand + demand,
                _ => chunks.push(Chunk { step, demand }),
            }
        }
        chunks
    }

    /// How the client fills its buffer.
    pub fn filling(&self) -> Filling {
        Filling { extension: self.extension(), buffer: self.buffer() }
    }

    /// What an inference without material takes more.
    pub(super) fn refill_forecast(&self) -> RefillForecast {
        let demands: Vec<Demand> = self.chunks(self.buffer()).iter().map(|chunk| chunk.demand).collect();
        let cost = ot_cost::setup() + ot_cost::generate_in_chunks(&demands, self.extension(), Role::Client);
        RefillForecast {
            chunks: demands.len(),
            bytes_client: cost.bytes_sent,
            bytes_server: cost.bytes_received,
            rounds: cost.rounds,
        }
    }
}

fn size(demand: &Demand) -> usize {
    demand.ots(Role::Client).max(demand.ots(Role::Server))
}

/// Makes the chunks of one inference.
pub(super) struct Refills {
    party: OtParty,
    due: VecDeque<Chunk>,
}

impl Refills {
    /// Base OTs with the peer, who must choose the same extension.
    pub(super) fn start(channel: &mut Channel, role: Role, plan: &Plan, filling: Filling) -> Result<Self, Error> {
        let Filling { extension, buffer } = filling;
        Ok(Self { party: OtParty::setup(channel, role, extension)?, due: plan.chunks(buffer).into() })
    }

    /// Whether a chunk begins with this step.
    pub(super) fn is_due(&self, step: usize) -> bool {
        self.due.front().is_some_and(|chunk| chunk.step == step)
    }

    /// Makes the next chunk.
    pub(super) fn make(&mut self, channel: &mut Channel) -> Result<Stock, Error> {
        let demand = self.due.pop_front().map_or(Demand::NONE, |chunk| chunk.demand);
        Ok(Stock::generate(&mut self.party, channel, &demand)?)
    }
}
