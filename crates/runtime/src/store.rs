//! The material store: a directory that hands each material entry out once, ever.
//!
//! A claim creates a spent marker: a file with `O_EXCL`, whose folder is synced before the first byte of the material is
//! read. Whatever happens after (crash, error, retry, power loss) the marker stays, so the material is spent. Both parties
//! keep a store and claim the same id, so a store that was copied or rolled back on one side is caught by the other.
//!
//! Folders: `ready` (temporary files `*.partial`, and of each entry `ID.material` and `ID.json`), `spent` (a marker for each
//! entry that was claimed), `setups` ([`setups`]), `secrets`, `hidden`, `kept`, `base` ([`base_ots`]). Opening a store makes them all and
//! syncs what lists them: markers in a folder that a power loss takes away would mark nothing.
//!
//! A store may be [sealed](privet_seal) under its owner's key; then so are all its files but markers and locks, each under its path
//! in the store as its name, and `sealed` tells whether a key is the store's.
//!
//! What touches files can fail with [`StoreError::Io`], and what reads them with [`StoreError::Damaged`], too.

mod base_ots;
mod claim;
mod entry;
mod error;
mod files;
mod kept;
#[cfg(test)]
mod power_loss;
mod room;
mod seal;
mod seeds;
mod setups;
mod sweep;
mod temporary;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use privet_prg::{Prg, Seed};
pub use privet_seal::StateKey;
use privet_seal::Writer;

use crate::Error;
pub(crate) use claim::Held;
pub use entry::{MaterialId, Metadata, StoreEntry};
pub use error::StoreError;
use files::{Disk, Files};
pub use kept::Evicted;
pub use seeds::{SetupSeeds, setup_proof};
pub use setups::{KeptSetup, SetupEntry, Setups};
pub use temporary::TemporaryEntry;

/// A directory of unused material and of markers of used material.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    files: Arc<dyn Files>,
    /// Most bytes of material.
    limit: Option<u64>,
    /// What the files are sealed under.
    key: Option<StateKey>,
}

impl Store {
    /// Opens the store in `root`, which is created if need be, readable by its owner only; what a crash left half done
    /// is removed.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Key`] if the store is encrypted.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_on(Arc::new(Disk), root.into(), None)
    }

    /// As [`Store::open`], of a store whose files are encrypted under `key`, if there is one; a new store is from its beginning.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Key`] if the store is encrypted under another key, or not encrypted, or is and there is none.
    pub fn open_with(root: impl Into<PathBuf>, key: Option<StateKey>) -> Result<Self, StoreError> {
        Self::open_on(Arc::new(Disk), root.into(), key)
    }

    fn open_on(files: Arc<dyn Files>, root: PathBuf, key: Option<StateKey>) -> Result<Self, StoreError> {
        let store = Self { root, files, limit: None, key };
        store.make_root(&store.root)?;
        for name in ["ready", "spent", "setups", "secrets", "hidden", "kept", "base"] {
            store.make_folder(&store.root.join(name))?;
        }
        // Whoever made them may not have come to this yet.
        store.sync(&store.root)?;
        store.check_key()?;
        store.sweep();
        store.sweep_setups();
        Ok(store)
    }

    /// The store's own folder and those above it, as far as there are none; each is safe in the one above.
    fn make_root(&self, path: &Path) -> Result<(), StoreError> {
        let above = match path.parent() {
            Some(above) if above.as_os_str().is_empty() => Path::new("."),
            Some(above) => above,
            None => return Ok(()),
        };
        if !above.is_dir() {
            self.make_root(above)?;
        }
        self.make_folder(path)?;
        // A folder that this user may not read cannot be opened, so not synced either; without the store nothing is used twice.
        match self.files.sync_folder(above) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
            synced => synced.map_err(|error| io(above, error)),
        }
    }

    /// Begins an entry of at most `bytes` bytes, metadata included, which is nothing until it is published.
    ///
    /// # Errors
    /// [`StoreError::Full`] if it would take the store beyond its limit; [`StoreError::Io`].
    pub fn begin(&self, bytes: u64) -> Result<TemporaryEntry, StoreError> {
        let (path, file) = self.reserve(self.stored_bytes(bytes))?;
        let file = Writer::new(file, self.key.as_ref()).map_err(|error| io(&path, error))?;
        Ok(TemporaryEntry::new(self.clone(), path, file))
    }

    /// Adds an entry, durably: when this returns, it survives a crash.
    ///
    /// # Errors
    /// As [`Store::begin`] and [`TemporaryEntry::finish`].
    pub fn put(&self, metadata: &Metadata, material: &[u8]) -> Result<(), StoreError> {
        self.begin(material.len() as u64)?.finish(metadata, material)
    }

    /// The entries that are ready, in order of their ids.
    pub fn list(&self) -> Result<Vec<Metadata>, StoreError> {
        Ok(self.entries()?.into_iter().map(|entry| entry.metadata).collect())
    }

    /// The entries that are ready, with their sizes and ages, in order of their ids.
    pub fn entries(&self) -> Result<Vec<StoreEntry>, StoreError> {
        let ready = self.ready();
        let files = fs::read_dir(&ready).map_err(|error| io(&ready, error))?;
        let mut entries = Vec::new();
        for file in files {
            let path = file.map_err(|error| io(&ready, error))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                entries.extend(self.read_entry(&path)?);
            }
        }
        entries.retain(|entry| !self.spent().join(entry.metadata.id.as_str()).exists());
        entries.sort_by(|a, b| a.metadata.id.cmp(&b.metadata.id));
        Ok(entries)
    }

    /// What the entry `id` is for, without spending it.
    ///
    /// # Errors
    /// [`StoreError::Spent`], [`StoreError::Missing`], [`StoreError::Damaged`] or [`StoreError::Io`].
    pub fn metadata(&self, id: &MaterialId) -> Result<Metadata, StoreError> {
        if self.spent().join(id.as_str()).exists() {
            return Err(StoreError::Spent { id: id.clone() });
        }
        self.read_metadata(&self.path(id, "json"))?.ok_or_else(|| self.missing(id))
    }

    /// Where files of this name lie beside the material.
    pub fn below(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A secret of the store's owner that outlives the process; drawn when it is first asked for. Fails with
    /// [`StoreError::Io`], or [`StoreError::Damaged`] for a file that is no secret.
    fn secret(&self, name: &str) -> Result<Seed, Error> {
        let path = self.root.join("secrets").join(name);
        if !path.exists() {
            let seed = Prg::from_os()?.seed();
            // The first one to link wins, whoever else draws at the same time.
            match self.write_once(&path, |out| out.write_all(seed.as_bytes()).map_err(|error| io(&path, error))) {
                Err(StoreError::Io { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {}
                result => result?,
            }
        }
        let bytes = self.read_file(&path)?.ok_or_else(|| io(&path, ErrorKind::NotFound.into()))?;
        let seed = <[u8; 16]>::try_from(bytes).map_err(|bytes| StoreError::Damaged {
            path: path.display().to_string(),
            problem: format!("it has {} bytes", bytes.len()),
        })?;
        Ok(Seed::from_bytes(seed))
    }

    /// The secret that hides the weights of a program.
    pub fn weight_mask(&self, program: &str) -> Result<Seed, Error> {
        self.secret(&format!("weight-mask-{program}"))
    }

    /// Where the hidden weights of a program of a peer lie, if they were received.
    pub(crate) fn hidden_weights(&self, program: &str, peer: &str) -> PathBuf {
        self.root.join("hidden").join(format!("{program}-{peer}"))
    }

    /// Writes a file by `fill`, in place of one that was there. It is either absent or whole, and safe when this returns.
    pub(crate) fn write_whole<E: From<StoreError>>(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        self.write_into(self.partial(0)?, path, fill)
    }

    /// As [`Store::write_whole`], by way of a temporary file.
    fn write_into<E: From<StoreError>>(
        &self,
        temporary: (PathBuf, File),
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let (partial, _locked) = self.fill(temporary, path, fill)?;
        self.files.rename(&partial, path).map_err(|error| io(path, error))?;
        Ok(self.sync(folder_of(path))?)
    }

    /// As [`Store::write_whole`], but the first to write a file wins: an error of kind `AlreadyExists` if there is one.
    fn write_once<E: From<StoreError>>(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let (partial, _locked) = self.fill(self.partial(0)?, path, fill)?;
        let linked = self.files.link(&partial, path).map_err(|error| io(path, error));
        self.remove(&partial)?;
        linked?;
        Ok(self.sync(folder_of(path))?)
    }

    /// The temporary file with what `fill` writes, for `path`, all of it on the disk; locked as [`Store::partial`] until it is dropped.
    fn fill<E: From<StoreError>>(
        &self,
        (partial, file): (PathBuf, File),
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(PathBuf, File), E> {
        let mut writer = Writer::new(file, self.key.as_ref()).map_err(|error| io(&partial, error))?;
        if let Err(error) = fill(&mut writer) {
            // Nothing refers to the file.
            let _ = self.files.remove(&partial);
            return Err(error);
        }
        let synced = writer.finish(&self.name_of(path)).and_then(|file| self.files.sync_file(file, &partial));
        synced.map_err(|error| io(&partial, error))?;
        Ok((partial, writer.into_file()))
    }

    /// Makes a folder unless there is one.
    fn make_folder(&self, path: &Path) -> Result<(), StoreError> {
        match self.files.make_folder(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(io(path, error)),
            _ => Ok(()),
        }
    }

    /// Waits until the names in a folder are on the disk.
    fn sync(&self, folder: &Path) -> Result<(), StoreError> {
        self.files.sync_folder(folder).map_err(|error| io(folder, error))
    }

    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        self.files.remove(path).map_err(|error| io(path, error))
    }

    /// The entry with the metadata at `path`, unless it has gone.
    fn read_entry(&self, path: &Path) -> Result<Option<StoreEntry>, StoreError> {
        let Some(metadata) = self.read_metadata(path)? else { return Ok(None) };
        let created = match fs::metadata(path).and_then(|file| file.modified()) {
            Ok(created) => created,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(path, error)),
        };
        let bytes = room::length(path)? + room::length(&path.with_extension("material"))?;
        Ok(Some(StoreEntry { metadata, bytes, created }))
    }

    fn read_metadata(&self, path: &Path) -> Result<Option<Metadata>, StoreError> {
        let Some(bytes) = self.read_file(path)? else { return Ok(None) };
        let damaged = |error: serde_json::Error| StoreError::Damaged {
            path: path.display().to_string(),
            problem: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    fn ready(&self) -> PathBuf {
        self.root.join("ready")
    }

    fn spent(&self) -> PathBuf {
        self.root.join("spent")
    }

    fn path(&self, id: &MaterialId, extension: &str) -> PathBuf {
        self.ready().join(format!("{id}.{extension}"))
    }

    fn missing(&self, id: &MaterialId) -> StoreError {
        StoreError::Missing { id: id.clone(), store: self.root.display().to_string() }
    }
}

/// The folder that lists a path of the store.
fn folder_of(path: &Path) -> &Path {
    path.parent().expect("everything lies in a folder of the store")
}

pub(crate) fn io(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn metadata_of(byte: u8) -> Metadata {
        Metadata {
            id: MaterialId::new(&[byte; 16]),
            program: "p".into(),
            suite: "gmw".into(),
            role: "client".into(),
            peer: String::new(),
            model: "m".into(),
            setup: None,
        }
    }

    #[test]
    fn an_entry_is_handed_out_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = metadata_of(1);
        store.put(&first, b"secret").unwrap();
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&first));
        assert_eq!(std::io::read_to_string(store.claim(&first.id).unwrap()).unwrap(), "secret");
        assert!(matches!(store.claim(&first.id), Err(StoreError::Spent { .. })));
        assert!(matches!(store.metadata(&first.id), Err(StoreError::Spent { .. })));
        assert!(matches!(store.put(&first, b"secret"), Err(StoreError::Spent { .. })));
        assert_eq!(store.list().unwrap(), []);
        assert!(matches!(store.claim(&metadata_of(2).id), Err(StoreError::Missing { .. })));
    }

    #[test]
    fn a_temporary_entry_is_nothing_until_it_is_published() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = metadata_of(1);
        let files = || fs::read_dir(store.ready()).unwrap().count();
        let mut entry = store.begin(4).unwrap();
        entry.write_all(b"half").unwrap();
        assert_eq!(store.list().unwrap(), []);
        assert!(matches!(store.claim(&first.id), Err(StoreError::Missing { .. })));
        assert_eq!(files(), 1);
        drop(entry);
        assert_eq!(files(), 0);

        let mut entry = store.begin(4).unwrap();
        entry.write_all(b"se").unwrap();
        entry.write_all(b"cret").unwrap();
        entry.publish(&first).unwrap();
        assert_eq!(std::io::read_to_string(store.claim(&first.id).unwrap()).unwrap(), "secret");
        assert_eq!(files(), 0);
        assert!(matches!(store.begin(0).unwrap().publish(&first), Err(StoreError::Spent { .. })));
        assert_eq!(files(), 0);
    }

    #[test]
    fn restoring_the_file_of_a_spent_entry_does_not_revive_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = metadata_of(1);
        store.put(&first, b"secret").unwrap();
        let path = store.path(&first.id, "material");
        let backup = fs::read(&path).unwrap();
        store.claim(&first.id).unwrap();
        fs::write(&path, backup).unwrap();
        assert!(matches!(store.claim(&first.id), Err(StoreError::Spent { .. })));
    }

    #[test]
    fn an_id_from_a_peer_cannot_leave_the_directory() {
        assert!(MaterialId::try_from("../../../../etc/passwd".to_owned()).is_err());
        assert!(MaterialId::try_from("A".repeat(32)).is_err());
        assert!(MaterialId::try_from("0".repeat(32)).is_ok());
    }
}
