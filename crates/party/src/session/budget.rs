//! A server's memory limit over all programs and sessions.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::memory;

/// How long a job waits for others to end before its client is told to come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// Memory that a server may use, and how much of it is promised to programs and jobs.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    bytes: u64,
    promised: Mutex<u64>,
    changed: Condvar,
}

/// Bytes that a job may use until this is dropped.
pub(super) struct Promise {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    /// What `limit` bytes of resident memory leave beside what this process has now.
    pub fn new(limit: u64) -> Self {
        let bytes = limit.saturating_sub(memory::resident());
        Self(Arc::new(Inner { bytes, promised: Mutex::new(0), changed: Condvar::new() }))
    }

    /// Bytes that nobody was promised.
    pub fn left(&self) -> u64 {
        self.0.bytes - *self.promised()
    }

    /// Gives away `bytes` for good, or nothing if fewer are left.
    pub(super) fn spend(&self, bytes: u64) {
        let mut promised = self.promised();
        *promised = self.0.bytes.min(*promised + bytes);
    }

    /// Waits until `bytes` are left; `None` if they are not within a minute.
    pub(super) fn promise(&self, bytes: u64) -> Option<Promise> {
        let end = Instant::now() + PATIENCE;
        let mut promised = self.promised();
        while self.0.bytes - *promised < bytes {
            let left = end.checked_duration_since(Instant::now())?;
            (promised, _) = self.0.changed.wait_timeout(promised, left).unwrap_or_else(PoisonError::into_inner);
        }
        *promised += bytes;
        Some(Promise { budget: self.clone(), bytes })
    }

    fn promised(&self) -> MutexGuard<'_, u64> {
        self.0.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        *self.budget.promised() -= self.bytes;
        self.budget.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn jobs_wait_for_memory_that_others_hold() {
        let budget = Budget::new(memory::resident() + (1 << 40));
        let all = budget.left();
        let first = budget.promise(all).expect("all is left");
        assert_eq!(budget.left(), 0);
        let other = budget.clone();
        let waiting = thread::spawn(move || other.promise(all / 2).is_some());
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.join().expect("no panic"));
        assert_eq!(budget.left(), all);
    }

    #[test]
    fn what_is_spent_does_not_come_back() {
        let budget = Budget::new(memory::resident() + (1 << 40));
        let all = budget.left();
        budget.spend(100);
        drop(budget.promise(1));
        assert_eq!(budget.left(), all - 100);
        budget.spend(u64::MAX / 2);
        assert_eq!(budget.left(), 0);
    }
}
