//! Silent correlated OT: Ferret (Yang, Weng, Lan, Zhang and Wang, CCS 2020), semi-honest, with the trees of Half-Tree
//! (Guo, Yang, Wang, Zhang, Xie, Liu and Zhao, EUROCRYPT 2023).
//!
//! An iteration turns few correlated OTs into many: some authenticate the secret of an LPN instance with regular noise,
//! the others the paths of trees whose punctured leaves are the noise. Of its outputs some are kept back as what the next
//! iteration starts from; the first starts from SoftSpokenOT. Iterations grow up a ladder of [`Size`]s, so that little
//! goes over the wire before the first outputs.
//!
//! Only the sender sends: a seed of the matrix per iteration, and `16 * (depth - 1)` bytes per tree when that tree is
//! grown. Trees are grown four at a time and no sooner than they are asked for, so an extension can be run in chunks of
//! any size and costs what was used of it. The receiver sends one message, of SoftSpokenOT, before the first iteration.
//!
//! Threat model: semi-honest. Without Ferret's consistency check a sender that deviates can learn noise positions.

mod group;
mod iteration;
pub(crate) mod parameters;
pub(crate) mod position;

use std::ops::Range;

use privet_channel::Channel;
use privet_prg::sparse::LANES;
use privet_prg::{Block, Prg, Seed};
use privet_ring::Bits;
use zeroize::Zeroizing;

use self::iteration::Iteration;
use self::position::{Position, Step};
use crate::correlated::{CotReceiver, CotSender};
use crate::softspoken::{SoftSpokenReceiver, SoftSpokenSender};
use crate::{Error, FieldBits, random};

pub use self::parameters::Size;

/// The field of SoftSpokenOT from which the first iteration starts: few OTs, so bytes matter more than time.
pub(crate) const BASE_FIELD: FieldBits = FieldBits::Eight;

/// Bytes of the seed of an iteration's matrix.
pub(crate) const SEED_BYTES: usize = 16;

/// What was made before an error is lost, but counts as made.
const FAILED: Error = Error::Misuse { what: "an extension that failed goes on" };

/// What the two ends do differently.
trait End {
    /// The blocks of `count` OTs of SoftSpokenOT, even at the sender and with the choice bit lowest at the receiver.
    fn begin(&mut self, channel: &mut Channel, count: usize) -> Result<Zeroizing<Vec<Block>>, Error>;

    /// The seed of the next iteration's matrix.
    fn matrix(&mut self, channel: &mut Channel) -> Result<Seed, Error>;

    /// The blocks of some groups.
    fn grow(
        &mut self,
        channel: &mut Channel,
        iteration: &Iteration,
        groups: Range<usize>,
        out: &mut [Block],
    ) -> Result<(), Error>;
}

/// An extension, from either end.
struct Extension<E> {
    end: E,
    position: Position,
    /// The current iteration, once there is one.
    iteration: Option<Iteration>,
    /// What the iteration before started from: memory for what the next one starts from, which is written over.
    spent: Zeroizing<Vec<Block>>,
    /// Memory for blocks, which is written over.
    blocks: Zeroizing<Vec<Block>>,
    /// Where those are that were made and not handed out.
    ready: Range<usize>,
}

impl<E: End> Extension<E> {
    fn new(size: Size, end: E) -> Self {
        Self {
            end,
            position: Position::new(size.ladder()),
            iteration: None,
            spent: Zeroizing::default(),
            blocks: Zeroizing::default(),
            ready: 0..0,
        }
    }

    /// The blocks of the next `count` OTs. After an error there is no iteration, and so nothing more.
    fn blocks(&mut self, channel: &mut Channel, count: usize) -> Result<&[Block], Error> {
        let (mut out, first) = self.room(count);
        let mut blocks_end = first + std::mem::take(&mut self.ready).len();
        let mut iteration = self.iteration.take();
        while let Some(step) = self.position.step(count) {
            let (base, parameters) = match step {
                Step::Grow(groups) => {
                    blocks_end = self.grow(channel, iteration.as_ref().ok_or(FAILED)?, groups, &mut out, blocks_end)?;
                    continue;
                }
                Step::Begin(parameters) => {
                    let inputs = self.end.begin(channel, parameters.base())?;
                    let (mut base, first) = lines(Zeroizing::default(), inputs.len());
                    base.resize(first, 0);
                    base.extend_from_slice(&inputs);
                    ((base, first), parameters)
                }
                Step::Continue(groups, parameters) => {
                    let before = iteration.take().ok_or(FAILED)?;
                    let len = groups.len() * before.parameters().group_outputs();
                    let (mut base, first) = lines(std::mem::take(&mut self.spent), len);
                    self.grow(channel, &before, groups, &mut base, first)?;
                    self.spent = before.into_memory();
                    ((base, first), parameters)
                }
            };
            iteration = Some(Iteration::new(parameters, &self.end.matrix(channel)?, base));
        }
        if blocks_end < first + count {
            return Err(FAILED);
        }
        (self.blocks, self.ready, self.iteration) = (out, first + count..blocks_end, iteration);
        Ok(&self.blocks[first..][..count])
    }

    /// The memory for `count` blocks, with those that are ready from the place given on, behind which a line begins.
    fn room(&mut self, count: usize) -> (Zeroizing<Vec<Block>>, usize) {
        let (mut out, ready) = (std::mem::take(&mut self.blocks), self.ready.clone());
        let first = |start: usize| (start + LANES - ready.len() % LANES) % LANES;
        let len = ready.len().max(count + self.position.largest_group());
        if out.capacity() < len + LANES {
            let (mut copy, start) = lines(Zeroizing::default(), len);
            copy.resize(first(start), 0);
            copy.extend_from_slice(&out[ready.clone()]);
            return (copy, first(start));
        }
        let first = first(line_start(&out));
        let length = out.len().max(first + ready.len());
        out.resize(length, 0);
        out.copy_within(ready, first);
        (out, first)
    }

    /// Makes the blocks of `groups` from place `start` of `out` on, which has room for them, and returns where they end.
    fn grow(
        &mut self,
        channel: &mut Channel,
        iteration: &Iteration,
        groups: Range<usize>,
        out: &mut Vec<Block>,
        start: usize,
    ) -> Result<usize, Error> {
        let end = start + groups.len() * iteration.parameters().group_outputs();
        assert!(end <= out.capacity(), "memory that moves would not be wiped");
        // What was made before is not filled with zeros first.
        out.resize(end.max(out.len()), 0);
        self.end.grow(channel, iteration, groups, &mut out[start..end])?;
        Ok(end)
    }
}

/// How many of its first blocks lie before the first line of a cache: rows of blocks that lie in two lines are slow to read.
fn line_start(blocks: &[Block]) -> usize {
    blocks.as_ptr().align_offset(size_of::<[Block; LANES]>()) % LANES
}

/// Memory for so many blocks, which may be that of `spare`, and the place at which a line begins.
fn lines(spare: Zeroizing<Vec<Block>>, len: usize) -> (Zeroizing<Vec<Block>>, usize) {
    let len = len + LANES;
    let memory = if spare.capacity() < len { Zeroizing::new(Vec::with_capacity(len)) } else { spare };
    let first = line_start(&memory);
    (memory, first)
}

/// The sender of a silent extension. Its `delta` is odd, and uniform otherwise.
pub struct SilentSender(Extension<SenderEnd>);

struct SenderEnd {
    delta: Zeroizing<Block>,
    base: SoftSpokenSender,
    /// Draws the seeds of matrices, which are public.
    prg: Prg,
}

impl SilentSender {
    /// `base`: over [`BASE_FIELD`], with an odd `delta`, used by nobody else.
    pub(crate) fn new(size: Size, base: SoftSpokenSender, prg: Prg) -> Self {
        Self(Extension::new(size, SenderEnd { delta: Zeroizing::new(base.delta()), base, prg }))
    }
}

impl End for SenderEnd {
    fn begin(&mut self, channel: &mut Channel, count: usize) -> Result<Zeroizing<Vec<Block>>, Error> {
        self.base.extend(channel, count)?;
        let mut q = Zeroizing::new(self.base.take_blocks(count));
        q.iter_mut().for_each(|q| *q &= !1);
        Ok(q)
    }

    fn matrix(&mut self, channel: &mut Channel) -> Result<Seed, Error> {
        let seed = self.prg.seed();
        channel.send(seed.as_bytes())?;
        Ok(seed)
    }

    fn grow(
        &mut self,
        channel: &mut Channel,
        iteration: &Iteration,
        groups: Range<usize>,
        out: &mut [Block],
    ) -> Result<(), Error> {
        let message = iteration.plant(*self.delta, groups, out);
        Ok(channel.send(message.as_flattened())?)
    }
}

impl CotSender for SilentSender {
    fn delta(&self) -> Block {
        *self.0.end.delta
    }

    fn speaks(&self) -> bool {
        true
    }

    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<&[Block], Error> {
        self.0.blocks(channel, count)
    }
}

/// The receiver of a silent extension.
pub struct SilentReceiver(Extension<ReceiverEnd>);

struct ReceiverEnd {
    base: SoftSpokenReceiver,
    /// What the first iteration starts from, between its message and its start.
    begun: Option<Zeroizing<Vec<Block>>>,
}

impl SilentReceiver {
    /// `base`: over [`BASE_FIELD`], used by nobody else.
    pub(crate) fn new(size: Size, base: SoftSpokenReceiver) -> Self {
        Self(Extension::new(size, ReceiverEnd { base, begun: None }))
    }
}

impl ReceiverEnd {
    /// Sends the message of SoftSpokenOT.
    fn announce(&mut self, channel: &mut Channel, count: usize) -> Result<Zeroizing<Vec<Block>>, Error> {
        let (choice, _) = self.base.extend(channel, count)?;
        let choice = Zeroizing::new(choice);
        let mut t = Zeroizing::new(self.base.take_blocks(count));
        for (t, choice) in t.iter_mut().zip(choice.iter()) {
            *t = *t & !1 | Block::from(choice);
        }
        Ok(t)
    }
}

impl End for ReceiverEnd {
    fn begin(&mut self, channel: &mut Channel, count: usize) -> Result<Zeroizing<Vec<Block>>, Error> {
        self.begun.take().map_or_else(|| self.announce(channel, count), Ok)
    }

    fn matrix(&mut self, channel: &mut Channel) -> Result<Seed, Error> {
        let mut bytes = [0; SEED_BYTES];
        channel.recv_into(&mut bytes)?;
        Ok(Seed::from_bytes(bytes))
    }

    fn grow(
        &mut self,
        channel: &mut Channel,
        iteration: &Iteration,
        groups: Range<usize>,
        out: &mut [Block],
    ) -> Result<(), Error> {
        let message = channel.recv(16 * groups.len() * iteration.parameters().group_blocks())?;
        iteration.grow(groups, message.as_chunks().0, out);
        Ok(())
    }
}

impl CotReceiver for SilentReceiver {
    fn begin(&mut self, channel: &mut Channel) -> Result<(), Error> {
        let Extension { end, position, .. } = &mut self.0;
        if position.is_new() && end.begun.is_none() {
            end.begun = Some(end.announce(channel, position.first().base())?);
        }
        Ok(())
    }

    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<(Bits, &[Block]), Error> {
        let t = self.0.blocks(channel, count)?;
        Ok((random::lowest_bits(t), t))
    }
}

#[cfg(test)]
mod estimate;
#[cfg(test)]
mod tests;
