//! One direction of a relay: bytes that are on their way.

use std::collections::VecDeque;
use std::time::Instant;

use super::pacer::Pacer;
use crate::link::Link;
use crate::socket::Socket;

/// Bytes that may wait to leave, besides those that the link itself holds: as much as a system's send buffer takes.
const WAITING_BYTES: usize = 4 << 20;

/// A direction from one socket, the source, to another, the sink.
pub(super) struct Line {
    pacer: Pacer,
    packets: VecDeque<Packet>,
    /// Bytes of the first packet that the sink has taken.
    taken: usize,
    held: usize,
    capacity: usize,
    /// The source will give nothing more.
    ended: bool,
    /// Nothing more will pass.
    done: bool,
}

struct Packet {
    due: Instant,
    bytes: Vec<u8>,
}

impl Line {
    pub fn new(link: Link) -> Self {
        Self {
            pacer: Pacer::new(link),
            packets: VecDeque::new(),
            taken: 0,
            held: 0,
            capacity: capacity(&link),
            ended: false,
            done: false,
        }
    }

    /// Takes in what the source has, hands out what is due, and ends the sink once all has passed.
    pub fn pass(&mut self, source: &mut Socket, sink: &mut Socket, buffer: &mut [u8]) {
        if self.done {
            return;
        }
        if self.wants_more() {
            self.take_in(source, buffer);
        }
        if !self.hand_out(sink) {
            // Whoever still writes to the source is told as a socket tells it.
            source.end_receiving();
            self.give_up();
        } else if self.ended && self.packets.is_empty() {
            sink.end_sending();
            self.done = true;
        }
    }

    fn take_in(&mut self, source: &mut Socket, buffer: &mut [u8]) {
        match source.read(buffer) {
            Ok(None) => {}
            Ok(Some(count @ 1..)) => {
                let now = Instant::now();
                self.held += count;
                for bytes in buffer[..count].chunks(self.pacer.packet_bytes()) {
                    let due = self.pacer.due(now, bytes.len());
                    self.packets.push_back(Packet { due, bytes: bytes.to_vec() });
                }
            }
            Ok(Some(0)) | Err(_) => self.ended = true,
        }
    }

    /// Writes what is due; false if the sink is gone.
    fn hand_out(&mut self, sink: &mut Socket) -> bool {
        while let Some(packet) = self.packets.front()
            && packet.due <= Instant::now()
        {
            let rest = &packet.bytes[self.taken..];
            match sink.write(|out| out.write(rest)) {
                Ok(Some(count)) => {
                    self.held -= count;
                    self.taken += count;
                    if self.taken == packet.bytes.len() {
                        self.packets.pop_front();
                        self.taken = 0;
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Forgets what is on its way.
    pub fn give_up(&mut self) {
        self.packets.clear();
        self.held = 0;
        self.done = true;
    }

    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the source is to be read from. While it is not, the link is busy with what waits, so no time is lost.
    pub fn wants_more(&self) -> bool {
        !self.done && !self.ended && self.held < self.capacity
    }

    /// When the next packet can be handed out, if there is one.
    pub fn next_due(&self) -> Option<Instant> {
        self.packets.front().map(|packet| packet.due)
    }
}

/// The most bytes that a direction of `link` holds, give or take one read.
pub(super) fn capacity(link: &Link) -> usize {
    link.bytes_in(link.latency()) + WAITING_BYTES
}
