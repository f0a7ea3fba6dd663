//! Encrypted weights that the client keeps: fetched once, read from front to back at each preparation.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use privet_channel::Channel;
use privet_seal::Stored;

use crate::store::{Evicted, io};
use crate::{Error, Store, StoreError};

/// Bytes in one message.
const CHUNK: usize = 1 << 19;

/// Characters of the name in front.
const NAME: usize = 32;

/// A file: the name of the weights and their key in hexadecimal, then what the server sent. It is sealed, under a public key if the store
/// has none, so that what has changed on the disk is found out.
pub struct KeptWeights {
    file: Stored,
    store: Store,
    path: PathBuf,
}

impl KeptWeights {
    /// The name of what lies in `path`; `None` if nothing does, or not all `bytes` of it.
    pub(super) fn name(store: &Store, path: &Path, bytes: u64) -> Option<String> {
        let mut file = store.checked().open_file(path).ok().flatten()?;
        let whole = file.seek(SeekFrom::End(0)).ok()? == NAME as u64 + bytes;
        let mut name = [0; NAME];
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_exact(&mut name).ok()?;
        String::from_utf8(name.to_vec()).ok().filter(|_| whole)
    }

    /// Receives `bytes` bytes under a name and puts them into `path` of `store`, whole or not at all; what was removed for them.
    pub(super) fn receive(
        channel: &mut Channel,
        bytes: u64,
        name: &str,
        store: &Store,
        path: &Path,
    ) -> Result<Vec<Evicted>, Error> {
        store.checked().write_kept::<Error>(path, NAME as u64 + bytes, |out| {
            out.write_all(name.as_bytes()).map_err(|error| io(path, error))?;
            for chunk in chunks(bytes) {
                out.write_all(&channel.recv(chunk)?).map_err(|error| io(path, error))?;
            }
            Ok(())
        })
    }

    /// Opens what was received under this name. Fails with [`Error::Misuse`] if it has another name or has gone:
    /// another session received other weights meanwhile.
    pub(super) fn open(store: &Store, path: &Path, name: &str) -> Result<Self, Error> {
        let (store, path) = (store.checked(), path.to_owned());
        let text = "another session received other weights of this program meanwhile: prepare again";
        let misfit = || Error::Misuse(text.into());
        let mut file = store.open_file(&path)?.ok_or_else(misfit)?;
        let mut actual = [0; NAME];
        file.read_exact(&mut actual).map_err(|error| io(&path, error))?;
        if actual != name.as_bytes() {
            return Err(misfit());
        }
        Ok(Self { file, store, path })
    }

    /// Removes the file, whose content no server may send, so that the next preparation fetches it anew.
    pub fn reject(&self) -> Result<(), Error> {
        Ok(self.store.forget(&self.path)?)
    }

    /// The next bytes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if they have changed since they came: the file is removed then.
    pub fn read(&mut self, out: &mut [u8]) -> Result<(), Error> {
        let Err(error) = self.file.read_exact(out) else { return Ok(()) };
        match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                self.store.forget(&self.path)?;
                let problem = format!("{error}: it was removed, and the next preparation fetches the weights anew");
                Err(StoreError::Damaged { path: self.path.display().to_string(), problem }.into())
            }
            _ => Err(io(&self.path, error).into()),
        }
    }

    /// Sends what `fill` hands over, of which there are `bytes` bytes, as [`KeptWeights::receive`] reads it; the caller flushes.
    pub(super) fn send(
        channel: &mut Channel,
        bytes: u64,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut chunks, mut waiting) = (chunks(bytes), Vec::with_capacity(CHUNK));
        let mut due = chunks.next();
        fill(&mut |mut part| {
            while let Some(chunk) = due.filter(|_| !part.is_empty()) {
                let (now, later) = part.split_at(part.len().min(chunk - waiting.len()));
                waiting.extend_from_slice(now);
                part = later;
                if waiting.len() == chunk {
                    channel.send(&waiting)?;
                    waiting.clear();
                    due = chunks.next();
                }
            }
            Ok(())
        })
    }
}

/// The lengths of all messages.
fn chunks(bytes: u64) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(CHUNK).map(move |start| (bytes - start).min(CHUNK as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_gone_meanwhile_is_prepared_again_and_no_fault_of_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let result = KeptWeights::open(&store, &directory.path().join("kept/gone"), &"0".repeat(NAME));
        assert!(matches!(result, Err(Error::Misuse(text)) if text.ends_with("prepare again")));
    }
}
