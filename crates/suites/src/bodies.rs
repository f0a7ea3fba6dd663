//! The bodies of a dealer's keys on their way to the two parties, in messages whose lengths both ends know.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use privet_channel::{Channel, HEADER_BYTES};
use privet_fss::Source;

use crate::Error;

/// Bytes of a message; the last one of a part is shorter.
const MESSAGE_BYTES: usize = 1 << 20;

/// Messages that wait for a party that is slower than the dealer, at most.
const QUEUE: usize = 8;

/// Bytes of memory at a party for what is on its way to the store.
pub(crate) const BUFFERS: u64 = 3 * MESSAGE_BYTES as u64;

/// Bytes on the wire of a part of `bytes` bytes.
pub(crate) fn wire_bytes(bytes: u64) -> u64 {
    bytes + HEADER_BYTES as u64 * bytes.div_ceil(MESSAGE_BYTES as u64)
}

/// One party's body at the dealer. What is written is sent in messages; a flush ends a part.
pub(crate) struct Body {
    queue: SyncSender<Vec<u8>>,
    gathered: Vec<u8>,
}

impl Body {
    fn hand_out(&mut self) -> io::Result<()> {
        let message = std::mem::replace(&mut self.gathered, Vec::with_capacity(MESSAGE_BYTES));
        self.queue.send(message).map_err(|_| io::Error::other("a link to a party failed"))
    }
}

impl Write for Body {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(MESSAGE_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&bytes[..count]);
        if self.gathered.len() == MESSAGE_BYTES {
            self.hand_out()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() { Ok(()) } else { self.hand_out() }
    }
}

/// The dealer's side: `make` writes the bodies of client and server, while a thread for each party sends them.
///
/// # Errors
/// What a link failed with, or else what `make` did.
pub(crate) fn send(
    [client, server]: [&mut Channel; 2],
    make: impl FnOnce(&mut [Body; 2]) -> Result<(), Error>,
) -> Result<(), Error> {
    let [(to_client, for_client), (to_server, for_server)] = [(); 2].map(|()| sync_channel(QUEUE));
    thread::scope(|scope| {
        let sending = [(client, for_client), (server, for_server)]
            .map(|(channel, messages)| scope.spawn(move || send_all(channel, &messages)));
        let mut bodies = [to_client, to_server].map(|queue| Body { queue, gathered: Vec::new() });
        let result = make(&mut bodies);
        drop(bodies);
        // A link that failed is why making did.
        let [client, server] = sending.map(|thread| thread.join().expect("sending does not panic"));
        client.and(server)?;
        result
    })
}

fn send_all(channel: &mut Channel, messages: &Receiver<Vec<u8>>) -> Result<(), privet_channel::Error> {
    messages.iter().try_for_each(|message| channel.send(&message))
}

/// A party's side: writes a part of `bytes` bytes to `body`. Fails if the link fails or the body cannot be written.
pub(crate) fn receive(dealer: &mut Channel, mut bytes: u64, body: &mut dyn Write) -> Result<(), Error> {
    let mut buffer = Vec::new();
    while bytes > 0 {
        buffer.resize(bytes.min(MESSAGE_BYTES as u64) as usize, 0);
        dealer.recv_into(&mut buffer)?;
        body.write_all(&buffer).map_err(privet_fss::Error::from)?;
        bytes -= buffer.len() as u64;
    }
    Ok(())
}

/// A part of a body that a party uses up as it comes.
pub(crate) struct Receiving<'a> {
    dealer: &'a mut Channel,
    bytes_left: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl<'a> Receiving<'a> {
    /// A part of `bytes` bytes.
    pub(crate) fn new(dealer: &'a mut Channel, bytes: u64) -> Self {
        Self { dealer, bytes_left: bytes, buffer: Vec::new(), used: 0 }
    }
}

impl Source for Receiving<'_> {
    fn pull(&mut self, bytes: usize) -> Result<&[u8], privet_fss::Error> {
        self.buffer.drain(..self.used);
        self.used = bytes;
        while self.buffer.len() < bytes {
            if self.bytes_left == 0 {
                return Err(privet_fss::Error::KeyTooShort { expected: bytes, actual: self.buffer.len() });
            }
            let message = self.bytes_left.min(MESSAGE_BYTES as u64) as usize;
            let end = self.buffer.len();
            self.buffer.resize(end + message, 0);
            self.dealer.recv_into(&mut self.buffer[end..])?;
            self.bytes_left -= message as u64;
        }
        Ok(&self.buffer[..bytes])
    }
}
