//! The material store: a directory that hands each piece of material out once, ever.
//!
//! A claim creates a tombstone file with `O_EXCL` and flushes it to disk before the first byte of the material is
//! read. Whatever happens after (crash, error, retry) the tombstone stays, so the piece is spent. Both parties keep a
//! store and claim the same id, so a store that was copied or rolled back on one side is caught by the other.
//!
//! A process that is killed may leave files that serve nobody; the next one that opens the store alone removes them.

mod sweep;

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use privet_prg::{Prg, Seed};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Name of one piece of material, the same at both parties: made from a nonce of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MaterialId(String);

impl MaterialId {
    pub(crate) fn new(bytes: &[u8; 16]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
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
    /// Locked while the store is open, so that no other process sweeps it.
    _lock: Option<Arc<File>>,
}

impl Store {
    /// Opens the store in `root`, which is created if need be, readable by its owner only; what a killed process left
    /// there is removed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self { root: root.into(), _lock: None };
        for name in ["", "ready", "spent"] {
            store.folder(name)?;
        }
        let lock = sweep::enter(&store.root)?.map(Arc::new);
        Ok(Self { _lock: lock, ..store })
    }

    /// Begins a piece, which is written bit by bit and is nothing until it is published.
    ///
    /// # Errors
    /// [`StoreError::Spent`] if a piece of this name was ever claimed; [`StoreError::Io`].
    pub fn draft(&self, id: &MaterialId) -> Result<Draft, StoreError> {
        if self.spent().join(id.as_str()).exists() {
            return Err(StoreError::Spent { id: id.clone() });
        }
        let path = self.path(id, "partial");
        let file = create(&path).map_err(|error| io(&path, error))?;
        Ok(Draft { store: self.clone(), id: id.clone(), file: Some(BufWriter::with_capacity(1 << 20, file)) })
    }

    /// Adds a piece, durably: when this returns, it survives a crash.
    ///
    /// # Errors
    /// As [`Store::draft`] and [`Draft::finish`].
    pub fn put(&self, metadata: &Metadata, material: &[u8]) -> Result<(), StoreError> {
        self.draft(&metadata.id)?.finish(metadata, material)
    }

    /// The pieces that are ready, in order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Damaged`].
    pub fn list(&self) -> Result<Vec<Metadata>, StoreError> {
        let ready = self.ready();
        let entries = fs::read_dir(&ready).map_err(|error| io(&ready, error))?;
        let mut pieces = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| io(&ready, error))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                pieces.extend(Self::read_metadata(&path)?);
            }
        }
        pieces.retain(|piece: &Metadata| !self.spent().join(piece.id.as_str()).exists());
        pieces.sort_by(|a, b| a.id.cmp(&b.id));
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
        let (path, tombstone) = (self.path(id, "material"), self.spent().join(id.as_str()));
        if !tombstone.exists() && !path.exists() {
            return Err(self.missing(id));
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&tombstone) {
            Ok(file) => file.sync_all().map_err(|error| io(&tombstone, error))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(StoreError::Spent { id: id.clone() }),
            Err(error) => return Err(io(&tombstone, error)),
        }
        sync(&self.spent())?;

        let material = File::open(&path).map_err(|error| io(&path, error))?;
        for path in [path, self.path(id, "json")] {
            fs::remove_file(&path).map_err(|error| io(&path, error))?;
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
            let (seed, mut unique) = (Prg::from_os()?.seed(), [0; 16]);
            Prg::from_os()?.fill(&mut unique);
            let fresh = path.with_file_name(format!("{name}-{}.new", MaterialId::new(&unique)));
            self.write(&fresh, seed.as_bytes())?;
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

    /// A folder of the store, made if need be.
    fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.root.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| io(&path, error))?;
        Ok(path)
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
        let partial = path.with_extension("partial");
        let written = (|| {
            let mut file = create(&partial)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&partial, path)
        })();
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

/// A piece that is being written; dropped unpublished, it leaves nothing.
pub struct Draft {
    store: Store,
    id: MaterialId,
    /// None once it is published.
    file: Option<BufWriter<File>>,
}

impl Draft {
    /// Writes the last bytes and publishes the piece.
    ///
    /// # Errors
    /// As [`Draft::publish`].
    pub fn finish(mut self, metadata: &Metadata, last: &[u8]) -> Result<(), StoreError> {
        self.write_all(last).map_err(|error| io(&self.partial(), error))?;
        self.publish(metadata)
    }

    /// Makes the piece ready, durably: when this returns, it survives a crash.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the piece is then lost.
    ///
    /// # Panics
    /// If `metadata` is another piece's.
    pub fn publish(mut self, metadata: &Metadata) -> Result<(), StoreError> {
        assert_eq!(metadata.id, self.id, "the piece that was drafted");
        let (store, partial) = (self.store.clone(), self.partial());
        let path = store.path(&self.id, "material");
        let file = self.file.take().expect("published once");
        let written = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        written.and_then(|()| fs::rename(&partial, &path)).map_err(|error| io(&path, error))?;
        let header = serde_json::to_vec(metadata).expect("metadata is plain data");
        store.write(&store.path(&self.id, "json"), &header)?;
        sync(&store.ready())
    }

    fn partial(&self) -> PathBuf {
        self.store.path(&self.id, "partial")
    }

    fn writer(&mut self) -> &mut BufWriter<File> {
        self.file.as_mut().expect("not published yet")
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Nothing refers to the file; what cannot be removed now is overwritten or found by its name.
            let _ = fs::remove_file(self.partial());
        }
    }
}

/// A new file that its owner alone may read.
fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn sync(directory: &Path) -> Result<(), StoreError> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(|error| io(directory, error))
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
        let mut draft = store.draft(&first.id).unwrap();
        draft.write_all(b"half").unwrap();
        assert_eq!(store.list().unwrap(), []);
        assert!(matches!(store.claim(&first.id), Err(StoreError::Missing { .. })));
        assert_eq!(files(), 1);
        drop(draft);
        assert_eq!(files(), 0);

        let mut draft = store.draft(&first.id).unwrap();
        draft.write_all(b"se").unwrap();
        draft.write_all(b"cret").unwrap();
        draft.publish(&first).unwrap();
        assert_eq!(std::io::read_to_string(store.claim(&first.id).unwrap()).unwrap(), "secret");
        assert_eq!(files(), 0);
        assert!(matches!(store.draft(&first.id), Err(StoreError::Spent { .. })));
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
    fn of_many_that_draw_a_secret_at_once_all_get_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for round in 0..20 {
            let name = format!("mask-{round}");
            let seeds: Vec<_> = std::thread::scope(|scope| {
                let draws: Vec<_> = (0..8).map(|_| scope.spawn(|| store.secret(&name).unwrap())).collect();
                draws.into_iter().map(|draw| *draw.join().unwrap().as_bytes()).collect()
            });
            assert!(seeds.iter().all(|seed| *seed == seeds[0]));
        }
    }

    #[test]
    fn an_id_from_a_peer_cannot_leave_the_directory() {
        assert!(MaterialId::try_from("../../../../etc/passwd".to_owned()).is_err());
        assert!(MaterialId::try_from("A".repeat(32)).is_err());
        assert!(MaterialId::try_from("0".repeat(32)).is_ok());
    }
}
