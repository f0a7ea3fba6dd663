//! A peer that says what it was given to say, whatever it hears, and leaves: for tests of who listens to it.

use crate::channel::Channel;
use crate::deadline::Deadline;
use crate::error::{Error, Io};
use crate::transport::Transport;

/// The channel to a peer that sends these bytes, headers of frames included, and then ends the link.
pub fn peer(wire: &[u8]) -> Channel {
    Channel::new(Box::new(Replay { wire: wire.to_vec(), position: 0 }))
}

struct Replay {
    wire: Vec<u8>,
    /// How many bytes are read.
    position: usize,
}

impl Transport for Replay {
    fn write(&mut self, _bytes: &[u8], _: &mut Deadline) -> Result<(), Error> {
        Ok(())
    }

    fn flush(&mut self, _: &mut Deadline) -> Result<(), Error> {
        Ok(())
    }

    fn read(&mut self, out: &mut [u8], _: &mut Deadline) -> Result<(), Error> {
        let next = self.wire.get(self.position..).and_then(|rest| rest.get(..out.len())).ok_or(Io::Disconnected)?;
        out.copy_from_slice(next);
        self.position += out.len();
        Ok(())
    }

    fn close(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerMisbehaved;

    #[test]
    fn a_peer_is_heard_to_its_end_whatever_is_said_to_it() {
        let mut channel = peer(b"\x01\x02\0\0\0hi\x01\x01\0\0\0!\x03\0\0\0\0");
        for message in [&b"hi"[..], b"!"] {
            channel.send(b"is anybody there?").expect("nobody listens");
            channel.flush().expect("nobody listens");
            assert_eq!(channel.recv(message.len()).expect("a message"), message);
        }
        assert_eq!(channel.recv(1), Err(PeerMisbehaved::UnknownFrame { kind: 3 }.into()));
        assert_eq!(peer(b"\x01\x02\0\0\0h").recv(2), Err(Io::Disconnected.into()));
    }
}
