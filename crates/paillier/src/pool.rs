//! Noise made ahead, in the background.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::arch::LANES;
use crate::error::Error;
use crate::keys::PublicKey;
use crate::lanes::Residues;
use crate::noise::{Noise, NoiseTable};

/// A thread that keeps noise ready, up to a capacity. Dropping the pool ends it.
pub struct NoisePool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    key: PublicKey,
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    ready: Noise,
    closed: bool,
    /// What ended the thread.
    failure: Option<Error>,
}

impl NoisePool {
    /// Starts a thread that makes a [`NoiseTable`] and then keeps noise for `capacity` ciphertexts, of
    /// [`crate::KeySize::ciphertext_bytes`] and a fifth each in memory.
    pub fn new(key: &PublicKey, capacity: usize) -> Self {
        let ready = Noise::new(key, Residues::zero(key.modulus().limbs(), 0));
        let state = Mutex::new(State { ready, closed: false, failure: None });
        let capacity = capacity.max(LANES);
        let shared = Arc::new(Shared { key: key.clone(), capacity, state, changed: Condvar::new() });
        let thread = Some(std::thread::spawn({
            let shared = shared.clone();
            move || shared.run()
        }));
        Self { shared, thread }
    }

    /// Noise that is ready now.
    pub fn ready(&self) -> usize {
        self.shared.lock().ready.len()
    }

    /// Noise for `count` ciphertexts; waits for what is not ready.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the key shares a factor with a random number, [`Error::Io`] if the operating system gave no
    /// entropy; the pool makes no more then.
    pub fn take(&self, count: usize) -> Result<Noise, Error> {
        let mut taken = Noise::new(&self.shared.key, Residues::zero(self.shared.key.modulus().limbs(), 0));
        let mut state = self.shared.lock();
        loop {
            let some = state.ready.len().min(count - taken.len());
            taken.append(state.ready.split_off(some)?)?;
            self.shared.changed.notify_all();
            if taken.len() == count {
                return Ok(taken);
            }
            if let Some(failure) = &state.failure {
                return Err(match failure {
                    Error::Io(privet_prg::Error::Io(error)) => privet_prg::Error::Io(*error).into(),
                    Error::PeerMisbehaved(problem) => problem.clone().into(),
                    Error::Misuse(problem) => problem.clone().into(),
                });
            }
            state = self.shared.wait(state);
        }
    }
}

impl Drop for NoisePool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing left to undo here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        if let Err(error) = self.fill() {
            self.lock().failure = Some(error);
            self.changed.notify_all();
        }
    }

    /// Draws a vector at a time until the pool is dropped.
    fn fill(&self) -> Result<(), Error> {
        let table = NoiseTable::new(&self.key)?;
        loop {
            let mut state = self.lock();
            while !state.closed && state.ready.len() + LANES > self.capacity {
                state = self.wait(state);
            }
            if state.closed {
                return Ok(());
            }
            drop(state);
            let drawn = table.draw(LANES)?;
            self.lock().ready.append(drawn)?;
            self.changed.notify_all();
        }
    }
}
