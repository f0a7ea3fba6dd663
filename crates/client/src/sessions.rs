//! Sessions with workers between two jobs: the next one need not connect.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use privet_suites::session;

/// How long a session is kept for another job. Workers keep it longer, so that a client's word does not cross theirs.
const IDLE: Duration = Duration::from_secs(10);

/// Whom a session is with: a worker's host and port, and the dealer of its material.
pub(crate) type Peer = (String, u16, Option<String>);

/// Sessions that no job uses.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<(Peer, Instant, session::Client)>>);

impl Sessions {
    /// The session with `peer` that was used last of those that the worker has not ended, if there is one; a wait for any one
    /// message of its next job is bounded by `timeout`. Those that have been idle for long end.
    pub(crate) fn take(&self, peer: &Peer, timeout: Duration) -> Option<session::Client> {
        let mut idle = self.idle();
        idle.retain(|(_, since, _)| since.elapsed() < IDLE);
        while let Some(place) = idle.iter().rposition(|(with, _, _)| with == peer) {
            let (_, _, mut session) = idle.remove(place);
            if session.resume(timeout) {
                return Some(session);
            }
        }
        None
    }

    /// Keeps a session whose job went well.
    pub(crate) fn put(&self, peer: Peer, session: session::Client) {
        self.idle().push((peer, Instant::now(), session));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Peer, Instant, session::Client)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
