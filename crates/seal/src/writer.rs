//! Writing a file from front to back.

use std::fs::File;
use std::io::{Error, Result, Seek, SeekFrom, Write};

use privet_prg::Prg;

use crate::key::FileKey;
use crate::{CHUNK, HEADER, MAGIC, StateKey, TAG};

/// Bytes of a plain file that are written at once. Of a megabyte at once Linux makes pages as large, which on a virtual machine took six
/// times as long.
const BLOCK: usize = 1 << 18;

/// A file that is being written; it is complete after [`Writer::finish`], whatever name it gets then.
pub struct Writer {
    file: File,
    buffer: Vec<u8>,
    /// Bytes of plaintext that have left the buffer.
    bytes: u64,
    seal: Option<Seal>,
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
        Ok(Self { file, buffer: Vec::new(), bytes: 0, seal })
    }

    /// Writes what is left and, in a sealed file, the header for a file called `name`; gives back room that was not used. The
    /// caller syncs. Nothing is written after this.
    ///
    /// # Errors
    /// If the file fails.
    pub fn finish(&mut self, name: &str) -> Result<&File> {
        self.write_block()?;
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
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        self.bytes += plain;
        written
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
        let taken = bytes.len().min(block - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == block {
            self.write_block()?;
        }
        Ok(taken)
    }

    /// Does nothing: a chunk is written when it is full, the last one by [`Writer::finish`].
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
