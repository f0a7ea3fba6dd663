//! Room on disk: a limit on what a store holds, which all processes that share the store keep together.
//!
//! A temporary entry's file has the entry's whole length from its first moment, so whoever adds up the store's files counts also
//! what is still to be written. Under a limit, adding up and creating the file happen under one lock. Nothing else is
//! booked anywhere: a process that dies takes its booking with it as soon as its temporary entry is swept away.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MaterialId, Store, StoreError, io};

/// Makes names of new files differ within this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// The same store, in which entries are refused that would take it beyond `bytes`.
    #[must_use]
    pub fn within(self, bytes: u64) -> Self {
        Self { limit: Some(bytes), ..self }
    }

    /// Bytes of the material here with its metadata, and of kept weights; temporary files count as they were announced.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        // In this order: what comes to be kept is written among the material.
        Ok(self.material_bytes()? + self.kept_bytes()?)
    }

    /// The same without kept weights, which give way to others of their kind, and leave material its room.
    fn material_bytes(&self) -> Result<u64, StoreError> {
        let ready = self.ready();
        let mut bytes = 0;
        for entry in fs::read_dir(&ready).map_err(|error| io(&ready, error))? {
            bytes += length(&entry.map_err(|error| io(&ready, error))?.path())?;
        }
        Ok(bytes)
    }

    /// Bytes on disk of the entry `id`, metadata included; 0 if it is not here.
    pub fn entry_bytes(&self, id: &MaterialId) -> Result<u64, StoreError> {
        Ok(length(&self.path(id, "json"))? + length(&self.path(id, "material"))?)
    }

    /// A new file of `bytes` bytes among the ready entries, if there is room.
    pub(super) fn reserve(&self, bytes: u64) -> Result<(PathBuf, File), StoreError> {
        let Some(limit) = self.limit else { return self.partial(bytes) };
        let lock = self.lock_room()?;
        if self.material_bytes()?.saturating_add(bytes) > limit {
            return Err(self.full(bytes, limit));
        }
        let reserved = self.partial(bytes);
        drop(lock);
        reserved
    }

    /// While the file is open, nobody else adds up what is here and takes room.
    pub(super) fn lock_room(&self) -> Result<File, StoreError> {
        let path = self.root.join("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| io(&path, error))
    }

    pub(super) fn full(&self, needed: u64, limit: u64) -> StoreError {
        StoreError::Full { store: self.root.display().to_string(), needed, limit }
    }

    /// A new file of `bytes` bytes that its owner alone may read, locked for as long as it is open: a file of this kind
    /// without a lock was left by a crash.
    pub(super) fn partial(&self, bytes: u64) -> Result<(PathBuf, File), StoreError> {
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = self.ready().join(format!("{}-{number}.partial", process::id()));
            match self.locked(&path).and_then(|file| file.map(|file| file.set_len(bytes).map(|()| file)).transpose()) {
                Ok(Some(file)) => return Ok((path, file)),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io(&path, error)),
            }
        }
    }

    /// Creates and locks a file; `None` if it was swept away before it was locked.
    fn locked(&self, path: &Path) -> std::io::Result<Option<File>> {
        let file = self.files.create(path)?;
        file.lock()?;
        Ok(is_at(&file, path).then_some(file))
    }
}

/// Whether `file` is still what lies at `path`.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    matches!((file.metadata(), fs::metadata(path)), (Ok(one), Ok(other)) if one.ino() == other.ino())
}

/// Length of a file; 0 if it has gone.
pub(super) fn length(path: &Path) -> Result<u64, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(io(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::tests::metadata_of;
    use super::*;

    #[test]
    fn temporary_entries_count_from_the_start_and_give_back_what_they_did_not_use() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap().within(1000);
        let entry = store.begin(700).unwrap();
        assert_eq!(store.bytes().unwrap(), 700);
        assert!(matches!(store.begin(301), Err(StoreError::Full { needed: 301, limit: 1000, .. })));
        drop(store.begin(300).unwrap());
        entry.finish(&metadata_of(1), b"secret").unwrap();
        let used = store.bytes().unwrap();
        assert!(used > 6 && used < 300, "{used}");
        assert_eq!(store.entries().unwrap()[0].bytes, used);
        assert_eq!(store.entry_bytes(&metadata_of(1).id).unwrap(), used);
        assert_eq!(store.entry_bytes(&metadata_of(2).id).unwrap(), 0);
        store.begin(1000 - used).unwrap();
        store.claim(&metadata_of(1).id).unwrap();
        assert_eq!(store.bytes().unwrap(), 0);
    }

    #[test]
    fn many_temporary_entries_at_once_do_not_overshoot() {
        let directory = tempfile::tempdir().unwrap();
        let entries: Vec<_> = thread::scope(|scope| {
            // Each with a store of its own, as processes have.
            let open = || Store::open(directory.path()).unwrap().within(1000).begin(300);
            let asked: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
            asked.into_iter().filter_map(|entry| entry.join().unwrap().ok()).collect()
        });
        assert_eq!(entries.len(), 3);
    }
}
