//! What the store asks of a file system, in one place: a test can stand in here and lose power ([`super::power_loss`]).
//!
//! A file system promises little about a power loss. The bytes of a file are safe when the file is synced; that the file has
//! this name, or has it no more, is safe when the folder is synced that lists the name. Until then either may be lost, in
//! any order. So whatever must not be forgotten is followed by a sync of the file, then of its folder.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Changes to names, and syncs. Bytes are written and read through [`File`] itself.
pub(super) trait Files: std::fmt::Debug + Send + Sync {
    /// A new, empty file that its owner alone may read; fails if there is one.
    fn create(&self, path: &Path) -> Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    /// A new folder that its owner alone may read; fails if there is one.
    fn make_folder(&self, path: &Path) -> Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    /// Gives a file another name, in place of a file that had it.
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to)
    }

    /// Gives a file a second name; fails if a file has it.
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to)
    }

    /// Takes a name from a file, if nobody else has.
    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    /// Waits until the bytes of `file`, which lies at `path`, are on the disk.
    fn sync_file(&self, file: &File, path: &Path) -> Result<()> {
        let _ = path;
        file.sync_all()
    }

    /// Waits until the names in a folder are on the disk.
    fn sync_folder(&self, path: &Path) -> Result<()> {
        File::open(path)?.sync_all()
    }
}

/// The file system.
#[derive(Debug)]
pub(super) struct Disk;

impl Files for Disk {}
