//! The moment by which a wait must have ended.

use std::time::{Duration, Instant};

use crate::error::{Error, Io};

/// A transfer that is slower than this is given up once the time allowed for it is over: a large message over a slow
/// link is not cut, and a peer that trickles bytes still cannot hold this side for ever.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 * 1024;

/// When to stop waiting, and for what this side waits (for the error).
///
/// The time allowed is counted from the start, with a second more for each [`SLOWEST_BYTES_PER_SECOND`] moved; and
/// also from the last byte moved, without more.
#[derive(Debug)]
pub(crate) struct Deadline {
    start: Instant,
    last_moved: Instant,
    allowance: Duration,
    moved: u64,
    waiting_for: &'static str,
}

impl Deadline {
    /// A deadline `allowance` from now. `waiting_for` completes "waited 3 s for ...".
    pub fn after(allowance: Duration, waiting_for: &'static str) -> Self {
        let start = Instant::now();
        Self { start, last_moved: start, allowance, moved: 0, waiting_for }
    }

    /// Puts the deadline off for the `bytes` that have just moved.
    pub fn moved(&mut self, bytes: usize) {
        self.moved += bytes as u64;
        self.last_moved = Instant::now();
    }

    /// Time left, or the error that says that there is none.
    pub fn remaining(&self) -> Result<Duration, Error> {
        let earned = Duration::from_millis(self.moved * 1000 / SLOWEST_BYTES_PER_SECOND);
        let for_all = self.allowance.saturating_add(earned).saturating_sub(self.start.elapsed());
        let for_next = self.allowance.saturating_sub(self.last_moved.elapsed());
        match for_all.min(for_next) {
            Duration::ZERO => {
                Err(Io::TimedOut { seconds: self.start.elapsed().as_secs_f64(), waiting_for: self.waiting_for }.into())
            }
            left => Ok(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn moving_bytes_put_a_deadline_off() {
        let mut deadline = Deadline::after(SHORT, "a test");
        std::thread::sleep(SHORT);
        assert!(matches!(deadline.remaining(), Err(Error::Io(Io::TimedOut { waiting_for: "a test", .. }))));
        deadline.moved(1 << 20);
        assert!(deadline.remaining().expect("time for the next byte") <= SHORT);
        std::thread::sleep(SHORT);
        assert!(deadline.remaining().is_err());
    }

    #[test]
    fn a_trickle_does_not_put_it_off() {
        let mut deadline = Deadline::after(SHORT, "a test");
        std::thread::sleep(SHORT);
        deadline.moved(1);
        assert!(deadline.remaining().is_err());
    }
}
