//! A server's memory limit over all programs and sessions.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::memory;

/// How long a job waits for others to end before its client is told to come back: less than a client waits by default.
const PATIENCE: Duration = Duration::from_secs(100);

/// Memory that a server may use, and how much of it is promised to programs and jobs.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    bytes: u64,
    used: Mutex<Used>,
    changed: Condvar,
}

#[derive(Default)]
struct Used {
    /// By programs, for good.
    resting: u64,
    /// By jobs that run.
    promised: u64,
    /// What the largest job of any program takes.
    largest_job: u64,
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
        Self(Arc::new(Inner { bytes, used: Mutex::default(), changed: Condvar::new() }))
    }

    /// Bytes that programs have left.
    pub fn left(&self) -> u64 {
        self.0.bytes - self.used().resting
    }

    /// Takes in a program that rests on `resting` bytes and whose jobs take up to `job`; whether there is room for it
    /// beside one job of any program taken in before. Nothing changes if there is not.
    pub fn take_in(&self, resting: u64, job: u64) -> bool {
        let mut used = self.used();
        let largest_job = used.largest_job.max(job);
        let fits = used.resting + resting + largest_job <= self.0.bytes;
        if fits {
            used.resting += resting;
            used.largest_job = largest_job;
        }
        fits
    }

    /// Waits until no other job holds these `bytes`; `None` if one does for too long, or programs hold them.
    pub(super) fn promise(&self, bytes: u64) -> Option<Promise> {
        let end = Instant::now() + PATIENCE;
        let mut used = self.used();
        if used.resting + bytes > self.0.bytes {
            return None;
        }
        while used.resting + used.promised + bytes > self.0.bytes {
            let patience = end.checked_duration_since(Instant::now())?;
            (used, _) = self.0.changed.wait_timeout(used, patience).unwrap_or_else(PoisonError::into_inner);
        }
        used.promised += bytes;
        Some(Promise { budget: self.clone(), bytes })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.budget.used().promised -= self.bytes;
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
        let other = budget.clone();
        let waiting = thread::spawn(move || other.promise(all / 2).is_some());
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.join().expect("no panic"));
    }

    #[test]
    fn a_program_that_would_crowd_out_anothers_jobs_is_not_taken_in() {
        let budget = Budget::new(memory::resident() + (1 << 40));
        let all = budget.left();
        assert!(budget.take_in(all / 2, all / 4));
        assert!(!budget.take_in(all / 2, 0));
        assert!(!budget.take_in(0, all));
        assert_eq!(budget.left(), all - all / 2);
        assert!(budget.take_in(all / 8, all / 8));
        assert!(budget.promise(all / 4).is_some());
        assert!(budget.promise(all / 2).is_none());
    }
}
