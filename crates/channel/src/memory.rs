//! Two parties in one process: a pair of unbounded queues.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::channel::Channel;
use crate::deadline::Deadline;
use crate::error::{Error, Io};
use crate::transport::Transport;

/// The most bytes per chunk: small enough that the allocator hands the memory of read chunks out again.
const CHUNK_BYTES: usize = 1 << 20;

/// Two connected channels in memory, for tests and for two parties in one process. They carry no authentication.
pub fn pair() -> (Channel, Channel) {
    let (a, b) = link();
    (Channel::new(Box::new(a)), Channel::new(Box::new(b)))
}

/// The two ends of a link in memory.
pub(crate) fn link() -> (Memory, Memory) {
    let forth = Arc::new(Pipe::default());
    let back = Arc::new(Pipe::default());
    let a = Memory { outgoing: forth.clone(), incoming: back.clone(), current: Vec::new(), position: 0 };
    let b = Memory { outgoing: back, incoming: forth, current: Vec::new(), position: 0 };
    (a, b)
}

/// One end of a link in memory.
pub(crate) struct Memory {
    outgoing: Arc<Pipe>,
    incoming: Arc<Pipe>,
    /// The chunk being read, and how much of it is read.
    current: Vec<u8>,
    position: usize,
}

/// One direction: chunks of bytes in order.
#[derive(Default)]
struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Vec<u8>>,
    closed: bool,
}

impl Pipe {
    /// A thread that panicked elsewhere cannot leave the queue half changed, so its poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn push(&self, bytes: Vec<u8>) -> Result<(), Error> {
        let mut state = self.lock();
        if state.closed {
            return Err(Io::Disconnected.into());
        }
        state.chunks.push_back(bytes);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn pop(&self, deadline: &Deadline) -> Result<Vec<u8>, Error> {
        let mut state = self.lock();
        loop {
            if let Some(bytes) = state.chunks.pop_front() {
                return Ok(bytes);
            }
            if state.closed {
                return Err(Io::Disconnected.into());
            }
            let left = deadline.remaining()?;
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Transport for Memory {
    fn write(&mut self, bytes: &[u8], _: &mut Deadline) -> Result<(), Error> {
        bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| self.outgoing.push(chunk.to_vec()))
    }

    fn flush(&mut self, _: &mut Deadline) -> Result<(), Error> {
        Ok(())
    }

    fn read(&mut self, mut out: &mut [u8], deadline: &mut Deadline) -> Result<(), Error> {
        while !out.is_empty() {
            let unread = &self.current[self.position..];
            if unread.is_empty() {
                self.current = self.incoming.pop(deadline)?;
                self.position = 0;
                continue;
            }
            let count = unread.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&unread[..count]);
            self.position += count;
            out = later;
            deadline.moved(count);
        }
        Ok(())
    }

    fn close(&mut self) {
        self.outgoing.close();
        self.incoming.close();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.close();
    }
}
