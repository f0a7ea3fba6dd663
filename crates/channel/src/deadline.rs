//! The moment by which a wait must have ended.

use std::time::{Duration, Instant};

use crate::error::{Error, Io};

/// A message of `n` bytes may take the timeout plus `n` divided by this many bytes per second, so that a large message
/// over a slow link is not cut, and a peer that trickles bytes still cannot hold this side for ever.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 * 1024;

/// When to stop waiting, and for what this side waits (for the error).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    start: Instant,
    allowance: Duration,
    waiting_for: &'static str,
}

impl Deadline {
    /// A deadline `allowance` from now. `waiting_for` completes "waited 3 s for ...".
    pub fn after(allowance: Duration, waiting_for: &'static str) -> Self {
        Self { start: Instant::now(), allowance, waiting_for }
    }

    /// A deadline for moving `bytes` bytes.
    pub fn for_bytes(timeout: Duration, bytes: usize, waiting_for: &'static str) -> Self {
        let transfer = Duration::from_millis(bytes as u64 * 1000 / SLOWEST_BYTES_PER_SECOND);
        Self::after(timeout.saturating_add(transfer), waiting_for)
    }

    /// Time left, or the error that says that there is none.
    pub fn remaining(&self) -> Result<Duration, Error> {
        match self.allowance.checked_sub(self.start.elapsed()) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(Io::TimedOut { seconds: self.allowance.as_secs_f64(), waiting_for: self.waiting_for }.into()),
        }
    }
}
