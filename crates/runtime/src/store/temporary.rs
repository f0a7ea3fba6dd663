//! Entries that are being written.

use std::io::Write;
use std::path::{Path, PathBuf};

use privet_seal::Writer;

use super::{Metadata, Store, StoreError, io};

/// An entry that is being written; dropped unpublished, it leaves nothing.
pub struct TemporaryEntry {
    store: Store,
    path: PathBuf,
    file: Writer,
    published: bool,
}

impl TemporaryEntry {
    /// An entry in the new file at `path` that `file` writes.
    pub(super) fn new(store: Store, path: PathBuf, file: Writer) -> Self {
        Self { store, path, file, published: false }
    }

    /// Writes the last bytes and publishes the entry.
    ///
    /// # Errors
    /// As [`TemporaryEntry::publish`].
    pub fn finish(mut self, metadata: &Metadata, last: &[u8]) -> Result<(), StoreError> {
        self.write_all(last).map_err(|error| io(&self.path, error))?;
        self.publish(metadata)
    }

    /// Makes the entry ready, durably: when this returns, it survives a crash.
    ///
    /// # Errors
    /// [`StoreError::Spent`] if an entry of this name was ever claimed; [`StoreError::Io`]. The entry is then lost.
    pub fn publish(mut self, metadata: &Metadata) -> Result<(), StoreError> {
        if self.store.spent().join(metadata.id.as_str()).exists() {
            return Err(StoreError::Spent { id: metadata.id.clone() });
        }
        let path = self.store.path(&metadata.id, "material");
        let result = self.sync(&path).and_then(|()| self.store.files.rename(&self.path, &path));
        result.map_err(|error| io(&path, error))?;
        self.published = true;
        let header = serde_json::to_vec(metadata).expect("metadata is plain data");
        let json = self.store.path(&metadata.id, "json");
        // Both names are safe then: they are in one folder.
        self.store.write_whole(&json, |out| out.write_all(&header).map_err(|error| io(&json, error)))
    }

    /// Writes everything to disk, as what `name` will hold, and gives back room that was not used.
    fn sync(&mut self, name: &Path) -> std::io::Result<()> {
        let file = self.file.finish(&self.store.name_of(name))?;
        self.store.files.sync_file(file, &self.path)
    }
}

impl Write for TemporaryEntry {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Drop for TemporaryEntry {
    fn drop(&mut self) {
        if !self.published {
            // Nothing refers to the file; what cannot be removed now is removed when the store is opened again.
            let _ = self.store.files.remove(&self.path);
        }
    }
}
