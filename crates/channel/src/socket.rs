//! A TCP socket that never blocks, and bounded waits for it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::deadline::Deadline;
use crate::error::{Error, Io};

/// How long a closing side keeps taking in what the peer still sends, so that the peer gets to read the last word.
const LINGER: Duration = Duration::from_secs(1);

/// A connected, non-blocking socket: TCP without Nagle's delay, or one end of a pair in this process, which the type
/// serves as well because the calls are the same for all streams.
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub fn new(stream: TcpStream) -> Result<Self, Error> {
        let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
        prepared.map_err(|error| failure("preparing a socket", &error))?;
        Ok(Self(stream))
    }

    /// Two connected sockets in this process.
    pub fn pair() -> Result<(Self, Self), Error> {
        let local = |stream: UnixStream| -> io::Result<Self> {
            stream.set_nonblocking(true)?;
            Ok(Self(OwnedFd::from(stream).into()))
        };
        UnixStream::pair()
            .and_then(|(a, b)| Ok((local(a)?, local(b)?)))
            .map_err(|error| failure("making a pair of sockets", &error))
    }

    /// Reads what is there into `out`; `None` if nothing is there yet, `Some(0)` if the peer will send nothing more.
    pub fn read(&mut self, out: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            return match self.0.read(out) {
                Ok(count) => Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if is_disconnection(&error) => Ok(Some(0)),
                Err(error) => Err(failure("reading from the network", &error)),
            };
        }
    }

    /// Lets `write` put bytes on the socket; returns how many, `None` if it can take none now.
    pub fn write(
        &mut self,
        mut write: impl FnMut(&mut dyn Write) -> io::Result<usize>,
    ) -> Result<Option<usize>, Error> {
        loop {
            return match write(&mut self.0) {
                Ok(count) => Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if is_disconnection(&error) => Err(Io::Disconnected.into()),
                Err(error) => Err(failure("writing to the network", &error)),
            };
        }
    }

    /// Waits until the socket can be read from (if `read`) or written to (if `write`), or has failed. Returns whether
    /// a read is worth trying.
    pub fn wait(&self, read: bool, write: bool, deadline: &Deadline) -> Result<bool, Error> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, read);
        flags.set(PollFlags::OUT, write);
        let ready = wait_for(&self.0, flags, deadline)?;
        Ok(read && ready.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP))
    }

    /// Whether there is nothing to read: no byte, no end and no failure.
    pub fn is_quiet(&self) -> bool {
        matches!(poll_for(&mut [PollFd::new(&self.0, PollFlags::IN)], Duration::ZERO), Ok(false))
    }

    /// Tells the peer that nothing more comes.
    pub fn end_sending(&self) {
        // A peer that is gone needs not be told.
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// Takes nothing more; the other end of a pair is told when it writes.
    pub fn end_receiving(&self) {
        // As above.
        let _ = self.0.shutdown(Shutdown::Read);
    }

    /// What ends both directions from another thread.
    pub fn stopper(&self) -> Result<Stopper, Error> {
        self.0.try_clone().map(Stopper).map_err(|error| failure("sharing a socket", &error))
    }

    /// Ends the sending side, takes in and forgets what the peer still sends for a second at most, then ends it all.
    ///
    /// Closing a socket with unread bytes resets the connection, and a reset may overtake the last word.
    pub fn close(&mut self) {
        if self.0.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let deadline = Deadline::after(LINGER, "the peer to close");
        let mut forgotten = vec![0; 64 * 1024];
        loop {
            match self.read(&mut forgotten) {
                Ok(Some(0)) | Err(_) => break,
                Ok(Some(_)) if deadline.remaining().is_ok() => {}
                Ok(Some(_)) => break,
                Ok(None) if self.wait(true, false, &deadline).is_ok() => {}
                Ok(None) => break,
            }
        }
        // The peer may have closed first; either way the link is down now.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Ends a channel from another thread than the one that waits on it.
pub struct Stopper(TcpStream);

impl Stopper {
    /// Ends both directions: whatever waits for the channel, or uses it later, fails as if the peer had left.
    pub fn stop(&self) {
        // A link that is down already needs no end.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `source` is ready for one of `flags`, or has failed.
pub(crate) fn wait_for(source: &impl AsFd, flags: PollFlags, deadline: &Deadline) -> Result<PollFlags, Error> {
    loop {
        let mut sources = [PollFd::new(source, flags)];
        if poll_for(&mut sources, deadline.remaining()?)? {
            return Ok(sources[0].revents());
        }
    }
}

/// Waits until one of `sources` is ready or has failed, until `limit` has passed, or less; whether one is ready.
pub(crate) fn poll_for(sources: &mut [PollFd<'_>], limit: Duration) -> Result<bool, Error> {
    // A wait too long for the system's clock is cut to an hour.
    let limit = limit.min(Duration::from_secs(3600));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    match poll(sources, Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(failure("waiting for the network", &errno.into())),
    }
}

/// The error for a failure of the operating system.
pub(crate) fn failure(doing: &'static str, error: &io::Error) -> Error {
    Io::System { doing, problem: error.to_string() }.into()
}

fn is_disconnection(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof};
    // TimedOut here is the kernel's: the peer's machine answers no more.
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | UnexpectedEof)
}
