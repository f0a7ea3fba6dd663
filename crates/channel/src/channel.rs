//! A conversation with one peer in whole messages.

use std::fmt;
use std::time::Duration;

use crate::abort::AbortReason;
use crate::cost::Cost;
use crate::deadline::Deadline;
use crate::error::{Error, Io, Misuse, PeerMisbehaved};
use crate::frame::{self, ABORT_TEXT_BYTES, HEADER_BYTES, Header, Kind};
use crate::inbound;
use crate::link::Link;
use crate::peer::Fingerprint;
use crate::socket::Stopper;
use crate::transport::Transport;

/// How long a channel waits for any one message unless told otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// The most bytes that a peer may send before they are read, unless fewer are set.
pub const MOST_UNREAD: usize = inbound::LIMIT;

/// Messages are gathered up to this many bytes before they go to the transport: four full TLS records.
const GATHER_BYTES: usize = 64 * 1024;

/// The most a parting flush (on drop or abort) or the search for the peer's last word waits.
const PARTING_TIMEOUT: Duration = Duration::from_secs(2);

/// One side of a conversation in messages whose lengths both sides know.
///
/// Sends are gathered and leave with the next receive or [`Channel::flush`], or earlier when many bytes have gathered.
/// Dropping a channel flushes it, waiting two seconds at most.
pub struct Channel {
    transport: Box<dyn Transport>,
    gathered: Vec<u8>,
    timeout: Duration,
    cost: Cost,
    /// Whether the next receive starts a round.
    turned: bool,
    failure: Option<Error>,
}

impl Channel {
    pub(crate) fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport,
            gathered: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            cost: Cost::default(),
            turned: true,
            failure: None,
        }
    }

    /// Sends one message. It may stay here until the next receive or [`Channel::flush`].
    ///
    /// # Errors
    /// [`Misuse::MessageTooLong`] above 4 GiB - 1; [`Error::Io`] if the link is down or the peer takes nothing in time;
    /// [`PeerMisbehaved::Aborted`] if the peer left and said why.
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send_parts(&[message])
    }

    /// [`Channel::send`] of a message of parts, one after the other.
    ///
    /// # Errors
    /// As there.
    pub fn send_parts(&mut self, parts: &[impl AsRef<[u8]>]) -> Result<(), Error> {
        self.check()?;
        let bytes = parts.iter().map(|part| part.as_ref().len()).sum();
        let length = u32::try_from(bytes).map_err(|_| Misuse::MessageTooLong { bytes, limit: u32::MAX as usize })?;
        let header = Header { kind: Kind::Data, length };
        let mut deadline = None;
        self.write(&header.to_bytes(), &mut deadline)?;
        parts.iter().try_for_each(|part| self.write(part.as_ref(), &mut deadline))?;
        self.cost.bytes_sent += (HEADER_BYTES + bytes) as u64;
        self.cost.messages_sent += 1;
        self.turned = true;
        Ok(())
    }

    /// Flushes, then receives one message of exactly `bytes` bytes.
    ///
    /// # Errors
    /// [`PeerMisbehaved::WrongLength`] if the next message has another length (nothing is allocated then),
    /// [`PeerMisbehaved::Aborted`] if the peer gave up, [`Error::Io`] if it is gone or silent for too long.
    pub fn recv(&mut self, bytes: usize) -> Result<Vec<u8>, Error> {
        self.receive_header(Due::Exactly(bytes))?;
        let mut message = vec![0; bytes];
        self.receive_payload(&mut message)?;
        Ok(message)
    }

    /// [`Channel::recv`] of a message that both sides know travels beside the one received before: it starts no round, whatever was sent
    /// in between.
    ///
    /// # Errors
    /// As there.
    pub fn recv_beside(&mut self, bytes: usize) -> Result<Vec<u8>, Error> {
        self.turned = false;
        self.recv(bytes)
    }

    /// Flushes, then fills `out` with one message of exactly its length. Errors as [`Channel::recv`].
    pub fn recv_into(&mut self, out: &mut [u8]) -> Result<(), Error> {
        self.receive_header(Due::Exactly(out.len()))?;
        self.receive_payload(out)
    }

    /// Flushes, then receives one message of at most `limit` bytes: control messages of variable length.
    ///
    /// # Errors
    /// [`PeerMisbehaved::TooLong`] above the limit (nothing is allocated then); otherwise as [`Channel::recv`].
    pub fn recv_at_most(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let length = self.receive_header(Due::AtMost(limit))?;
        let mut message = vec![0; length];
        self.receive_payload(&mut message)?;
        Ok(message)
    }

    /// Sends a message and receives one of the same length: one round on both sides, at any length without deadlock.
    ///
    /// # Errors
    /// As [`Channel::send`] and [`Channel::recv`].
    pub fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.send(message)?;
        self.recv(message.len())
    }

    /// Hands everything sent so far to the network.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        let flushed = self.flush_by(Deadline::after(self.timeout, TAKING));
        self.noted(flushed)
    }

    /// Gives up and tells the peer why, as well as that is still possible: the peer's next receive gives
    /// [`PeerMisbehaved::Aborted`] with this reason. The channel is closed afterwards. Waits a few seconds at most.
    pub fn abort(&mut self, reason: AbortReason) {
        self.abort_with(reason, "");
    }

    /// As [`Channel::abort`], with a text for the peer's log: at most 512 bytes, and nothing secret.
    pub fn abort_with(&mut self, reason: AbortReason, text: &str) {
        if self.failure == Some(Misuse::Closed.into()) {
            return;
        }
        self.gathered.extend_from_slice(&frame::encode_abort(reason, text));
        let deadline = Deadline::after(self.timeout.min(PARTING_TIMEOUT), TAKING);
        // Best effort by contract: a peer that cannot be told will see the link close.
        let _ = self.flush_by(deadline);
        self.transport.close();
        self.failure = Some(Misuse::Closed.into());
    }

    /// What this side has sent and received so far. Subtract two readings to cost what lies between.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Bounds the wait for any one message (default 120 s). While bytes move, a second more
    /// is given for each 256 KiB, so that large messages may pass slow links.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The bound that [`Channel::set_timeout`] sets.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Bounds what the peer may send before this side reads it ([`MOST_UNREAD`] unless told otherwise): beyond it the peer has
    /// misbehaved. It is held in this side's memory while this side sends what the peer does not take. In memory there is no bound.
    pub fn set_unread_limit(&mut self, bytes: usize) {
        self.transport.set_unread_limit(bytes);
    }

    /// Makes the link as slow as `link`, for real and in both directions: the peer notices, but needs to do nothing. So
    /// one side shapes, not both. Costs stay the same. Dropping the channel then waits half a round trip longer.
    ///
    /// # Errors
    /// [`Io::System`] if the system has no more threads or sockets; [`Misuse::InMemory`] of a link in memory.
    pub fn shaped(mut self, link: Link) -> Result<Self, Error> {
        self.transport.shape(link)?;
        Ok(self)
    }

    /// Whether the link is up and nothing lies on it that the peer has sent since, not even its end; told without waiting.
    pub fn is_quiet(&self) -> bool {
        self.failure.is_none() && self.transport.is_quiet()
    }

    /// What ends this channel from another thread; `None` in memory. Shape the channel first.
    ///
    /// # Errors
    /// [`Io::System`] if the system has no more sockets.
    pub fn stopper(&self) -> Result<Option<Stopper>, Error> {
        self.transport.stopper()
    }

    /// Time there and back through the network, as setting up the connection took it, without any shaping. `None` in
    /// memory, over loopback, and on the side that accepted the connection.
    pub fn rtt(&self) -> Option<Duration> {
        self.transport.rtt()
    }

    /// SHA-256 of the peer's certificate; `None` in memory, where nobody is authenticated.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.transport.peer().map(|peer| peer.fingerprint)
    }

    /// The same in hexadecimal; empty where nobody is authenticated.
    pub fn peer_fingerprint(&self) -> String {
        self.peer().map(|peer| peer.to_string()).unwrap_or_default()
    }

    /// The common name in the peer's certificate, as its issuer wrote it, if it has one.
    pub fn peer_name(&self) -> Option<&str> {
        self.transport.peer()?.name.as_deref()
    }

    /// The certificates that the peer showed, each in DER, its own first; none in memory.
    pub fn chain(&self) -> &[Vec<u8>] {
        self.transport.peer().map_or(&[], |peer| &peer.chain)
    }

    /// Fails with the error of an earlier call, if there was one.
    fn check(&self) -> Result<(), Error> {
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Remembers a failure, after which the two sides are out of step.
    fn noted<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| {
            let error = if error == Io::Disconnected.into() { self.last_word().unwrap_or(error) } else { error };
            self.failure = Some(error.clone());
            error
        })
    }

    /// Gathers bytes, and writes what has gathered when it is much. The deadline of a message begins with the first of it that
    /// is written.
    fn write(&mut self, mut bytes: &[u8], deadline: &mut Option<Deadline>) -> Result<(), Error> {
        if self.gathered.len() + bytes.len() > GATHER_BYTES {
            let deadline = deadline.get_or_insert_with(|| Deadline::after(self.timeout, TAKING));
            let (now, later) = bytes.split_at(bytes.len().min(GATHER_BYTES - self.gathered.len()));
            self.gathered.extend_from_slice(now);
            let mut written = self.transport.write(&self.gathered, deadline);
            self.gathered.clear();
            bytes = later;
            if written.is_ok() && bytes.len() >= GATHER_BYTES {
                written = self.transport.write(bytes, deadline);
                bytes = &[];
            }
            self.noted(written)?;
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    fn flush_by(&mut self, mut deadline: Deadline) -> Result<(), Error> {
        if !self.gathered.is_empty() {
            let written = self.transport.write(&self.gathered, &mut deadline);
            self.gathered.clear();
            written?;
        }
        self.transport.flush(&mut deadline)
    }

    /// Flushes, waits for the next frame and checks its header. Returns the payload's length.
    fn receive_header(&mut self, due: Due) -> Result<usize, Error> {
        self.flush()?;
        let header = self.read_header(due);
        self.noted(header)
    }

    fn read_header(&mut self, due: Due) -> Result<usize, Error> {
        let mut deadline = Deadline::after(self.timeout, MESSAGE);
        let mut bytes = [0; HEADER_BYTES];
        self.transport.read(&mut bytes, &mut deadline)?;
        let header = Header::from_bytes(bytes)?;
        let actual = header.length as usize;
        match (header.kind, due) {
            (Kind::Abort, _) => Err(self.read_abort(actual, &mut deadline)),
            (Kind::Data, Due::Exactly(expected)) if actual != expected => {
                Err(PeerMisbehaved::WrongLength { expected, actual }.into())
            }
            (Kind::Data, Due::AtMost(limit)) if actual > limit => Err(PeerMisbehaved::TooLong { limit, actual }.into()),
            (Kind::Data, _) => Ok(actual),
        }
    }

    fn receive_payload(&mut self, out: &mut [u8]) -> Result<(), Error> {
        let read = self.transport.read(out, &mut Deadline::after(self.timeout, MESSAGE));
        self.noted(read)?;
        self.cost.bytes_received += (HEADER_BYTES + out.len()) as u64;
        self.cost.messages_received += 1;
        self.cost.rounds += u64::from(self.turned);
        self.turned = false;
        Ok(())
    }

    /// The error that an abort frame of `length` payload bytes stands for.
    fn read_abort(&mut self, length: usize, deadline: &mut Deadline) -> Error {
        let mut payload = [0; 1 + ABORT_TEXT_BYTES];
        match payload.get_mut(..length) {
            Some(payload) => match self.transport.read(payload, deadline) {
                Ok(()) => frame::decode_abort(payload),
                Err(error) => error,
            },
            None => PeerMisbehaved::MalformedAbort { length }.into(),
        }
    }

    /// Looks for an abort frame among what the peer sent before the link went down: it says more than "disconnected".
    fn last_word(&mut self) -> Option<Error> {
        let mut deadline = Deadline::after(self.timeout.min(PARTING_TIMEOUT), MESSAGE);
        let mut skipped = [0; 4096];
        loop {
            let mut bytes = [0; HEADER_BYTES];
            self.transport.read(&mut bytes, &mut deadline).ok()?;
            let header = Header::from_bytes(bytes).ok()?;
            let mut left = header.length as usize;
            if header.kind == Kind::Abort {
                return Some(self.read_abort(left, &mut deadline)).filter(|error| *error != Io::Disconnected.into());
            }
            while left > 0 {
                let part = left.min(skipped.len());
                self.transport.read(&mut skipped[..part], &mut deadline).ok()?;
                left -= part;
            }
        }
    }
}

/// What the deadlines of a conversation wait for.
const MESSAGE: &str = "a message from the peer";
const TAKING: &str = "the peer to take what was sent";

/// The length of the message that is due.
#[derive(Clone, Copy)]
enum Due {
    Exactly(usize),
    AtMost(usize),
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.failure.is_none() {
            // Nobody is left to tell: a peer that misses these bytes will see the link close.
            let _ = self.flush_by(Deadline::after(self.timeout.min(PARTING_TIMEOUT), TAKING));
        }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("peer", &self.peer()).field("cost", &self.cost).finish_non_exhaustive()
    }
}
