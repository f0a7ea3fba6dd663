//! Writing a file from front to back.

use std::fs::File;
use std::io::{Error, Result, Seek, SeekFrom, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use privet_prg::Prg;

use crate::key::FileKey;
use crate::{CHUNK, HEADER, MAGIC, StateKey, TAG};

/// Bytes of a plain file that are written at once. Of a megabyte at once Linux makes pages as large, which on a virtual machine took six
/// times as long.
const BLOCK: usize = 1 << 18;

/// Bytes behind which those that were written go to disk while more are written: a fraction of a second's worth.
const SYNC_EVERY: u64 = 1 << 25;

/// A file that is being written; it is complete after [`Writer::finish`], whatever name it gets then.
pub struct Writer {
    file: File,
    buffer: Vec<u8>,
    /// Bytes of plaintext that have left the buffer.
    bytes: u64,
    seal: Option<Seal>,
    sync: Option<EarlySync>,
}

/// A thread that syncs a long file as it grows, so that the last sync has little left to wait for.
struct EarlySync {
    wake: SyncSender<()>,
    thread: JoinHandle<Result<()>>,
}

struct Seal {
    key: StateKey,
    file: FileKey,
    salt: [u8; 32],
    chunks: u64,
}

impl Writer {
    /// Writes to `file`, which is empty or has room that was reserved: sealed if there is a key.
    ///
    /// # Errors
    /// If the file or the system's randomness fails.
    pub fn new(mut file: File, key: Option<&StateKey>) -> Result<Self> {
        let seal = key.map(|key| Seal::new(key.clone())).transpose()?;
        if seal.is_some() {
            file.write_all(&[0; HEADER])?;
        }
        Ok(Self { file, buffer: Vec::new(), bytes: 0, seal, sync: None })
    }

    /// Writes what is left and, in a sealed file, the header for a file called `name`; gives back room that was not used. The
    /// caller syncs. Nothing is written after this.
    ///
    /// # Errors
    /// If the file fails.
    pub fn finish(&mut self, name: &str) -> Result<&File> {
        self.write_block()?;
        self.sync.take().map_or(Ok(()), EarlySync::finish)?;
        let end = self.file.stream_position()?;
        if let Some(seal) = &self.seal {
            let tag = seal.key.tag(&seal.salt, self.bytes, name);
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&[MAGIC, &seal.salt[..], &self.bytes.to_le_bytes(), tag.as_ref()].concat())?;
        }
        self.file.set_len(end)?;
        Ok(&self.file)
    }

    /// The file itself, after [`Writer::finish`].
    pub fn into_file(self) -> File {
        self.file
    }

    /// Writes what is in the buffer, in a sealed file as one chunk.
    fn write_block(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let plain = self.buffer.len() as u64;
        if let Some(seal) = &mut self.seal {
            seal.file.seal(seal.chunks, &mut self.buffer);
            seal.chunks += 1;
        }
        // After an error the file is useless, so nothing is kept for a second attempt.
        let result = self.file.write_all(&self.buffer);
        self.buffer.clear();
        let before = self.bytes;
        self.bytes += plain;
        if before / SYNC_EVERY < self.bytes / SYNC_EVERY {
            self.sync_early();
        }
        result
    }

    /// Lets what was written so far go to disk. Without a thread to spare, all of it goes there at the end.
    fn sync_early(&mut self) {
        let start = || EarlySync::start(self.file.try_clone()?);
        self.sync = self.sync.take().or_else(|| start().ok());
        if let Some(sync) = &self.sync {
            // A thread that is still at it syncs again afterwards, or has failed and says so at the end.
            let _ = sync.wake.try_send(());
        }
    }
}

impl EarlySync {
    fn start(file: File) -> Result<Self> {
        let (wake, woken) = sync_channel(1);
        let sync = move || woken.iter().try_for_each(|()| file.sync_data());
        Ok(Self { wake, thread: thread::Builder::new().name("sync".into()).spawn(sync)? })
    }

    /// Waits for the thread.
    ///
    /// # Errors
    /// What it failed with: the system tells of a failed write once, so whoever syncs next would not hear of it.
    fn finish(self) -> Result<()> {
        drop(self.wake);
        self.thread.join().expect("syncing does not panic")
    }
}

impl Seal {
    fn new(key: StateKey) -> Result<Self> {
        let mut salt = [0; 32];
        Prg::from_os().map_err(Error::other)?.fill(&mut salt);
        Ok(Self { file: key.file(&salt), key, salt, chunks: 0 })
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let block = if self.seal.is_some() { CHUNK } else { BLOCK };
        self.buffer.reserve_exact((block + TAG).saturating_sub(self.buffer.len()));
        let count = bytes.len().min(block - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == block {
            self.write_block()?;
        }
        Ok(count)
    }

    /// Does nothing: a chunk is written when it is full, the last one by [`Writer::finish`].
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
