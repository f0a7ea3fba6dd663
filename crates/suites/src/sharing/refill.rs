//! Correlations in chunks.
//!
//! The stock is a buffer: it holds what the next steps use up, and when it is empty the next chunk follows. A chunk is the demand of as
//! many steps as fit the buffer, or of one step that takes more. So memory is bounded by the largest step, not by the network; and both
//! parties know from the plan and the buffer's size what comes when.
//!
//! Without material the parties make each chunk while the network runs, by the same OT extension over the same link (SecONNds, Section
//! 4.2, where triples come in chunks from silent OT), and nothing of it outlives the inference. Material has chunks where its correlations
//! would be more than [`STORED`]: the first one stands in the head, all others before it.

use std::collections::VecDeque;
use std::io::{Seek, SeekFrom};

use privet_channel::Channel;
use privet_ot::{BaseOts, Demand, OtParty, Role, STOCK_HEADER_BYTES, Stock, cost as ot_cost};
use privet_seal::Stored;

use super::forecast::stored_bytes;
use super::material::{damaged, unreadable};
use super::{Plan, Suite};
use crate::Error;
use crate::forecast::RefillForecast;
use crate::suite::Filling;

/// OTs in either direction that a buffer takes, unless a client chooses another.
pub(super) const BUFFER: usize = 1 << 22;

/// Bytes that correlations of a chunk take in store, at the party where they take more.
pub(super) const STORED: u64 = 512 << 20;

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
        self.chunks_that(|demand| size(demand) <= buffer)
    }

    /// The chunks of material that the parties make themselves, at least one.
    pub(super) fn stored_chunks(&self) -> Vec<Chunk> {
        let bytes =
            |demand: &Demand| [Role::Client, Role::Server].map(|role| stored_bytes(demand, role)).into_iter().max();
        let chunked = matches!(self.options().suite, Suite::Gmw { .. }) && !self.is_dealt();
        let chunks = self.chunks_that(|demand| !chunked || bytes(demand) <= Some(self.chunk_bytes));
        if chunks.is_empty() { vec![Chunk { step: 0, demand: Demand::NONE }] } else { chunks }
    }

    /// Bytes of a stored entry before its head, in a suite without keys: all chunks but the first.
    pub(super) fn later_bytes(&self, role: Role) -> u64 {
        let later = self.stored_chunks().into_iter().skip(1);
        later.map(|chunk| STOCK_HEADER_BYTES + stored_bytes(&chunk.demand, role)).sum()
    }

    fn chunks_that(&self, fit: impl Fn(&Demand) -> bool) -> Vec<Chunk> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let demands = self.demands.iter().enumerate().filter(|(_, demand)| **demand != Demand::NONE);
        for (step, &demand) in demands {
            match chunks.last_mut() {
                Some(chunk) if fit(&(chunk.demand + demand)) => chunk.demand = chunk.demand + demand,
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
        let demands: Vec<Vec<Demand>> = self.chunks(self.buffer()).iter().map(|chunk| vec![chunk.demand]).collect();
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

/// The chunks of one inference that are still to come.
pub(super) struct Refills {
    origin: Origin,
    due: VecDeque<Chunk>,
}

/// Where chunks come from.
enum Origin {
    /// The parties make them.
    Link(Box<OtParty>),
    /// The claimed file of material, which begins with them.
    Store(Stored, Role),
}

impl Refills {
    /// Base OTs with the peer, who must choose the same extension, or what `base` takes in their place.
    pub(super) fn start(
        channel: &mut Channel,
        role: Role,
        plan: &Plan,
        Filling { extension, buffer }: Filling,
        base: &mut BaseOts,
    ) -> Result<Self, Error> {
        let party = Box::new(OtParty::setup_from(channel, role, extension, base)?);
        Ok(Self { origin: Origin::Link(party), due: plan.chunks(buffer).into() })
    }

    /// Those of material behind the first, of `role`'s half. Fails with [`Error::Misuse`] if the file cannot be read.
    pub(super) fn stored(mut file: Stored, role: Role, plan: &Plan) -> Result<Self, Error> {
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        Ok(Self { origin: Origin::Store(file, role), due: plan.stored_chunks().into_iter().skip(1).collect() })
    }

    /// Whether a chunk begins with this step.
    pub(super) fn is_due(&self, step: usize) -> bool {
        self.due.front().is_some_and(|chunk| chunk.step == step)
    }

    /// What is done about a chunk, as a table has it.
    pub(super) fn name(&self) -> &'static str {
        match self.origin {
            Origin::Link(_) => "refill",
            Origin::Store(..) => "load",
        }
    }

    /// The next chunk, in the memory of the one that is `used` up where it is read. Fails if the link fails, or
    /// [`Error::Misuse`] if the file cannot be read or has something else.
    pub(super) fn next(&mut self, channel: &mut Channel, used: Stock) -> Result<Stock, Error> {
        let demand = self.due.pop_front().map_or(Demand::NONE, |chunk| chunk.demand);
        match &mut self.origin {
            Origin::Link(party) => {
                // What was used up is gone before more comes.
                drop(used);
                Ok(Stock::generate(party, channel, &demand)?)
            }
            Origin::Store(file, role) => {
                let stock = read(file, STOCK_HEADER_BYTES + stored_bytes(&demand, *role), used)?;
                let is_this = stock.role() == *role && stock.has_left(&demand);
                is_this.then_some(stock).ok_or_else(damaged)
            }
        }
    }
}

/// A stock of `bytes` bytes from a file, in the memory of another that is used up. Fails with [`Error::Misuse`] if the
/// file cannot be read, [`Error::Correlations`] if it has something else.
pub(super) fn read(file: &mut Stored, bytes: u64, used: Stock) -> Result<Stock, Error> {
    Stock::read(file, bytes, used).map_err(|error| match error {
        privet_ot::Error::Unreadable { error } => unreadable(error),
        other => other.into(),
    })
}
