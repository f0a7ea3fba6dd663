//! What a crash leaves in a store: drafts that nobody writes, material without its metadata, files of spent pieces.
//!
//! All of it is secret, takes room and serves nobody, so it goes when a store is opened. Whoever still works on such a
//! file holds a lock on it, so processes that share a store do not sweep away each other's work.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use super::Store;
use super::room::is_at;

/// How long a claim may take from its tombstone to the removal of the files.
const CLAIMING: Duration = Duration::from_secs(60);

impl Store {
    /// Removes what crashes left, as far as that is possible now; the rest is found at the next opening.
    pub(super) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.ready()) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("partial") => remove_unless_locked(&path, || true),
                Some("material") => remove_unless_locked(&path, || !path.with_extension("json").exists()),
                _ => {}
            }
            if self.was_claimed(&path) {
                // An error leaves the file to the next opening.
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Whether the piece that the file at `path` belongs to was claimed, and not just now.
    fn was_claimed(&self, path: &Path) -> bool {
        let claimed =
            path.file_stem().and_then(|id| fs::metadata(self.spent().join(id)).and_then(|it| it.modified()).ok());
        claimed.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > CLAIMING)
    }
}

/// Removes a file that no process works on, if it is `useless` even then.
fn remove_unless_locked(path: &Path, useless: impl FnOnce() -> bool) {
    let Ok(file) = File::open(path) else { return };
    if file.try_lock().is_ok() && is_at(&file, path) && useless() {
        // As above.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::super::tests::piece;
    use super::*;

    fn names(store: &Store) -> Vec<PathBuf> {
        fs::read_dir(store.ready()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_a_crash_left_goes_at_the_next_opening_and_live_drafts_stay() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.put(&piece(1), b"secret").unwrap();
        let draft = store.draft(10).unwrap();
        let kept = names(&store);
        fs::write(store.ready().join("1-0.partial"), b"half a pie").unwrap();
        fs::write(store.path(&piece(2).id, "material"), b"no metadata").unwrap();

        let store = Store::open(directory.path()).unwrap();
        assert_eq!(names(&store).len(), 3);
        assert!(kept.iter().all(|path| path.exists()));
        draft.finish(&piece(3), b"secret").unwrap();
        assert_eq!(store.list().unwrap(), [piece(1), piece(3)]);
    }

    #[test]
    fn a_claim_that_died_leaves_nothing_to_restore() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.put(&piece(1), b"secret").unwrap();
        let tombstone = File::create(store.spent().join(piece(1).id.as_str())).unwrap();
        store.sweep();
        assert_eq!(names(&store).len(), 2, "the claim may be under way");
        tombstone.set_modified(SystemTime::now() - 2 * CLAIMING).unwrap();
        store.sweep();
        assert_eq!(names(&store).len(), 0);
    }
}
