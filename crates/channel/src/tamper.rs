//! A link in memory whose first end misbehaves once, for tests of robustness. No socket passes through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::channel::Channel;
use crate::frame::{HEADER_BYTES, Header, Kind};
use crate::intercept::{Intercepted, Link, Middle};
use crate::memory::link;

/// What is done to one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The payload loses its last bytes (all of them if it has fewer); the header says so.
    Shorten {
        /// How many bytes.
        by: usize,
    },
    /// The payload gains zero bytes; the header says so.
    Lengthen {
        /// How many bytes.
        by: usize,
    },
    /// Only the first bytes of the frame (header: 5) go out, then the link closes.
    Cut {
        /// How many bytes.
        keep: usize,
    },
    /// One bit of the payload is inverted.
    FlipBit {
        /// Which one, modulo the bits there are.
        bit: usize,
    },
    /// The payload is replaced by as many pseudo-random bytes.
    Randomise {
        /// Which bytes.
        seed: u64,
    },
    /// The payload is replaced by as many zero bytes.
    Zero,
    /// The payload is replaced by that of the message before from the same side, whatever its length.
    ReplayPrevious,
    /// The message is sent twice.
    Repeat,
    /// The message changes places with the next one.
    SwapWithNext,
    /// The message is not sent.
    Drop,
    /// The link closes in place of the message.
    Close,
    /// These bytes go on the wire in place of the frame, header included.
    Replace(Vec<u8>),
}

/// Tells whether the tampering has happened: a test that tampers with a message that never comes proves nothing.
#[derive(Debug, Clone)]
pub struct Witness(Arc<AtomicBool>);

impl Witness {
    /// Whether what passed was changed.
    pub fn happened(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Two connected channels in memory. The `message`-th message (from 0) that the first one sends is tampered with.
pub fn pair(message: usize, action: Action) -> (Channel, Channel, Witness) {
    let witness = Witness(Arc::new(AtomicBool::new(false)));
    let (first, second) = link();
    let middle = Tamperer { before: message, action: Some(action), previous: Vec::new(), held: None, witness };
    let witness = middle.witness.clone();
    let first = Channel::new(Box::new(Intercepted::new(first, middle)));
    (first, Channel::new(Box::new(second)), witness)
}

struct Tamperer {
    /// Messages still to pass before the tampering.
    before: usize,
    action: Option<Action>,
    previous: Vec<u8>,
    /// A message that waits for the next one to go first.
    held: Option<Vec<u8>>,
    witness: Witness,
}

impl Middle for Tamperer {
    fn pass(&mut self, frame: &[u8], wire: &mut Vec<u8>) -> Link {
        if self.before > 0 {
            self.before -= 1;
            self.previous = frame[HEADER_BYTES..].to_vec();
            wire.extend_from_slice(frame);
            return Link::Open;
        }
        if let Some(action) = self.action.take() {
            return self.tamper(action, frame, wire);
        }
        wire.extend_from_slice(frame);
        if let Some(held) = self.held.take() {
            wire.extend_from_slice(&held);
            self.note(held != frame);
        }
        Link::Open
    }
}

impl Tamperer {
    fn tamper(&mut self, action: Action, frame: &[u8], wire: &mut Vec<u8>) -> Link {
        let payload = &frame[HEADER_BYTES..];
        let length = payload.len();
        match action {
            Action::Shorten { by } => put(wire, &payload[..length.saturating_sub(by)]),
            Action::Lengthen { by } => put(wire, &[payload, &vec![0; by]].concat()),
            Action::FlipBit { bit } => {
                let mut payload = payload.to_vec();
                if let Some(byte) = payload.get_mut(bit / 8 % length.max(1)) {
                    *byte ^= 1 << (bit % 8);
                }
                put(wire, &payload);
            }
            Action::Randomise { seed } => put(wire, &pseudo_random(seed, length)),
            Action::Zero => put(wire, &vec![0; length]),
            Action::ReplayPrevious => put(wire, &self.previous),
            Action::Repeat => wire.extend_from_slice(&frame.repeat(2)),
            Action::Replace(bytes) => wire.extend_from_slice(&bytes),
            Action::Drop => {}
            Action::SwapWithNext => {
                self.held = Some(frame.to_vec());
                return Link::Open;
            }
            Action::Cut { keep } => {
                wire.extend_from_slice(&frame[..keep.min(frame.len())]);
                self.note(true);
                return Link::Close;
            }
            Action::Close => {
                self.note(true);
                return Link::Close;
            }
        }
        self.note(wire != frame);
        Link::Open
    }

    fn note(&self, changed: bool) {
        self.witness.0.fetch_or(changed, Ordering::SeqCst);
    }
}

fn put(wire: &mut Vec<u8>, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    wire.extend_from_slice(&Header { kind: Kind::Data, length }.to_bytes());
    wire.extend_from_slice(payload);
}

/// Bytes that look random, always the same for a seed (SplitMix64: Steele, Lea, Flood 2014).
fn pseudo_random(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    };
    std::iter::repeat_with(word).flatten().take(length).collect()
}
