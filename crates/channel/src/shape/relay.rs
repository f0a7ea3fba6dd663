//! A thread that carries bytes between two sockets as a slower link would.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::line::{Line, capacity};
use crate::error::Error;
use crate::link::Link;
use crate::socket::{Socket, failure, poll_for};

/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 * 1024;

/// How much longer than the link needs a side that leaves waits for its last bytes to be delivered, and the relay for a
/// far side that takes nothing.
const PARTING: Duration = Duration::from_secs(2);

/// A relay at work. Dropping it, after the near socket's other end, waits until what was sent is delivered: the thread
/// would die with the process, and the last words with it.
pub(crate) struct Relay {
    delivered: mpsc::Receiver<()>,
    patience: Duration,
}

impl Relay {
    /// Carries bytes between `near`, a socket in this process, and `far`, the network.
    pub fn start(near: Socket, far: Socket, link: Link) -> Result<Self, Error> {
        let (sender, delivered) = mpsc::channel();
        let courier = Courier {
            near,
            far,
            forth: Line::new(link),
            back: Line::new(link),
            delivering: Some(sender),
            longest: link.latency() + link.transmission(capacity(&link) + READ_BYTES) + PARTING,
            left: None,
        };
        let spawned = thread::Builder::new().name("privet-link".to_owned()).spawn(|| courier.run());
        spawned.map_err(|error| failure("starting a thread for the link", &error))?;
        Ok(Self { delivered, patience: link.latency() + PARTING })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Nothing is ever sent: the channel closes when all is delivered or the far side is gone.
        let _ = self.delivered.recv_timeout(self.patience);
    }
}

/// The thread's state.
struct Courier {
    near: Socket,
    far: Socket,
    /// From near to far.
    forth: Line,
    /// From far to near.
    back: Line,
    delivering: Option<mpsc::Sender<()>>,
    /// How long delivery may take once the near side has left.
    longest: Duration,
    /// When the near side was seen to have closed its socket.
    left: Option<Instant>,
}

impl Courier {
    fn run(mut self) {
        be_punctual();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            self.forth.pass(&mut self.near, &mut self.far, &mut buffer);
            self.back.pass(&mut self.far, &mut self.near, &mut buffer);
            if self.forth.is_done() {
                self.delivering = None;
            }
            let late = self.left.is_some_and(|left| left.elapsed() > self.longest);
            if late || (self.forth.is_done() && self.back.is_done()) || self.wait().is_err() {
                break;
            }
        }
    }

    /// Waits until a socket is ready, a packet is due, or there is nothing left to wait for.
    fn wait(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let blocked = |line: &Line| line.next_due().is_some_and(|due| due <= now);
        let flags = |reading: &Line, writing: &Line| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reading.wants_more());
            flags.set(PollFlags::OUT, blocked(writing));
            flags
        };
        let (near, far) = (flags(&self.forth, &self.back), flags(&self.back, &self.forth));
        let mut sources = Vec::with_capacity(2);
        // The near socket is watched even for nothing: that its other end is closed is always reported.
        let watched = !near.is_empty() || self.left.is_none();
        if watched {
            sources.push(PollFd::new(&self.near, near));
        }
        if !far.is_empty() {
            sources.push(PollFd::new(&self.far, far));
        }
        let dues = [&self.forth, &self.back].map(|line| line.next_due().filter(|due| *due > now));
        let end = self.left.map(|left| left + self.longest);
        let next = dues.into_iter().flatten().chain(end).min();
        poll_for(&mut sources, next.map_or(Duration::MAX, |next| next.saturating_duration_since(now)))?;
        let closed = watched && sources[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        if closed && self.left.is_none() {
            self.left = Some(now);
            self.back.give_up();
        }
        Ok(())
    }
}

/// Lets this thread's timers fire when they are due: by default the kernel may be 50 us late, a third of the way over a
/// local network.
fn be_punctual() {
    #[cfg(target_os = "linux")]
    // Without it the link is a little slower than asked for.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
}
