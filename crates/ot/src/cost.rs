//! What the protocols cost on the wire, exactly. `tests/cost.rs` holds the formulas against a real channel.
//!
//! A message of `n` bytes counts as `n + 5`, as in [`privet_channel::Cost`].

use privet_channel::Cost;

use crate::party::FIRST_BYTES;
use crate::schedule::{AHEAD, BATCH, Run, batches, parts, runs};
use crate::silent::position::{Position, Step};
use crate::silent::{self, Size};
use crate::{Demand, Extension, FieldBits, Role, tree};

/// The frame header of a message.
const HEADER_BYTES: u64 = privet_channel::HEADER_BYTES as u64;

/// [`crate::OtParty::setup`]: the same for both parties and every extension.
pub fn setup() -> Cost {
    let bytes = (FIRST_BYTES + tree::MESSAGE_BYTES) as u64 + 2 * HEADER_BYTES;
    Cost { bytes_sent: bytes, bytes_received: bytes, messages_sent: 2, messages_received: 2, rounds: 2 }
}

/// [`crate::Stock::generate`] for the party `role`, if its last act on the channel was a receive, and for silent OT if the
/// party is fresh from its setup.
///
/// SoftSpokenOT: per message of up to 65,536 OTs `16 * (128 / k - 1)` bytes per 128 OTs, rounded up. A round is counted
/// for every 32 messages that have counterparts in the other direction; parties wait for each other no more often than
/// that. Silent OT: one message of SoftSpokenOT, then 16 bytes for every iteration and `16 * (depth - 1)` for every tree.
/// Portions of one-hot vectors follow, after their OTs an exchange for each bit of a number but the first.
pub fn generate(demand: &Demand, extension: impl Into<Extension>, role: Role) -> Cost {
    generate_in_chunks(&[vec![*demand]], extension, role)
}

/// [`crate::Stock::generate`] for one demand after the other with the same [`crate::OtParty`]: those of a row directly, and the last act of
/// `role` before each row was a receive. What silent OT has left over from a chunk serves the next.
pub fn generate_in_chunks(rows: &[Vec<Demand>], extension: impl Into<Extension>, role: Role) -> Cost {
    generate_beside(rows, extension, role, None, &|_| Beside::default())
}

/// What this party does in a slot of [`crate::Stock::generate_beside`]: it sends, and then it receives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Whether it sends.
    pub sends: bool,
    /// Whether it receives.
    pub receives: bool,
}

/// As [`generate_in_chunks`], where so much is done in the slots of the demand at `chunk` (its row, and its place in it): of that, rounds
/// alone are counted here.
pub fn generate_beside(
    rows: &[Vec<Demand>],
    extension: impl Into<Extension>,
    role: Role,
    chunk: Option<(usize, usize)>,
    beside: &dyn Fn(usize) -> Beside,
) -> Cost {
    let both = |&(demand, slots): &(Demand, bool)| (runs(&demand, role.peer()), runs(&demand, role), slots);
    // A portion of one-hot vectors ends with a receive.
    let (mut parted, mut exchanges): (Vec<Vec<(Demand, bool)>>, _) = (Vec::new(), Cost::default());
    for (at_row, row) in rows.iter().enumerate() {
        parted.push(Vec::new());
        for (at, demand) in row.iter().enumerate() {
            let mut parts = parts(demand).into_iter();
            parted.last_mut().expect("a row").extend(parts.next().map(|part| (part, chunk == Some((at_row, at)))));
            for (run, part) in demand.one_hots.runs().into_iter().zip(parts) {
                parted.last_mut().expect("a row").push((part, false));
                parted.push(Vec::new());
                exchanges = run.messages().fold(exchanges, |sum, bytes| sum + exchange(bytes));
            }
        }
    }
    let rows = parted.iter().map(|row| row.iter().map(both));
    exchanges
        + match extension.into() {
            Extension::SoftSpoken(field) => {
                let chunks = rows.flatten();
                chunks.fold(Cost::default(), |sum, (outgoing, incoming, _)| {
                    sum + soft_spoken(&outgoing, &incoming, field)
                })
            }
            Extension::Silent(size) => silent(rows, size, beside),
        }
}

fn exchange(bytes: usize) -> Cost {
    let bytes = bytes as u64 + HEADER_BYTES;
    Cost { bytes_sent: bytes, bytes_received: bytes, messages_sent: 1, messages_received: 1, rounds: 1 }
}

fn soft_spoken(outgoing: &[Run], incoming: &[Run], field: FieldBits) -> Cost {
    let bytes = |runs: &[Run]| runs.iter().map(|run| HEADER_BYTES + soft_spoken_bytes(run.count(), field)).sum();
    Cost {
        bytes_sent: bytes(outgoing),
        bytes_received: bytes(incoming),
        messages_sent: outgoing.len() as u64,
        messages_received: incoming.len() as u64,
        rounds: outgoing.len().min(incoming.len()).div_ceil(BATCH) as u64,
    }
}

fn soft_spoken_bytes(count: usize, field: FieldBits) -> u64 {
    (count.div_ceil(128) * 16 * field.sent_blocks()) as u64
}

fn silent(
    rows: impl Iterator<Item = impl Iterator<Item = (Vec<Run>, Vec<Run>, bool)>>,
    size: Size,
    beside: &dyn Fn(usize) -> Beside,
) -> Cost {
    let first = size.ladder()[0];
    let begin = soft_spoken_bytes(first.base(), silent::BASE_FIELD);
    let mut tally = Tally::default();
    let (mut as_sender, mut as_receiver) = (Direction::new(size), Direction::new(size));
    for row in rows {
        tally.received_last();
        for (outgoing, incoming, slots) in row {
            if as_receiver.is_new() && !outgoing.is_empty() {
                tally.send(begin);
            }
            for (slot, (outgoing, incoming)) in batches(&outgoing, &incoming, AHEAD).enumerate() {
                if as_sender.is_new() && !incoming.is_empty() {
                    tally.receive(begin);
                }
                as_sender.advance(incoming, |bytes| tally.send(bytes));
                as_receiver.advance(outgoing, |bytes| tally.receive(bytes));
                if slots {
                    tally.turn(beside(slot));
                }
            }
        }
    }
    tally.0
}

/// One direction of a silent extension.
struct Direction {
    position: Position,
    parameters: silent::parameters::Parameters,
}

impl Direction {
    fn new(size: Size) -> Self {
        Self { position: Position::new(size.ladder()), parameters: size.ladder()[0] }
    }

    fn is_new(&self) -> bool {
        self.position.is_new()
    }

    /// Hands the length of every message that the sender sends for `runs` to `message`.
    fn advance(&mut self, runs: &[Run], mut message: impl FnMut(u64)) {
        for run in runs {
            while let Some(step) = self.position.step(run.count()) {
                let (groups, parameters) = match step {
                    Step::Begin(parameters) => (None, Some(parameters)),
                    Step::Grow(groups) => (Some(groups), None),
                    Step::Continue(groups, parameters) => (Some(groups), Some(parameters)),
                };
                if let Some(groups) = groups {
                    message((16 * groups.len() * self.parameters.group_blocks()) as u64);
                }
                if let Some(parameters) = parameters {
                    self.parameters = parameters;
                    message(silent::SEED_BYTES as u64);
                }
            }
        }
    }
}

/// Counts as a channel does, from a receive on.
#[derive(Default)]
struct Tally(Cost, bool);

impl Tally {
    /// Begins anew after a receive.
    fn received_last(&mut self) {
        self.1 = false;
    }

    fn send(&mut self, bytes: u64) {
        self.0.bytes_sent += HEADER_BYTES + bytes;
        self.0.messages_sent += 1;
        self.1 = true;
    }

    /// Counts the round of work that is counted elsewhere.
    fn turn(&mut self, Beside { sends, receives }: Beside) {
        self.1 |= sends;
        if receives {
            self.0.rounds += u64::from(std::mem::take(&mut self.1));
        }
    }

    fn receive(&mut self, bytes: u64) {
        self.0.bytes_received += HEADER_BYTES + bytes;
        self.0.messages_received += 1;
        self.0.rounds += u64::from(std::mem::take(&mut self.1));
    }
}
