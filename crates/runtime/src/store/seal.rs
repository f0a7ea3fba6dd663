//! Reading files of a store that may be sealed, and whether a key is the store's.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use privet_seal::{Stored, sealed_bytes};

use super::{Store, StoreError, io};

/// What the file `sealed` of a sealed store says inside its seal.
const STATEMENT: &[u8] = b"a sealed store of privet\n";

impl Store {
    /// Opens a file of this store; `None` if there is none. Fails with [`StoreError::Damaged`] if its seal is not
    /// right; [`StoreError::Io`].
    pub(crate) fn open_file(&self, path: &Path) -> Result<Option<Stored>, StoreError> {
        match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io(path, error)),
            Ok(file) => self.unseal(path, file).map(Some),
        }
    }

    /// All bytes of a file; `None` if there is none. Errors as [`Store::open_file`].
    pub(super) fn read_file(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(mut file) = self.open_file(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| broken(path, error))?;
        Ok(Some(bytes))
    }

    /// What the open file of the name `path` holds.
    pub(super) fn unseal(&self, path: &Path, file: File) -> Result<Stored, StoreError> {
        Stored::open(file, self.key.as_ref(), &self.name_of(path)).map_err(|error| broken(path, error))
    }

    /// The name under which the file at `path` is sealed.
    pub(super) fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).expect("everything lies in the store").to_string_lossy().into_owned()
    }

    /// Bytes on disk of a file with `bytes` bytes in it.
    pub(super) fn stored_bytes(&self, bytes: u64) -> u64 {
        if self.key.is_some() { sealed_bytes(bytes) } else { bytes }
    }

    /// Checks that the key is that of this store, which is sealed under it from now on if it is new. Fails with
    /// [`StoreError::Key`], [`StoreError::Io`].
    pub(super) fn check_key(&self) -> Result<(), StoreError> {
        let path = self.root.join("sealed");
        let is_sealed = path.exists();
        match (&self.key, is_sealed) {
            (None, false) => return Ok(()),
            (None, true) => {
                return Err(self.key_error(
                    "is encrypted: give its key, which PRIVET_STATE_KEY=file:PATH names to privet, and `state_key` to a client in Rust",
                ));
            }
            (Some(_), true) => {}
            (Some(_), false) if self.has_secrets()? && !path.exists() => {
                return Err(self.key_error(
                    "has files that are not encrypted, and there is a key: use them up without the key, or begin with a new directory",
                ));
            }
            // Whoever else opens the store for the first time, the first one to link wins.
            (Some(_), false) => {
                match self.write_once(&path, |out| out.write_all(STATEMENT).map_err(|error| io(&path, error))) {
                    Err(StoreError::Io { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {}
                    result => result?,
                }
            }
        }
        match self.read_file(&path) {
            Ok(Some(statement)) if statement == STATEMENT => Ok(()),
            Ok(_) | Err(StoreError::Damaged { .. }) => Err(self.key_error(
                "is encrypted under another key, or its file \"sealed\" was changed: give the key it was made with",
            )),
            Err(error) => Err(error),
        }
    }

    /// Whether the store has a file that would be sealed.
    fn has_secrets(&self) -> Result<bool, StoreError> {
        for name in ["ready", "setups", "secrets", "hidden", "base"] {
            let folder = self.root.join(name);
            let entries = fs::read_dir(&folder).map_err(|error| io(&folder, error))?;
            // What is being written has no name yet.
            if entries.flatten().any(|entry| entry.path().extension().is_none_or(|extension| extension != "partial")) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn key_error(&self, problem: &str) -> StoreError {
        StoreError::Key { store: self.root.display().to_string(), problem: problem.into() }
    }
}

/// What reading a file came to.
fn broken(path: &Path, error: std::io::Error) -> StoreError {
    if error.kind() == ErrorKind::InvalidData {
        return StoreError::Damaged { path: path.display().to_string(), problem: error.to_string() };
    }
    io(path, error)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::super::tests::metadata_of;
    use super::super::{MaterialId, StateKey};
    use super::*;

    const MARKER: &[u8] = b"material that nobody may read from the disk";

    fn key(byte: u8) -> Option<StateKey> {
        Some(StateKey::new(&[byte; 32]))
    }

    /// A store with every kind of secret file, each with the marker in it where the store does not draw the bytes.
    fn filled(key: Option<StateKey>) -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_with(folder.path(), key).unwrap();
        for byte in [1, 2] {
            store.put(&metadata_of(byte), &MARKER.repeat(1000)).unwrap();
        }
        let fill = |out: &mut dyn std::io::Write| out.write_all(MARKER).map_err(|error| io(Path::new(""), error));
        store.setups("p", "").add(&MaterialId::new(&[3; 16]), |out| Ok(fill(out)?)).unwrap();
        store.write_whole(&store.hidden_weights("p", ""), fill).unwrap();
        store.secret("own").unwrap();
        (folder, store)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    fn files_with(folder: &Path, marker: &[u8]) -> usize {
        let has = |path: &PathBuf| fs::read(path).unwrap().windows(marker.len()).any(|window| window == marker);
        files(folder).iter().filter(|path| has(path)).count()
    }

    #[test]
    fn without_a_key_secrets_lie_on_the_disk_and_with_one_they_do_not() {
        for (key, count) in [(None, 1), (key(1), 0)] {
            let (folder, store) = filled(key.clone());
            assert_eq!(files_with(folder.path(), MARKER), 4 * count);
            assert_eq!(files_with(folder.path(), store.secret("own").unwrap().as_bytes()), count);
            assert_eq!(files_with(folder.path(), b"\"suite\""), 2 * count);
            // Whoever opens it again with the key reads everything.
            let second_store = Store::open_with(folder.path(), key).unwrap();
            assert_eq!(second_store.list().unwrap().len(), 2);
            assert_eq!(second_store.secret("own").unwrap().as_bytes(), store.secret("own").unwrap().as_bytes());
            assert_eq!(second_store.setups("p", "").kept().unwrap()[0].seed.as_bytes(), &MARKER[..16]);
            assert_eq!(second_store.read_file(&second_store.hidden_weights("p", "")).unwrap().unwrap(), MARKER);
            let mut material = Vec::new();
            second_store.claim(&metadata_of(1).id).unwrap().read_to_end(&mut material).unwrap();
            assert_eq!(material, MARKER.repeat(1000));
        }
    }

    #[test]
    fn another_key_or_none_is_refused_and_so_is_a_key_for_plain_files() {
        let (folder, _) = filled(key(1));
        for (other, problem) in [(key(2), "another key"), (None, "PRIVET_STATE_KEY")] {
            let error = Store::open_with(folder.path(), other).unwrap_err();
            assert!(matches!(&error, StoreError::Key { problem: said, .. } if said.contains(problem)), "{error}");
        }
        let (plain, _) = filled(None);
        assert!(matches!(Store::open_with(plain.path(), key(1)), Err(StoreError::Key { .. })));
        // A new store that was opened without a key may get one while it holds nothing.
        let fresh = tempfile::tempdir().unwrap();
        Store::open(fresh.path()).unwrap();
        Store::open_with(fresh.path(), key(1)).unwrap();
    }

    #[test]
    fn an_entry_cannot_stand_in_for_another() {
        let (_folder, store) = filled(key(1));
        let (one, other) = (metadata_of(1).id, metadata_of(2).id);
        fs::copy(store.path(&one, "material"), store.path(&other, "material")).unwrap();
        assert!(matches!(store.claim(&other), Err(StoreError::Damaged { .. })));
        // It is spent all the same.
        assert!(matches!(store.claim(&other), Err(StoreError::Spent { .. })));
        fs::copy(store.path(&one, "json"), store.path(&metadata_of(3).id, "json")).unwrap();
        assert!(matches!(store.metadata(&metadata_of(3).id), Err(StoreError::Damaged { .. })));
        store.claim(&one).unwrap();
    }

    #[test]
    fn an_entry_that_was_cut_is_refused_before_it_is_used() {
        let (_folder, store) = filled(key(1));
        let path = store.path(&metadata_of(1).id, "material");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let refused = store.claim(&metadata_of(1).id).err().unwrap().to_string();
        assert!(refused.contains("cut") && refused.contains("prepare again"), "{refused}");
    }

    #[test]
    fn a_limit_counts_what_seals_add() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_with(folder.path(), key(1)).unwrap().within(100_000);
        assert!(matches!(store.begin(100_000), Err(StoreError::Full { .. })));
        let entry = store.begin(90_000).unwrap();
        assert_eq!(store.bytes().unwrap(), sealed_bytes(90_000));
        entry.finish(&metadata_of(1), &vec![7; 80_000]).unwrap();
        assert_eq!(store.entries().unwrap()[0].bytes, store.bytes().unwrap());
    }

    #[test]
    fn of_many_that_seal_a_new_store_with_different_keys_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let won = std::thread::scope(|scope| {
            let open = |byte| scope.spawn(move || Store::open_with(root, key(byte)).is_ok());
            let opened: Vec<_> = (0..6).map(open).collect();
            opened.into_iter().filter_map(|opened| opened.join().unwrap().then_some(())).count()
        });
        assert_eq!(won, 1);
    }
}
