//! A link in memory that writes down what passes, for tests of privacy. No socket passes through it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::channel::Channel;
use crate::frame::HEADER_BYTES;
use crate::intercept::{Intercepted, Link, Middle};
use crate::memory::link;

/// Who sent a message: the first or the second channel of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the first channel to the second.
    FirstToSecond,
    /// From the second channel to the first.
    SecondToFirst,
}

/// One recorded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub direction: Direction,
    /// Its payload, without the frame header.
    pub payload: Vec<u8>,
}

/// All messages of a link so far. Those of one direction are in order; how the two directions interleave depends on
/// the threads, except where the protocol forces it. Aborts are not recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The messages, as they entered the link.
    pub messages: Vec<Message>,
}

impl Transcript {
    /// The payloads that went one way.
    pub fn payloads(&self, direction: Direction) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().filter(move |message| message.direction == direction).map(|message| &*message.payload)
    }

    /// The payloads that went one way, joined.
    pub fn bytes(&self, direction: Direction) -> Vec<u8> {
        self.payloads(direction).flatten().copied().collect()
    }
}

/// Two connected channels in memory, and the transcript of what passes between them.
pub fn pair() -> (Channel, Channel, Arc<Mutex<Transcript>>) {
    let transcript = Arc::new(Mutex::new(Transcript::default()));
    let (first, second) = link();
    let forth = Recorder { direction: Direction::FirstToSecond, transcript: transcript.clone() };
    let back = Recorder { direction: Direction::SecondToFirst, transcript: transcript.clone() };
    let first = Channel::new(Box::new(Intercepted::new(first, forth)));
    let second = Channel::new(Box::new(Intercepted::new(second, back)));
    (first, second, transcript)
}

struct Recorder {
    direction: Direction,
    transcript: Arc<Mutex<Transcript>>,
}

impl Middle for Recorder {
    fn pass(&mut self, frame: &[u8], wire: &mut Vec<u8>) -> Link {
        wire.extend_from_slice(frame);
        let message = Message { direction: self.direction, payload: frame[HEADER_BYTES..].to_vec() };
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner).messages.push(message);
        Link::Open
    }
}
