//! What a channel needs from below: an ordered stream of bytes in both directions.

use std::time::Duration;

use crate::deadline::Deadline;
use crate::error::{Error, Misuse};
use crate::link::Link;
use crate::peer::Peer;
use crate::socket::Stopper;

/// A two-way byte stream to one peer.
pub(crate) trait Transport: Send {
    /// Takes all of `bytes` for the peer; they need not leave before [`Transport::flush`].
    ///
    /// Must not wait for the peer to receive without also taking in what the peer sends meanwhile: this is what makes
    /// deadlock impossible when both sides send much before either receives.
    fn write(&mut self, bytes: &[u8], deadline: &mut Deadline) -> Result<(), Error>;

    /// Hands everything written to the network.
    fn flush(&mut self, deadline: &mut Deadline) -> Result<(), Error>;

    /// Fills `out` with the next bytes from the peer.
    fn read(&mut self, out: &mut [u8], deadline: &mut Deadline) -> Result<(), Error>;

    /// Ends the link such that what was flushed still reaches a peer that is alive. Waits a second at most.
    fn close(&mut self);

    /// Makes both directions as slow as `link`, from now on; a link in memory stays as quick as it is.
    fn shape(&mut self, _link: Link) -> Result<(), Error> {
        Err(Misuse::InMemory.into())
    }

    /// Bounds what the peer may send before it is read; a link in memory has no bound.
    fn set_unread_limit(&mut self, _bytes: usize) {}

    /// Whether nothing lies on the link that the peer has sent since the last bytes that were taken in, not even its end; told
    /// without waiting.
    fn is_quiet(&self) -> bool {
        true
    }

    /// What ends the link from another thread, if it is a socket; asked for once the link is shaped.
    fn stopper(&self) -> Result<Option<Stopper>, Error> {
        Ok(None)
    }

    /// The authenticated peer, if the transport authenticates.
    fn peer(&self) -> Option<&Peer> {
        None
    }

    /// Time there and back through the network, where that is known.
    fn rtt(&self) -> Option<Duration> {
        None
    }
}
