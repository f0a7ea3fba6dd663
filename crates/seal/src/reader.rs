//! Reading a file, from front to back or anywhere.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use crate::key::FileKey;
use crate::{CHUNK, HEADER, MAGIC, StateKey, TAG, sealed_bytes};

/// A file of the store, open for reading. Clones share the file and each have a place of their own.
#[derive(Clone)]
pub struct Stored {
    file: Arc<File>,
    position: u64,
    seal: Option<Seal>,
}

struct Seal {
    key: Arc<FileKey>,
    /// Bytes of plaintext.
    bytes: u64,
    /// The chunk that was opened last, for reads of a few bytes each.
    last: Mutex<Option<(u64, Vec<u8>)>>,
}

impl Stored {
    /// A plain file, from its beginning.
    pub fn plain(file: File) -> Self {
        Self { file: Arc::new(file), position: 0, seal: None }
    }

    /// A file sealed under `key` for the name `name`; without a key, a plain file.
    ///
    /// # Errors
    /// Of kind `InvalidData` if it is not sealed, or under another key or name, or was cut or extended.
    pub fn open(file: File, key: Option<&StateKey>, name: &str) -> Result<Self> {
        let Some(key) = key else { return Ok(Self::plain(file)) };
        let mut header = [0; HEADER];
        let invalid = |problem: &str| Error::new(ErrorKind::InvalidData, problem);
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(invalid("it is not encrypted, or was cut"));
            }
            read => read?,
        }
        let (magic, rest) = header.split_at(MAGIC.len());
        let (salt, rest) = rest.split_first_chunk::<32>().expect("80 bytes");
        let (bytes, tag) = rest.split_first_chunk::<8>().expect("40 bytes");
        let bytes = u64::from_le_bytes(*bytes);
        if magic != MAGIC {
            return Err(invalid("it is not encrypted"));
        }
        if !key.is_tag(salt, bytes, name, tag) {
            return Err(invalid("it was encrypted under another key or name, or was changed"));
        }
        if file.metadata()?.len() != sealed_bytes(bytes) {
            return Err(invalid("it was cut or extended"));
        }
        let seal = Seal { key: Arc::new(key.file(salt)), bytes, last: Mutex::default() };
        Ok(Self { file: Arc::new(file), position: 0, seal: Some(seal) })
    }

    /// Reads some bytes from `offset` on, as [`FileExt::read_at`] does: none at the end.
    ///
    /// # Errors
    /// Of kind `InvalidData` if a chunk was changed.
    pub fn read_at(&self, out: &mut [u8], offset: u64) -> Result<usize> {
        let Some(seal) = &self.seal else { return self.file.read_at(out, offset) };
        let left = usize::try_from(seal.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = out.len().min(left);
        let mut position = 0;
        while position < length {
            let (index, skipped) = place(offset + position as u64);
            position += seal.read(&self.file, index, skipped, &mut out[position..length])?;
        }
        Ok(length)
    }
}

impl Clone for Seal {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), bytes: self.bytes, last: Mutex::default() }
    }
}

impl Seal {
    /// Copies what chunk `index` has behind its first `skipped` bytes into `out`, as much as fits.
    fn read(&self, file: &File, index: u64, skipped: usize, out: &mut [u8]) -> Result<usize> {
        // Whoever comes while another thread holds the last chunk opens one for itself.
        let mut last = self.last.try_lock().ok();
        if let Some(Some((_, plain))) = last.as_deref().map(|last| last.as_ref().filter(|(at, _)| *at == index)) {
            return Ok(copy(&plain[skipped..], out));
        }
        let start = index * CHUNK as u64;
        let bytes = usize::try_from((self.bytes - start).min(CHUNK as u64)).expect("at most a chunk");
        let mut chunk = vec![0; bytes + TAG];
        file.read_exact_at(&mut chunk, HEADER as u64 + index * (CHUNK + TAG) as u64)?;
        let plain = self.key.open(index, &mut chunk).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidData,
                format!("its bytes from {start} on were changed since they were encrypted"),
            )
        })?;
        let copied = copy(&plain[skipped..], out);
        // A chunk that was read to its end is not read again.
        if let (Some(last), true) = (last.as_deref_mut(), skipped + copied < bytes) {
            chunk.truncate(bytes);
            *last = Some((index, chunk));
        }
        Ok(copied)
    }
}

/// The chunk that holds a byte of the plaintext, and how many bytes of the chunk come before it.
fn place(offset: u64) -> (u64, usize) {
    let size = CHUNK as u64;
    (offset / size, usize::try_from(offset % size).expect("less than a chunk"))
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let bytes = from.len().min(to.len());
    to[..bytes].copy_from_slice(&from[..bytes]);
    bytes
}

impl Read for Stored {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = self.read_at(out, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Stored {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let end = match &self.seal {
            Some(seal) => seal.bytes,
            None => self.file.metadata()?.len(),
        };
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => end.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = position.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}
