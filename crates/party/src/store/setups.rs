//! What two parties keep for many runs of suite `fss` against parties that deviate, and what of it was given up.
//!
//! In `setups`: a file for each setup with the setup's name; a list `spoiled-PROGRAM-PEER` of the setups given up, a line
//! with its name and a random number for each; and for each setup a lock `NAME.lock`, which is never removed. The run that has the lock is checking, and meanwhile
//! the lock's file says in which list the setup belongs: a process that dies then has told the peer something and seen no
//! answer, so that whoever comes next gives the setup up. (The mark survives the process, not the machine.)

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use privet_prg::Prg;
use privet_shark::{Error as CheckError, Turns};
use sha2::{Digest, Sha256};

use super::{MaterialId, Metadata, Store, StoreError, io, sync};
use crate::Error;

/// One setup of a party for a program and a peer; its runs check in turn.
pub(crate) struct SetupEntry {
    store: Store,
    name: MaterialId,
    list: String,
}

impl Store {
    /// Where what a party keeps of a setup lies: at the client the hidden weights, at the server codes.
    pub(crate) fn setup(&self, name: &MaterialId) -> Result<PathBuf, StoreError> {
        Ok(self.folder("setups")?.join(name.as_str()))
    }

    /// Whether the setup that a piece was made with is here, if it needs any.
    pub(crate) fn has_setup(&self, piece: &Metadata) -> bool {
        piece.setup.as_ref().is_none_or(|name| self.setup(name).is_ok_and(|kept| kept.exists()))
    }

    /// The record of a setup.
    pub(crate) fn setup_entry(&self, program: &str, peer: &str, name: &MaterialId) -> SetupEntry {
        SetupEntry { store: self.clone(), name: name.clone(), list: list(program, peer) }
    }

    /// A name for all that was given up of a program with a peer so far, because an attack may have told something of keys:
    /// another one after each setup, and another one in each store. `None` if nothing was.
    pub(crate) fn spoiled_setups(&self, program: &str, peer: &str) -> Result<Option<MaterialId>, StoreError> {
        let list = self.read_list(&list(program, peer))?;
        let digest: [u8; 32] = Sha256::digest(&list).into();
        let (name, _) = digest.split_first_chunk().expect("16 of 32 bytes");
        Ok((!list.is_empty()).then(|| MaterialId::new(name)))
    }

    /// Gives up the setups that a dead process was checking.
    pub(super) fn sweep_setups(&self) {
        let Ok(entries) = fs::read_dir(self.root.join("setups")) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_stem().and_then(|name| MaterialId::try_from(name.to_str()?.to_owned()).ok());
            let (Some(name), Some("lock")) = (name, path.extension().and_then(|it| it.to_str())) else { continue };
            let Ok(mut lock) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
            if lock.try_lock().is_ok() {
                let entry = SetupEntry { store: self.clone(), name, list: String::new() };
                // What cannot be recorded now is recorded before the next check.
                let _ = entry.settle(&mut lock);
            }
        }
    }

    fn read_list(&self, list: &str) -> Result<String, StoreError> {
        let path = self.folder("setups")?.join(list);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| io(&path, error)),
        }
    }
}

fn list(program: &str, peer: &str) -> String {
    format!("spoiled-{program}-{peer}")
}

impl SetupEntry {
    /// Whether it was given up.
    pub(crate) fn is_spoiled(&self) -> Result<bool, StoreError> {
        Ok(self.store.read_list(&self.list)?.contains(self.name.as_str()))
    }

    /// Gives it up, durably, and the material that was made with it.
    pub(crate) fn spoil(&self) -> Result<(), Error> {
        let _lock = self.lock()?;
        self.record(&self.list)
    }

    /// Waits until no other run checks; a check that never ended is on record then.
    fn lock(&self) -> Result<File, Error> {
        let path = self.path("lock")?;
        let lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| io(&path, error))?;
        self.settle(&mut lock)?;
        Ok(lock)
    }

    /// Gives the setup up if the lock's file, which this process has locked, says that a check was under way.
    fn settle(&self, lock: &mut File) -> Result<(), Error> {
        let mut list = String::new();
        lock.read_to_string(&mut list).map_err(|error| self.lock_error(error))?;
        if list.is_empty() {
            return Ok(());
        }
        self.record(&list)?;
        Ok(self.mark(lock, "")?)
    }

    fn mark(&self, lock: &mut File, list: &str) -> Result<(), StoreError> {
        let marked = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| lock.write_all(list.as_bytes()));
        marked.map_err(|error| self.lock_error(error))
    }

    /// Puts the setup on a list, once, and removes what is left of it.
    fn record(&self, list: &str) -> Result<(), Error> {
        if !self.store.read_list(list)?.contains(self.name.as_str()) {
            let path = self.store.folder("setups")?.join(list);
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
            let mut nonce = [0; 16];
            Prg::from_os()?.fill(&mut nonce);
            let line = format!("{} {}\n", self.name, MaterialId::new(&nonce));
            let added = file.and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()));
            added.map_err(|error| io(&path, error))?;
        }
        let kept = self.store.setup(&self.name)?;
        match fs::remove_file(&kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(&kept, error).into()),
            _ => sync(&self.store.folder("setups")?)?,
        }
        for piece in self.store.list()?.into_iter().filter(|piece| piece.setup.as_ref() == Some(&self.name)) {
            match self.store.claim(&piece.id) {
                // Somebody else has it, and will find the setup given up.
                Ok(_) | Err(StoreError::Spent { .. } | StoreError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn path(&self, extension: &str) -> Result<PathBuf, StoreError> {
        Ok(self.store.setup(&self.name)?.with_extension(extension))
    }

    fn lock_error(&self, error: std::io::Error) -> StoreError {
        io(&self.store.root.join("setups").join(format!("{}.lock", self.name)), error)
    }
}

impl Turns for SetupEntry {
    fn take(&self, check: &mut dyn FnMut() -> Result<(), CheckError>) -> Result<(), CheckError> {
        let refuse = |error: Error| CheckError::GivenUp(error.to_string());
        let mut lock = self.lock().map_err(refuse)?;
        if self.is_spoiled().map_err(Error::from).map_err(refuse)? {
            return Err(CheckError::GivenUp("the check of another run with it failed or was cut off".into()));
        }
        self.mark(&mut lock, &self.list).map_err(Error::from).map_err(refuse)?;
        let result = check();
        // A mark that stays is a setup that is given up at the next turn.
        let recorded =
            if result.as_ref().is_err_and(CheckError::spoils_setup) { self.record(&self.list) } else { Ok(()) };
        if recorded.is_ok() {
            self.mark(&mut lock, "").map_err(Error::from).map_err(refuse)?;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use privet_shark::PeerMisbehaved;

    use super::super::tests::piece;
    use super::*;

    fn failed() -> Result<(), CheckError> {
        Err(PeerMisbehaved::Check.into())
    }

    fn lines(store: &Store) -> usize {
        store.read_list(&list("p", "peer")).unwrap().lines().count()
    }

    fn is_refused(entry: &SetupEntry) -> bool {
        let taken = entry.take(&mut || panic!("the setup was given up"));
        matches!(taken, Err(CheckError::GivenUp(_)))
    }

    #[test]
    fn after_a_failed_check_nothing_of_the_setup_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [spoiled, other] = [1, 2].map(|byte| MaterialId::new(&[byte; 16]));
        for (byte, setup) in [(3, Some(&spoiled)), (4, Some(&other)), (5, None)] {
            let metadata = Metadata { setup: setup.cloned(), ..piece(byte) };
            store.put(&metadata, b"secret").unwrap();
        }
        fs::write(store.setup(&spoiled).unwrap(), b"keys").unwrap();
        let entry = store.setup_entry("p", "peer", &spoiled);
        entry.take(&mut || Ok(())).unwrap();
        entry.take(&mut || Err(CheckError::Failed)).unwrap_err();
        assert_eq!((store.spoiled_setups("p", "peer").unwrap(), store.list().unwrap().len()), (None, 3));
        entry.take(&mut failed).unwrap_err();
        entry.spoil().unwrap();
        assert_eq!((lines(&store), store.spoiled_setups("q", "peer").unwrap()), (1, None));
        let first = store.spoiled_setups("p", "peer").unwrap();
        assert!(first.is_some());
        assert!(!store.setup(&spoiled).unwrap().exists() && is_refused(&entry));
        let left: Vec<_> = store.list().unwrap().into_iter().map(|piece| piece.id).collect();
        assert_eq!(left, [4, 5].map(|byte| piece(byte).id));
        let entry = store.setup_entry("p", "peer", &other);
        entry.take(&mut || Ok(())).unwrap();
        assert_eq!(store.spoiled_setups("p", "peer").unwrap(), first);
        entry.spoil().unwrap();
        assert_ne!(store.spoiled_setups("p", "peer").unwrap(), first);
    }

    #[test]
    fn a_check_that_never_ended_spoils_the_setup() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [first, second] = [1, 2].map(|byte| store.setup_entry("p", "peer", &MaterialId::new(&[byte; 16])));
        for entry in [&first, &second] {
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| entry.take(&mut || panic!("killed"))));
            died.unwrap_err();
            assert_eq!(entry.is_spoiled().ok(), Some(false));
        }
        assert!(is_refused(&first));
        Store::open(directory.path()).unwrap();
        assert_eq!(lines(&store), 2);
        assert!(is_refused(&second));
    }

    #[test]
    fn of_many_checks_at_once_none_comes_after_the_first_failure() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let entry = store.setup_entry("p", "peer", &MaterialId::new(&[1; 16]));
        let checks = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    entry.take(&mut || {
                        checks.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(std::time::Duration::from_millis(20));
                        failed()
                    })
                });
            }
        });
        assert_eq!((checks.into_inner(), lines(&store)), (1, 1));
    }
}
