//! What a crash leaves in a store: temporary entries that nobody writes, material without its metadata or the other way round, files of
//! spent entries. And what peers who came no more left.
//!
//! All of it is secret, takes room and serves nobody, so it goes when a store is opened. Whoever still works on such a
//! file holds a lock on it, so processes that share a store do not sweep away each other's work.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::room::is_at;
use super::{Store, StoreError, io};

/// What peers left that was not used for longer serves nobody any more, such as what came under a certificate that has been renewed.
pub(super) const OLDEST: Duration = Duration::from_secs(30 * 24 * 3600);

impl Store {
    /// Removes what crashes left, as far as that is possible now; the rest is found at the next opening.
    pub(super) fn sweep(&self) {
        for folder in ["base", "kept"] {
            self.sweep_old(&self.root.join(folder));
        }
        let Ok(entries) = fs::read_dir(self.ready()) else { return };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // Of one entry, material before metadata.
        paths.sort_unstable_by(|one, other| other.cmp(one));
        for path in paths {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("partial") => self.remove_unless_locked(&path, || true),
                Some("material") => {
                    let useless = || self.is_claimed(&path) || !path.with_extension("json").exists();
                    self.remove_unless_locked(&path, useless);
                }
                // A claim that died while it removed the two files, or a power loss that took one name; a claim that lives
                // does not mind.
                Some("json") if !path.with_extension("material").exists() => {
                    // An error leaves the file to the next opening.
                    let _ = self.files.remove(&path);
                }
                _ => {}
            }
        }
    }

    /// Removes what nobody has changed for a month.
    fn sweep_old(&self, folder: &Path) {
        for (time, path) in self.files_in(folder).unwrap_or_default() {
            if SystemTime::now().duration_since(time).is_ok_and(|age| age > OLDEST) {
                self.remove_unless_locked(&path, || true);
            }
        }
    }

    /// The files in a folder, with the times at which they were changed.
    pub(super) fn files_in(&self, folder: &Path) -> Result<Vec<(SystemTime, PathBuf)>, StoreError> {
        self.files_of(folder, |_| true)
    }

    /// As [`Store::files_in`], those alone whose path passes `filter`.
    pub(super) fn files_of(
        &self,
        folder: &Path,
        filter: impl Fn(&Path) -> bool,
    ) -> Result<Vec<(SystemTime, PathBuf)>, StoreError> {
        let io = |error| io(folder, error);
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            if !filter(&entry.path()) {
                continue;
            }
            // Somebody may have removed it meanwhile.
            if let Ok(time) = entry.metadata().and_then(|file| file.modified()) {
                files.push((time, entry.path()));
            }
        }
        Ok(files)
    }

    /// Whether there is a marker of the entry that the file at `path` belongs to.
    fn is_claimed(&self, path: &Path) -> bool {
        path.file_stem().is_some_and(|id| self.spent().join(id).exists())
    }

    /// Removes a file that no process works on, if it is `useless` even then.
    pub(super) fn remove_unless_locked(&self, path: &Path, useless: impl FnOnce() -> bool) {
        let Ok(file) = File::open(path) else { return };
        if file.try_lock().is_ok() && is_at(&file, path) && useless() {
            // As above.
            let _ = self.files.remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tests::metadata_of;
    use super::*;

    fn names(store: &Store) -> Vec<PathBuf> {
        fs::read_dir(store.ready()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_a_crash_left_goes_at_the_next_opening_and_live_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.put(&metadata_of(1), b"secret").unwrap();
        let entry = store.begin(10).unwrap();
        let paths = names(&store);
        fs::write(store.ready().join("1-0.partial"), b"half a pie").unwrap();
        fs::write(store.path(&metadata_of(2).id, "material"), b"no metadata").unwrap();

        let store = Store::open(directory.path()).unwrap();
        assert_eq!(names(&store).len(), 3);
        assert!(paths.iter().all(|path| path.exists()));
        entry.finish(&metadata_of(3), b"secret").unwrap();
        assert_eq!(store.list().unwrap(), [metadata_of(1), metadata_of(3)]);
    }

    #[test]
    fn a_claim_that_died_leaves_nothing_to_restore_and_a_live_one_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for number in [1, 2] {
            store.put(&metadata_of(number), b"secret").unwrap();
            File::create(store.spent().join(metadata_of(number).id.as_str())).unwrap();
        }
        let live = File::open(store.path(&metadata_of(1).id, "material")).unwrap();
        live.lock_shared().unwrap();
        fs::remove_file(store.path(&metadata_of(2).id, "material")).unwrap();
        store.sweep();
        assert_eq!(names(&store).len(), 2, "both files of the live claim");
        drop(live);
        store.sweep();
        assert_eq!(names(&store).len(), 0);
    }
}
