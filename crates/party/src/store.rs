//! The material store: a directory that hands each piece of material out once, ever.
//!
//! A claim creates a tombstone file with `O_EXCL` and flushes it to disk before the first byte of the material is
//! read. Whatever happens after (crash, error, retry) the tombstone stays, so the piece is spent. Both parties keep a
//! store and claim the same id, so a store that was copied or rolled back on one side is caught by the other.

mod draft;
mod room;
mod setups;
mod sweep;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use privet_prg::{Prg, Seed};
use serde::{Deserialize, Serialize};

use crate::Error;
pub use draft::Draft;
pub(crate) use setups::SetupEntry;

/// Name of one piece of material, the same at both parties: made from a nonce of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MaterialId(String);

impl MaterialId {
    pub(crate) fn new(bytes: &[u8; 16]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The bytes that the id spells.
    pub(crate) fn bytes(&self) -> [u8; 16] {
        let digit = |at: usize| self.0.as_bytes()[at];
        let value = |digit: u8| if digit < b'a' { digit - b'0' } else { digit - b'a' + 10 };
        std::array::from_fn(|i| value(digit(2 * i)) << 4 | value(digit(2 * i + 1)))
    }

    /// The id in hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MaterialId {
    type Error = String;

    /// Only 32 lower-case hexadecimal digits are an id, so that one from a peer is a safe file name.
    fn try_from(text: String) -> Result<Self, String> {
        let valid = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if valid { Ok(Self(text)) } else { Err(format!("{text:?} is not a material id of 32 hexadecimal digits")) }
    }
}

impl From<MaterialId> for String {
    fn from(id: MaterialId) -> Self {
        id.0
    }
}

impl std::fmt::Display for MaterialId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a piece of material is for; reading it does not spend the piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The piece's name.
    pub id: MaterialId,
    /// Hash of the program it serves, in hexadecimal.
    pub program: String,
    /// The suite that made it.
    pub suite: String,
    /// The party it is half of: `client` or `server`.
    pub role: String,
    /// Fingerprint of the other party's certificate, in hexadecimal; empty over a link without certificates.
    pub peer: String,
    /// The model's name, for people.
    #[serde(default)]
    pub model: String,
    /// The setup that it was made with, if the suite has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<MaterialId>,
}

/// A piece that is ready, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is for.
    pub metadata: Metadata,
    /// Bytes on disk, metadata included.
    pub bytes: u64,
    /// When it was finished.
    pub made: SystemTime,
}

/// A store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The piece was claimed before.
    #[error("material {id} has been used: each piece serves one inference, prepare another")]
    Spent {
        /// Its name.
        id: MaterialId,
    },
    /// There is no such piece.
    #[error("there is no material {id} in {store}: prepare first")]
    Missing {
        /// Its name.
        id: MaterialId,
        /// The directory looked in.
        store: String,
    },
    /// The piece is for other work.
    #[error("material {id} was made for another program, suite or peer: prepare for this one")]
    Unfit {
        /// Its name.
        id: MaterialId,
    },
    /// The setup that a piece was made with is not here any more.
    #[error("setup {name} is gone or was given up: prepare again, what was made with it is useless")]
    GivenUp {
        /// Its name.
        name: MaterialId,
    },
    /// A piece would take the store beyond its limit.
    #[error(
        "the material store {store} is full: a piece takes {needed} bytes, and {limit} is the limit for all: use or delete \
         some, or raise the limit"
    )]
    Full {
        /// The directory.
        store: String,
        /// Bytes that were asked for.
        needed: u64,
        /// Most bytes that the store holds.
        limit: u64,
    },
    /// A file is not what the store writes.
    #[error("{path} is damaged ({problem}): delete it and prepare again")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The file system failed.
    #[error("the material store failed at {path}: {error}")]
    Io {
        /// The file or directory.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
}

/// A directory of unused material and of the tombstones of used material.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    /// Most bytes of material.
    limit: Option<u64>,
}

impl Store {
    /// Opens the store in `root`, which is created if need be, readable by its owner only; what a crash left half done
    /// is removed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self { root: root.into(), limit: None };
        for name in ["", "ready", "spent"] {
            store.folder(name)?;
        }
        store.sweep();
        store.sweep_setups();
        Ok(store)
    }

    /// Begins a piece of at most `bytes` bytes, metadata included, which is nothing until it is published.
    ///
    /// # Errors
    /// [`StoreError::Full`] if it would take the store beyond its limit; [`StoreError::Io`].
    pub fn draft(&self, bytes: u64) -> Result<Draft, StoreError> {
        let (path, file) = self.reserve(bytes)?;
        Ok(Draft::new(self.clone(), path, file))
    }

    /// Adds a piece, durably: when this returns, it survives a crash.
    ///
    /// # Errors
    /// As [`Store::draft`] and [`Draft::finish`].
    pub fn put(&self, metadata: &Metadata, material: &[u8]) -> Result<(), StoreError> {
        self.draft(material.len() as u64)?.finish(metadata, material)
    }

    /// The pieces that are ready, in order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Damaged`].
    pub fn list(&self) -> Result<Vec<Metadata>, StoreError> {
        Ok(self.pieces()?.into_iter().map(|piece| piece.metadata).collect())
    }

    /// The pieces that are ready, with their sizes and ages, in order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Damaged`].
    pub fn pieces(&self) -> Result<Vec<Piece>, StoreError> {
        let ready = self.ready();
        let entries = fs::read_dir(&ready).map_err(|error| io(&ready, error))?;
        let mut pieces = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| io(&ready, error))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                pieces.extend(Self::read_piece(&path)?);
            }
        }
        pieces.retain(|piece| !self.spent().join(piece.metadata.id.as_str()).exists());
        pieces.sort_by(|a, b| a.metadata.id.cmp(&b.metadata.id));
        Ok(pieces)
    }

    /// What the piece `id` is for, without spending it.
    ///
    /// # Errors
    /// [`StoreError::Spent`], [`StoreError::Missing`], [`StoreError::Damaged`] or [`StoreError::Io`].
    pub fn metadata(&self, id: &MaterialId) -> Result<Metadata, StoreError> {
        if self.spent().join(id.as_str()).exists() {
            return Err(StoreError::Spent { id: id.clone() });
        }
        Self::read_metadata(&self.path(id, "json"))?.ok_or_else(|| self.missing(id))
    }

    /// Spends the piece `id` and opens it for this one reading. After this returns, or fails later than its first step, no
    /// call will ever return the piece again; its files are gone when the reader is.
    ///
    /// # Errors
    /// [`StoreError::Spent`] if it was claimed before; [`StoreError::Missing`] if it was never here.
    pub fn claim(&self, id: &MaterialId) -> Result<File, StoreError> {
        let material = self.open_piece(id)?;
        // Tells whoever sweeps that this claim is alive.
        material.lock_shared().map_err(|error| io(&self.path(id, "material"), error))?;
        self.spend(id, material)
    }

    /// Keeps the piece `id` for this caller, who may claim it or leave it: meanwhile no other process that shares the store
    /// gets hold of it.
    ///
    /// # Errors
    /// As [`Store::claim`]; [`StoreError::Spent`] also if somebody else holds it.
    pub(crate) fn hold(&self, id: &MaterialId) -> Result<Held, StoreError> {
        let material = self.open_piece(id)?;
        match material.try_lock() {
            Ok(()) if !self.spent().join(id.as_str()).exists() => {
                Ok(Held { store: self.clone(), id: id.clone(), material })
            }
            Ok(()) | Err(TryLockError::WouldBlock) => Err(StoreError::Spent { id: id.clone() }),
            Err(TryLockError::Error(error)) => Err(io(&self.path(id, "material"), error)),
        }
    }

    fn open_piece(&self, id: &MaterialId) -> Result<File, StoreError> {
        let (path, tombstone) = (self.path(id, "material"), self.spent().join(id.as_str()));
        File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound if tombstone.exists() => StoreError::Spent { id: id.clone() },
            ErrorKind::NotFound => self.missing(id),
            _ => io(&path, error),
        })
    }

    fn spend(&self, id: &MaterialId, material: File) -> Result<File, StoreError> {
        let (path, tombstone) = (self.path(id, "material"), self.spent().join(id.as_str()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&tombstone) {
            Ok(file) => file.sync_all().map_err(|error| io(&tombstone, error))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(StoreError::Spent { id: id.clone() }),
            Err(error) => return Err(io(&tombstone, error)),
        }
        sync(&self.spent())?;
        for path in [path, self.path(id, "json")] {
            remove(&path).map_err(|error| io(&path, error))?;
        }
        Ok(material)
    }

    /// A secret of the store's owner that outlives the process; drawn when it is first asked for.
    ///
    /// # Errors
    /// [`StoreError::Io`], or [`StoreError::Damaged`] for a file that is no secret.
    pub(crate) fn secret(&self, name: &str) -> Result<Seed, Error> {
        let path = self.folder("secrets")?.join(name);
        if !path.exists() {
            let (fresh, mut file) = self.partial(0)?;
            let written = file.write_all(Prg::from_os()?.seed().as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|error| io(&fresh, error))?;
            // The first one to link wins, whoever else draws at the same time.
            let linked = fs::hard_link(&fresh, &path);
            fs::remove_file(&fresh).map_err(|error| io(&fresh, error))?;
            match linked {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io(&path, error).into()),
                _ => {}
            }
        }
        let bytes = fs::read(&path).map_err(|error| io(&path, error))?;
        let seed = <[u8; 16]>::try_from(bytes).map_err(|bytes| StoreError::Damaged {
            path: path.display().to_string(),
            problem: format!("it has {} bytes", bytes.len()),
        })?;
        Ok(Seed::from_bytes(seed))
    }

    /// Where the hidden weights of a program of a peer lie, if they were received.
    pub(crate) fn hidden_weights(&self, program: &str, peer: &str) -> Result<PathBuf, StoreError> {
        Ok(self.folder("hidden")?.join(format!("{program}-{peer}")))
    }

    /// A file that is either absent or whole, written by `fill`.
    pub(crate) fn write_whole<E: From<StoreError>>(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let (partial, file) = self.partial(0)?;
        let mut writer = std::io::BufWriter::with_capacity(1 << 20, file);
        if let Err(error) = fill(&mut writer) {
            // Nothing refers to the file.
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
        let synced = writer.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        synced.and_then(|()| fs::rename(&partial, path)).map_err(|error| io(path, error).into())
    }

    /// A folder of the store, made if need be.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.root.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| io(&path, error))?;
        Ok(path)
    }

    /// The piece with the metadata at `path`, unless it has gone.
    fn read_piece(path: &Path) -> Result<Option<Piece>, StoreError> {
        let Some(metadata) = Self::read_metadata(path)? else { return Ok(None) };
        let made = match fs::metadata(path).and_then(|file| file.modified()) {
            Ok(made) => made,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(path, error)),
        };
        let bytes = room::length(path)? + room::length(&path.with_extension("material"))?;
        Ok(Some(Piece { metadata, bytes, made }))
    }

    fn read_metadata(path: &Path) -> Result<Option<Metadata>, StoreError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(path, error)),
        };
        let damaged = |error: serde_json::Error| StoreError::Damaged {
            path: path.display().to_string(),
            problem: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Writes a file that is either absent or whole.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let (partial, mut file) = self.partial(0)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&partial, path));
        written.map_err(|error| io(path, error))
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

/// A piece that its holder may claim, and nobody else until this is dropped.
pub(crate) struct Held {
    store: Store,
    id: MaterialId,
    material: File,
}

impl Held {
    /// As [`Store::claim`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn claim(self) -> Result<File, StoreError> {
        self.store.spend(&self.id, self.material)
    }
}

fn sync(directory: &Path) -> Result<(), StoreError> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(|error| io(directory, error))
}

/// Removes a file, if nobody else has.
fn remove(path: &Path) -> std::io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn io(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn piece(byte: u8) -> Metadata {
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
    fn a_piece_is_handed_out_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = piece(1);
        store.put(&first, b"secret").unwrap();
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&first));
        assert_eq!(std::io::read_to_string(store.claim(&first.id).unwrap()).unwrap(), "secret");
        assert!(matches!(store.claim(&first.id), Err(StoreError::Spent { .. })));
        assert!(matches!(store.metadata(&first.id), Err(StoreError::Spent { .. })));
        assert!(matches!(store.put(&first, b"secret"), Err(StoreError::Spent { .. })));
        assert_eq!(store.list().unwrap(), []);
        assert!(matches!(store.claim(&piece(2).id), Err(StoreError::Missing { .. })));
    }

    #[test]
    fn a_draft_is_nothing_until_it_is_published() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = piece(1);
        let files = || fs::read_dir(store.ready()).unwrap().count();
        let mut draft = store.draft(4).unwrap();
        draft.write_all(b"half").unwrap();
        assert_eq!(store.list().unwrap(), []);
        assert!(matches!(store.claim(&first.id), Err(StoreError::Missing { .. })));
        assert_eq!(files(), 1);
        drop(draft);
        assert_eq!(files(), 0);

        let mut draft = store.draft(4).unwrap();
        draft.write_all(b"se").unwrap();
        draft.write_all(b"cret").unwrap();
        draft.publish(&first).unwrap();
        assert_eq!(std::io::read_to_string(store.claim(&first.id).unwrap()).unwrap(), "secret");
        assert_eq!(files(), 0);
        assert!(matches!(store.draft(0).unwrap().publish(&first), Err(StoreError::Spent { .. })));
        assert_eq!(files(), 0);
    }

    #[test]
    fn restoring_the_file_of_a_spent_piece_does_not_revive_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = piece(1);
        store.put(&first, b"secret").unwrap();
        let path = store.path(&first.id, "material");
        let backup = fs::read(&path).unwrap();
        store.claim(&first.id).unwrap();
        fs::write(&path, backup).unwrap();
        assert!(matches!(store.claim(&first.id), Err(StoreError::Spent { .. })));
    }

    #[test]
    fn of_many_claims_at_once_one_wins() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for round in 0..20 {
            let metadata = piece(round);
            store.put(&metadata, b"secret").unwrap();
            let wins = std::thread::scope(|scope| {
                let claims: Vec<_> = (0..8).map(|_| scope.spawn(|| store.claim(&metadata.id).is_ok())).collect();
                claims.into_iter().map(|claim| claim.join().unwrap()).filter(|won| *won).count()
            });
            assert_eq!(wins, 1);
        }
    }

    #[test]
    fn an_id_from_a_peer_cannot_leave_the_directory() {
        assert!(MaterialId::try_from("../../../../etc/passwd".to_owned()).is_err());
        assert!(MaterialId::try_from("A".repeat(32)).is_err());
        assert!(MaterialId::try_from("0".repeat(32)).is_ok());
    }
}
