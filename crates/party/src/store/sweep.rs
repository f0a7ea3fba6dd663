//! What a killed process leaves in a store, and its removal.
//!
//! Nothing here decides whether a piece may be used; tombstones do. Leftovers are harmless but for the room they take
//! and the secrets in them, which serve nobody any more.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{MaterialId, StoreError, io};

/// Marks the store in `root` as open for as long as the file that is returned stays open. Removes leftovers first,
/// unless another process has the store open: what looks like a leftover may then be its work in progress.
///
/// Returns `None`, and removes nothing, where the file system has no locks.
///
/// # Errors
/// [`StoreError::Io`].
pub(super) fn enter(root: &Path) -> Result<Option<File>, StoreError> {
    let path = root.join("lock");
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = opened.map_err(|error| io(&path, error))?;
    match lock.try_lock() {
        Ok(()) => sweep(root)?,
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return Ok(None),
    }
    lock.lock_shared().map_err(|error| io(&path, error))?;
    Ok(Some(lock))
}

/// Removes halves of pieces, the files of spent pieces, and files that were not written to their end.
fn sweep(root: &Path) -> Result<(), StoreError> {
    let mut pieces: BTreeMap<MaterialId, Vec<PathBuf>> = BTreeMap::new();
    for path in files(&root.join("ready"))? {
        let part = |path: &Path| Some((path.file_stem()?.to_str()?.to_owned(), path.extension()?.to_str()?.to_owned()));
        let Some((stem, extension)) = part(&path) else { continue };
        let Ok(id) = MaterialId::try_from(stem) else { continue };
        match extension.as_str() {
            "partial" => remove(&path)?,
            "material" | "json" => pieces.entry(id).or_default().push(path),
            _ => {}
        }
    }
    for (id, paths) in pieces {
        if paths.len() < 2 || root.join("spent").join(id.as_str()).exists() {
            paths.iter().try_for_each(|path| remove(path))?;
        }
    }
    for folder in ["secrets", "hidden"] {
        let unfinished = |path: &&PathBuf| path.extension().is_some_and(|end| end == "partial" || end == "new");
        files(&root.join(folder))?.iter().filter(unfinished).try_for_each(|path| remove(path))?;
    }
    Ok(())
}

/// The files in `folder`; none if it does not exist.
fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |error| io(folder, error);
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    fs::remove_file(path).map_err(|error| io(path, error))
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::super::tests::piece;
    use super::*;

    /// A store with three pieces: one whole, one without its header, one spent but not yet removed.
    fn after_a_kill(root: &Path) -> Store {
        let store = Store::open(root).unwrap();
        for byte in 1..=3 {
            store.put(&piece(byte), b"secret").unwrap();
        }
        remove(&store.path(&piece(2).id, "json")).unwrap();
        File::create(store.spent().join(piece(3).id.as_str())).unwrap();
        fs::write(store.path(&piece(4).id, "partial"), b"sec").unwrap();
        store.secret("mask").unwrap();
        fs::write(root.join("secrets/mask-1.new"), b"secret").unwrap();
        fs::write(root.join("secrets/mask-2.partial"), b"sec").unwrap();
        fs::write(root.join("ready/README"), b"not ours").unwrap();
        store
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            files(folder).unwrap().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let secret = after_a_kill(directory.path()).secret("mask").unwrap();
        let store = Store::open(directory.path()).unwrap();
        let id = piece(1).id;
        assert_eq!(
            names(&directory.path().join("ready")),
            [format!("{id}.json"), format!("{id}.material"), "README".into()]
        );
        assert_eq!(names(&directory.path().join("secrets")), ["mask"]);
        assert_eq!(store.secret("mask").unwrap().as_bytes(), secret.as_bytes());
        assert_eq!(std::io::read_to_string(store.claim(&id).unwrap()).unwrap(), "secret");
        assert!(matches!(store.claim(&piece(3).id), Err(StoreError::Spent { .. })));
    }

    #[test]
    fn nothing_is_removed_while_another_has_the_store_open() {
        let directory = tempfile::tempdir().unwrap();
        let first = after_a_kill(directory.path());
        let before = names(&directory.path().join("ready"));
        let second = Store::open(directory.path()).unwrap();
        assert_eq!(names(&directory.path().join("ready")), before);
        drop((first, second));
        Store::open(directory.path()).unwrap();
        assert_ne!(names(&directory.path().join("ready")), before);
    }
}
