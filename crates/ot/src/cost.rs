//! What the protocols cost on the wire, exactly. `tests/cost.rs` holds the formulas against a real channel.
//!
//! A message of `n` bytes counts as `n + 5`, as in [`privet_channel::Cost`].

use privet_channel::Cost;

use crate::party::FIRST_BYTES;
use crate::schedule::{BATCH, Run, runs};
use crate::{Demand, FieldBits, Role, tree};

/// The frame header of a message.
const HEADER_BYTES: u64 = 5;

/// [`crate::OtParty::setup`]: the same for both parties and every field.
pub fn setup() -> Cost {
    let bytes = (FIRST_BYTES + tree::MESSAGE_BYTES) as u64 + 2 * HEADER_BYTES;
    Cost { bytes_sent: bytes, bytes_received: bytes, messages_sent: 2, messages_received: 2, rounds: 2 }
}

/// [`crate::Stock::generate`] for the party `role`, if its last act on the channel was a receive.
///
/// Per message of up to 65,536 OTs: `16 * (128 / k - 1)` bytes per 128 OTs, rounded up. A round is counted for every 32
/// messages that have counterparts in the other direction; parties wait for each other no more often than that.
pub fn generate(demand: &Demand, field: FieldBits, role: Role) -> Cost {
    let outgoing = runs(demand.bit_ots(role.peer()), demand.word_ots(role.peer()));
    let incoming = runs(demand.bit_ots(role), demand.word_ots(role));
    Cost {
        bytes_sent: bytes(&outgoing, field),
        bytes_received: bytes(&incoming, field),
        messages_sent: outgoing.len() as u64,
        messages_received: incoming.len() as u64,
        rounds: outgoing.len().min(incoming.len()).div_ceil(BATCH) as u64,
    }
}

fn bytes(runs: &[Run], field: FieldBits) -> u64 {
    let message = |run: &Run| HEADER_BYTES + (run.count().div_ceil(128) * 16 * field.sent_blocks()) as u64;
    runs.iter().map(message).sum()
}
