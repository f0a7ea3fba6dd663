//! How an entry is handed out once: held, marked as spent, opened when its marker is safe, and removed.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use privet_seal::Stored;

use super::{MaterialId, Store, StoreError, io};

/// From one look at an entry that somebody holds to the next.
const LOOK: Duration = Duration::from_millis(1);

impl Store {
    /// Spends the entry `id` and opens it for this one reading. After this returns, or fails later than its first step, no
    /// call will ever return the entry again; its files are gone when the reader is.
    ///
    /// # Errors
    /// [`StoreError::Spent`] if it was claimed before; [`StoreError::Missing`] if it was never here.
    pub fn claim(&self, id: &MaterialId) -> Result<Stored, StoreError> {
        Ok(self.mark(id)?.open()?.0)
    }

    /// Marks the entry `id` as spent: no call will ever return it again, but for a power loss before [`Marked::open`] returns.
    ///
    /// # Errors
    /// As [`Store::claim`].
    pub(crate) fn mark(&self, id: &MaterialId) -> Result<Marked, StoreError> {
        let material = self.open_entry(id)?;
        // Tells whoever sweeps that this claim is alive.
        material.lock_shared().map_err(|error| io(&self.path(id, "material"), error))?;
        self.mark_open(id, material)
    }

    /// Keeps the entry `id` for this caller, who may claim it or leave it: meanwhile no other process that shares the store
    /// gets hold of it.
    ///
    /// # Errors
    /// As [`Store::claim`]; [`StoreError::Held`] if somebody else holds it for longer than `patience`. Who made an entry holds it
    /// until its name is safe on the disk, and others may see it a moment earlier.
    pub(crate) fn hold(&self, id: &MaterialId, patience: Duration) -> Result<Held, StoreError> {
        let (material, marker) = (self.open_entry(id)?, self.spent().join(id.as_str()));
        let limit = Instant::now() + patience;
        loop {
            let locked = material.try_lock();
            if marker.exists() {
                return Err(StoreError::Spent { id: id.clone() });
            }
            match locked {
                Ok(()) => return Ok(Held { store: self.clone(), id: id.clone(), material }),
                Err(TryLockError::WouldBlock) if Instant::now() < limit => sleep(LOOK),
                Err(TryLockError::WouldBlock) => return Err(StoreError::Held { id: id.clone() }),
                Err(TryLockError::Error(error)) => return Err(io(&self.path(id, "material"), error)),
            }
        }
    }

    fn open_entry(&self, id: &MaterialId) -> Result<File, StoreError> {
        let (path, marker) = (self.path(id, "material"), self.spent().join(id.as_str()));
        File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound if marker.exists() => StoreError::Spent { id: id.clone() },
            ErrorKind::NotFound => self.missing(id),
            _ => io(&path, error),
        })
    }

    fn mark_open(&self, id: &MaterialId, material: File) -> Result<Marked, StoreError> {
        let marker = self.spent().join(id.as_str());
        let file = self.files.create(&marker).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => StoreError::Spent { id: id.clone() },
            _ => io(&marker, error),
        })?;
        Ok(Marked { store: self.clone(), id: id.clone(), material, marker: (marker, file) })
    }
}

/// An entry that its holder may claim, and nobody else until this is dropped.
pub(crate) struct Held {
    store: Store,
    id: MaterialId,
    material: File,
}

impl Held {
    /// As [`Store::mark`], then [`Marked::open`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn claim(self) -> Result<(Stored, Removal), StoreError> {
        self.store.mark_open(&self.id, self.material)?.open()
    }
}

/// An entry with a spent marker that a power loss may still take away: nothing of it was read.
pub(crate) struct Marked {
    store: Store,
    id: MaterialId,
    material: File,
    marker: (PathBuf, File),
}

impl Marked {
    /// Opens the entry for its one reading, once its marker is safe on the disk; its files are gone when the second is dropped.
    /// The marker and its name are synced side by side, as each waits for the disk.
    ///
    /// # Errors
    /// If the marker does not become safe, or the entry cannot be read: it is spent all the same.
    pub(crate) fn open(self) -> Result<(Stored, Removal), StoreError> {
        let Self { store, id, material, marker: (marker, file) } = self;
        let sync = || store.files.sync_file(&file, &marker).map_err(|error| io(&marker, error));
        thread::scope(|scope| {
            let beside = thread::Builder::new().spawn_scoped(scope, sync);
            store.sync(&store.spent())?;
            beside.map_or_else(|_| sync(), |thread| thread.join().expect("a sync does not panic"))
        })?;
        let path = store.path(&id, "material");
        let material = store.unseal(&path, material);
        let removal = Removal::begin(store.clone(), [path, store.path(&id, "json")]);
        Ok((material?, removal))
    }
}

/// The removal of a spent entry's files while the caller goes on, which has been done when this is dropped.
pub(crate) struct Removal(Option<JoinHandle<()>>);

impl Removal {
    /// Of the files at `paths`. What is left of them is swept away: their marker says so.
    fn begin(store: Store, paths: [PathBuf; 2]) -> Self {
        let remove = move || paths.iter().for_each(|path| drop(store.remove(path)));
        let thread = thread::Builder::new().spawn(remove.clone());
        // Where no thread can be had, it is done at once.
        Self(thread.map_err(|_| remove()).ok())
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Files that a panic left are swept away, as above.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use super::super::files::{Disk, Files};
    use super::super::tests::metadata_of;
    use super::*;

    #[test]
    fn a_claim_that_runs_has_its_marker_at_once_and_leaves_no_file_in_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = metadata_of(1);
        store.put(&first, b"secret").unwrap();
        let (file, removal) = store.mark(&first.id).unwrap().open().unwrap();
        assert!(store.spent().join(first.id.as_str()).exists());
        assert_eq!(std::io::read_to_string(file).unwrap(), "secret");
        drop(removal);
        assert_eq!(fs::read_dir(store.ready()).unwrap().count(), 0);
    }

    /// A disk on which markers do not become safe: they themselves, or their names.
    #[derive(Debug)]
    struct Unsafe {
        names: bool,
    }

    impl Files for Unsafe {
        fn sync_file(&self, file: &File, path: &Path) -> std::io::Result<()> {
            match !self.names && path.parent().is_some_and(|folder| folder.ends_with("spent")) {
                true => Err(ErrorKind::StorageFull.into()),
                false => Disk.sync_file(file, path),
            }
        }

        fn sync_folder(&self, path: &Path) -> std::io::Result<()> {
            match self.names && path.ends_with("spent") && fs::read_dir(path)?.next().is_some() {
                true => Err(ErrorKind::StorageFull.into()),
                false => Disk.sync_folder(path),
            }
        }
    }

    #[test]
    fn a_claim_whose_marker_is_not_safe_gives_nothing_and_spends_the_entry() {
        for names in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open_on(Arc::new(Unsafe { names }), directory.path().into(), None).unwrap();
            let first = metadata_of(1);
            store.put(&first, b"secret").unwrap();
            assert!(matches!(store.claim(&first.id), Err(StoreError::Io { .. })), "names {names}");
            assert!(matches!(store.claim(&first.id), Err(StoreError::Spent { .. })), "names {names}");
            let store = Store::open(directory.path()).unwrap();
            assert!(matches!(store.claim(&first.id), Err(StoreError::Spent { .. })), "names {names}");
            assert_eq!(fs::read_dir(store.ready()).unwrap().count(), 0, "names {names}");
        }
    }

    /// A disk on which markers become safe once `ready` is locked no more.
    #[derive(Debug, Default)]
    struct Slow {
        ready: Mutex<()>,
    }

    impl Files for Slow {
        fn sync_file(&self, file: &File, path: &Path) -> std::io::Result<()> {
            drop(self.ready.lock().unwrap());
            Disk.sync_file(file, path)
        }
    }

    #[test]
    fn a_marked_entry_is_spent_at_once_and_opened_when_its_marker_is_safe() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Slow::default());
        let store = Store::open_on(Arc::clone(&disk) as _, directory.path().into(), None).unwrap();
        let id = metadata_of(1).id;
        store.put(&metadata_of(1), b"secret").unwrap();
        let waits = disk.ready.lock().unwrap();
        let marked = store.mark(&id).unwrap();
        assert!(matches!(store.mark(&id), Err(StoreError::Spent { .. })));
        thread::scope(|scope| {
            let opened = scope.spawn(|| marked.open());
            sleep(Duration::from_millis(50));
            assert!(!opened.is_finished());
            drop(waits);
            let (file, _removal) = opened.join().unwrap().unwrap();
            assert_eq!(std::io::read_to_string(file).unwrap(), "secret");
        });
    }

    #[test]
    fn an_entry_that_its_maker_still_holds_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let id = metadata_of(1).id;
        store.put(&metadata_of(1), b"secret").unwrap();
        // As the maker's own lock, while the entry can be seen already.
        let maker = File::open(store.path(&id, "material")).unwrap();
        maker.lock().unwrap();
        assert!(matches!(store.hold(&id, Duration::ZERO), Err(StoreError::Held { .. })));
        std::thread::scope(|scope| {
            let hold = scope.spawn(|| store.hold(&id, Duration::from_secs(60)).map(drop));
            sleep(Duration::from_millis(50));
            drop(maker);
            hold.join().unwrap().unwrap();
        });
        // Nobody waits for what was claimed.
        let reader = store.claim(&id).unwrap();
        assert!(matches!(store.hold(&id, Duration::from_secs(60)), Err(StoreError::Spent { .. })));
        drop(reader);
    }

    #[test]
    fn of_many_claims_at_once_one_wins() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for round in 0..20 {
            let metadata = metadata_of(round);
            store.put(&metadata, b"secret").unwrap();
            let wins = std::thread::scope(|scope| {
                let claims: Vec<_> = (0..8).map(|_| scope.spawn(|| store.claim(&metadata.id).is_ok())).collect();
                claims.into_iter().map(|claim| claim.join().unwrap()).filter(|won| *won).count()
            });
            assert_eq!(wins, 1);
        }
    }
}
