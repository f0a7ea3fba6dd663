//! What two parties keep for many runs of suite `fss` against parties that deviate, and how it ends.
//!
//! `setups/PROGRAM-PEER` has a file for each setup, with the setup's name: this party's seed, then at the client the server's
//! weights behind their masks, at the server the codes of those masks. A file is written once and never changed. A setup that
//! is given up is removed, for good: the dealer draws a new name for each setup, so no file of that name is ever written again
//! and nothing needs to remember it. Beside the files lies `lock`, held by whoever has no setup yet and is about to get one.
//!
//! Runs on a setup check in turn. A run's turn is a lock on the setup's file; its mark, `NAME.checking`, is on the disk before
//! the check says anything. So a process that dies in its turn, or a power loss, leaves the mark: it may have told the peer
//! something and seen no answer, so whoever comes next gives the setup up. A mark whose removal was lost costs a setup, no
//! secret.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use privet_prg::Seed;
use privet_seal::Stored;
use privet_shark::{Error as CheckError, Turns};

use super::room::is_at;
use super::{MaterialId, Metadata, Store, StoreError, folder_of, io};
use crate::Error;

/// Setups that are kept for one program and peer. One would do, if the peer never loses or doubles its store; with more, the
/// oldest is given up.
const MOST: usize = 4;

/// The setups of a party for a program and a peer.
pub struct Setups {
    store: Store,
    folder: PathBuf,
}

/// One of them; its runs check in turn.
pub struct SetupEntry {
    store: Store,
    name: MaterialId,
    path: PathBuf,
}

/// A setup that is here, and this party's seed of it.
pub struct KeptSetup {
    /// Its name.
    pub name: MaterialId,
    /// The seed.
    pub seed: Seed,
}

impl Store {
    /// The setups for a program and a peer.
    pub fn setups(&self, program: &str, peer: &str) -> Setups {
        Setups { store: self.clone(), folder: self.root.join("setups").join(format!("{program}-{peer}")) }
    }

    /// Whether the setup that an entry was made with is here, if it needs any.
    pub fn has_setup(&self, entry: &Metadata) -> bool {
        let path = |name| self.setups(&entry.program, &entry.peer).entry(name).path;
        entry.setup.as_ref().is_none_or(|name| path(name).exists())
    }

    /// Gives up the setups that somebody was checking or giving up who is not there any more.
    pub(super) fn sweep_setups(&self) {
        let folders = fs::read_dir(self.root.join("setups")).into_iter().flatten().flatten();
        let marks = folders.flat_map(|folder| fs::read_dir(folder.path())).flatten().flatten().map(|mark| mark.path());
        for mark in marks.filter(|mark| mark.extension().is_some_and(|extension| extension == "checking")) {
            let name = mark.file_stem().and_then(|name| MaterialId::try_from(name.to_str()?.to_owned()).ok());
            let Some(name) = name else { continue };
            let entry = SetupEntry { store: self.clone(), name, path: mark.with_extension("") };
            // Locked, if at all, until the setup is given up.
            let file = File::open(&entry.path);
            let is_left = match &file {
                // A check that ended before this lock has taken its mark away.
                Ok(file) => file.try_lock().is_ok() && mark.exists(),
                Err(error) => error.kind() == ErrorKind::NotFound,
            };
            if is_left {
                // What cannot be removed now is removed before the next check.
                let _ = entry.give_up();
            }
        }
    }
}

impl Setups {
    /// One of them, by its name.
    pub fn entry(&self, name: &MaterialId) -> SetupEntry {
        SetupEntry { store: self.store.clone(), name: name.clone(), path: self.folder.join(name.as_str()) }
    }

    /// Those that are here, the newest first.
    pub fn kept(&self) -> Result<Vec<KeptSetup>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| io(&self.folder, error))?,
        };
        let mut setups = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| io(&self.folder, error))?.path();
            let name = path.file_name().and_then(|name| MaterialId::try_from(name.to_str()?.to_owned()).ok());
            let Some(name) = name else { continue };
            let mut seed = [0; 16];
            // Somebody may have given it up meanwhile.
            let Some(mut file) = self.store.open_file(&path)? else { continue };
            let read = file.read_exact(&mut seed).and_then(|()| fs::metadata(&path)?.modified());
            match read {
                Ok(created) => setups.push((created, KeptSetup { name, seed: Seed::from_bytes(seed) })),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(io(&path, error)),
            }
        }
        setups.sort_by(|(one, _), (other, _)| other.cmp(one));
        Ok(setups.into_iter().map(|(_, setup)| setup).collect())
    }

    /// Waits until nobody else is about to get the first setup. Returns the leave to get it, until it is dropped; `None` if
    /// there is a setup.
    pub fn first(&self) -> Result<Option<File>, StoreError> {
        if !self.kept()?.is_empty() {
            return Ok(None);
        }
        self.make_folder()?;
        let path = self.folder.join("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| io(&path, error))?;
        Ok(self.kept()?.is_empty().then_some(lock))
    }

    /// Writes a new setup by `fill`, durably and once. If there are too many then, the oldest is given up.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is one of this name.
    pub fn add(
        &self,
        name: &MaterialId,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<SetupEntry, Error> {
        self.make_folder()?;
        let entry = self.entry(name);
        match self.store.write_once(&entry.path, fill) {
            Err(Error::Store(StoreError::Io { error, .. })) if error.kind() == ErrorKind::AlreadyExists => {
                let text =
                    format!("the dealer deals setup {name} as a new one, but it is here: ask for another dealer");
                return Err(Error::Misuse(text));
            }
            result => result?,
        }
        let mut setups = self.kept()?;
        setups.retain(|setup| setup.name != *name);
        setups.iter().skip(MOST - 1).try_for_each(|oldest| self.entry(&oldest.name).spoil())?;
        Ok(entry)
    }

    fn make_folder(&self) -> Result<(), StoreError> {
        if self.folder.exists() {
            return Ok(());
        }
        self.store.make_folder(&self.folder)?;
        self.store.sync(folder_of(&self.folder))
    }
}

impl SetupEntry {
    /// What is kept of it.
    ///
    /// # Errors
    /// [`StoreError::GivenUp`] if it is not here.
    pub fn open(&self) -> Result<Stored, StoreError> {
        self.store.open_file(&self.path)?.ok_or_else(|| StoreError::GivenUp { name: self.name.clone() })
    }

    /// Gives it up, durably, and the material that was made with it.
    pub fn spoil(&self) -> Result<(), Error> {
        let Some(_lock) = self.lock()? else { return Ok(()) };
        // A crash from here on is one that whoever sweeps finds.
        self.begin()?;
        self.give_up()
    }

    /// Waits until no other run checks. `None` if the setup is not here; so if the last check never ended.
    fn lock(&self) -> Result<Option<File>, Error> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.and_then(|file| file.lock().map(|()| file)).map_err(|error| io(&self.path, error))?,
        };
        if !is_at(&file, &self.path) {
            return Ok(None);
        }
        if self.mark().exists() {
            self.give_up()?;
            return Ok(None);
        }
        Ok(Some(file))
    }

    /// Removes the setup, then the material, then the mark, so that a crash on the way leaves either the mark or nothing.
    fn give_up(&self) -> Result<(), Error> {
        self.store.remove(&self.path)?;
        self.store.sync(folder_of(&self.path))?;
        for entry in self.store.list()?.into_iter().filter(|entry| entry.setup.as_ref() == Some(&self.name)) {
            match self.store.claim(&entry.id) {
                // Somebody else has it, and will find the setup given up.
                Ok(_) | Err(StoreError::Spent { .. } | StoreError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.store.remove(&self.mark())?)
    }

    fn mark(&self) -> PathBuf {
        self.path.with_extension("checking")
    }

    /// Puts the mark of a check on the disk.
    fn begin(&self) -> Result<(), StoreError> {
        let mark: &Path = &self.mark();
        let marked = self.store.files.create(mark).and_then(|file| self.store.files.sync_file(&file, mark));
        marked.map_err(|error| io(mark, error))?;
        self.store.sync(folder_of(mark))
    }
}

impl Turns for SetupEntry {
    fn take(&self, check: &mut dyn FnMut() -> Result<(), CheckError>) -> Result<(), CheckError> {
        let refuse = |error: Error| CheckError::GivenUp(error.to_string());
        let Some(_lock) = self.lock().map_err(refuse)? else {
            return Err(CheckError::GivenUp("the check of another run with it failed or was cut off".into()));
        };
        self.begin().map_err(Error::from).map_err(refuse)?;
        let result = check();
        // A mark that stays is a setup that is given up at the next turn.
        if result.as_ref().is_err_and(CheckError::spoils_setup) {
            self.give_up().map_err(refuse)?;
        } else {
            self.store.remove(&self.mark()).map_err(Error::from).map_err(refuse)?;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use privet_shark::PeerMisbehaved;

    use super::super::tests::metadata_of;
    use super::*;

    const NAMES: [u8; 2] = [1, 2];

    fn two_entries(store: &Store) -> [SetupEntry; 2] {
        let fill = |out: &mut dyn Write| out.write_all(&[9; 20]).map_err(|error| Error::from(io(Path::new(""), error)));
        NAMES.map(|byte| store.setups("p", "").add(&MaterialId::new(&[byte; 16]), fill).unwrap())
    }

    fn failed() -> Result<(), CheckError> {
        Err(PeerMisbehaved::Check.into())
    }

    fn kept(store: &Store) -> Vec<MaterialId> {
        store.setups("p", "").kept().unwrap().into_iter().map(|kept| kept.name).collect()
    }

    fn is_refused(entry: &SetupEntry) -> bool {
        let result = entry.take(&mut || panic!("the setup was given up"));
        matches!(result, Err(CheckError::GivenUp(_)))
    }

    #[test]
    fn after_a_failed_check_nothing_of_the_setup_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [entry, other] = two_entries(&store);
        for (byte, setup) in [(3, Some(&entry.name)), (4, Some(&other.name)), (5, None)] {
            let metadata = Metadata { setup: setup.cloned(), ..metadata_of(byte) };
            store.put(&metadata, b"secret").unwrap();
        }
        entry.take(&mut || Ok(())).unwrap();
        entry.take(&mut || Err(CheckError::Failed)).unwrap_err();
        assert_eq!((kept(&store).len(), store.list().unwrap().len()), (2, 3));
        entry.take(&mut failed).unwrap_err();
        entry.spoil().unwrap();
        assert!(is_refused(&entry) && matches!(entry.open(), Err(StoreError::GivenUp { .. })));
        assert_eq!(kept(&store), std::slice::from_ref(&other.name));
        let ids: Vec<_> = store.list().unwrap().into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [4, 5].map(|byte| metadata_of(byte).id));
        other.take(&mut || Ok(())).unwrap();
        other.spoil().unwrap();
        assert_eq!((kept(&store).len(), store.list().unwrap().len()), (0, 1));
    }

    #[test]
    fn a_check_that_never_ended_spoils_the_setup() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [first, second] = two_entries(&store);
        for entry in [&first, &second] {
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| entry.take(&mut || panic!("killed"))));
            died.unwrap_err();
        }
        assert_eq!(kept(&store).len(), 2);
        assert!(is_refused(&first));
        assert_eq!(kept(&store), std::slice::from_ref(&second.name));
        Store::open(directory.path()).unwrap();
        assert!(is_refused(&second) && kept(&store).is_empty());
    }

    #[test]
    fn whoever_opens_the_store_leaves_checks_alone_that_go_on_or_have_just_ended() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [entry, _] = two_entries(&store);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        store.sweep_setups();
                    }
                });
            }
            let result = (0..3000).try_for_each(|_| entry.take(&mut || Ok(())));
            is_over.store(true, Ordering::SeqCst);
            result.unwrap();
        });
        assert_eq!(kept(&store).len(), 2);
    }

    #[test]
    fn of_many_checks_at_once_none_comes_after_the_first_failure() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [entry, _] = two_entries(&store);
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
        assert_eq!((checks.into_inner(), kept(&store).len()), (1, 1));
    }

    #[test]
    fn a_setup_is_written_once_and_the_oldest_goes_when_there_are_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let [first, _] = two_entries(&store);
        let setups = store.setups("p", "");
        let fill = |out: &mut dyn Write| out.write_all(&[8; 16]).map_err(|error| Error::from(io(Path::new(""), error)));
        assert!(matches!(setups.add(&first.name, fill), Err(Error::Misuse(_))));
        assert!(setups.kept().unwrap().iter().all(|kept| kept.seed.as_bytes() == &[9; 16]));
        for byte in 3..=MOST as u8 {
            setups.add(&MaterialId::new(&[byte; 16]), fill).unwrap();
        }
        assert_eq!(kept(&store).len(), MOST);
        // Times of files may be coarse.
        thread::sleep(std::time::Duration::from_millis(20));
        let newest = setups.add(&MaterialId::new(&[99; 16]), fill).unwrap();
        assert_eq!(kept(&store).len(), MOST);
        assert_eq!(kept(&store)[0], newest.name);
    }

    #[test]
    fn of_many_that_have_no_setup_one_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for byte in 0..6 {
                let (store, count) = (&store, &count);
                scope.spawn(move || {
                    let setups = store.setups("p", "");
                    let Some(_leave) = setups.first().unwrap() else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    let fill = |out: &mut dyn Write| {
                        thread::sleep(std::time::Duration::from_millis(20));
                        out.write_all(&[9; 16]).map_err(|error| Error::from(io(Path::new(""), error)))
                    };
                    setups.add(&MaterialId::new(&[byte; 16]), fill).unwrap();
                });
            }
        });
        assert_eq!((count.into_inner(), kept(&store).len()), (1, 1));
    }
}
