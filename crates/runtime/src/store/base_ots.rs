//! Random OTs that a session left for the next with the same peer ([`Kept`]), in place of base OTs.
//!
//! `base/PEER-ID` is this party's half, with the name of the material that the session made. It is written whole, and taken
//! once: its name is gone from the disk before a byte of it is used. Nothing needs to remember it then. A peer that does not
//! have the other half says so, and both begin with base OTs: it costs that work, no secret, whichever party lost its state or
//! went back to a copy.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use privet_ot::Kept;
use zeroize::Zeroizing;

use super::room::is_at;
use super::{MaterialId, Store, StoreError, folder_of, io};

/// Halves that are kept for one peer, whose sessions may run side by side; the oldest goes.
const MOST: usize = 4;

impl Store {
    /// The newest half for this peer that is here.
    pub(crate) fn kept_base(&self, peer: &str) -> Result<Option<MaterialId>, StoreError> {
        Ok(self.halves(peer)?.into_iter().next())
    }

    /// Takes a half, for good; `None` if it is not here, somebody else has it, or it cannot be read.
    pub(crate) fn take_base(&self, peer: &str, name: &MaterialId) -> Result<Option<Kept>, StoreError> {
        let path = self.half(peer, name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| io(&path, error))?,
        };
        if file.try_lock().is_err() || !is_at(&file, &path) {
            return Ok(None);
        }
        self.remove(&path)?;
        self.sync(folder_of(&path))?;
        let mut bytes = Zeroizing::new(Vec::new());
        let read = self.unseal(&path, file).map(|mut file| file.read_to_end(&mut bytes));
        Ok(matches!(read, Ok(Ok(_))).then(|| Kept::from_bytes(&bytes)).flatten())
    }

    /// Keeps a half for the next session with this peer, and only the newest few.
    pub(crate) fn keep_base(&self, peer: &str, name: &MaterialId, kept: &Kept) -> Result<(), StoreError> {
        let path = self.half(peer, name);
        self.write_whole(&path, |out| out.write_all(&kept.to_bytes()).map_err(|error| io(&path, error)))?;
        self.halves(peer)?.iter().skip(MOST).try_for_each(|name| self.remove(&self.half(peer, name)))
    }

    fn half(&self, peer: &str, name: &MaterialId) -> PathBuf {
        self.base().join(format!("{peer}-{name}"))
    }

    fn base(&self) -> PathBuf {
        self.root.join("base")
    }

    /// The names of the halves for a peer, the newest first.
    fn halves(&self, peer: &str) -> Result<Vec<MaterialId>, StoreError> {
        let folder = self.base();
        let mut halves = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|error| io(&folder, error))? {
            let entry = entry.map_err(|error| io(&folder, error))?;
            let Some(name) = name_of(&entry.path(), peer) else { continue };
            // Somebody may have taken it meanwhile.
            if let Ok(made) = entry.metadata().and_then(|file| file.modified()) {
                halves.push((made, name));
            }
        }
        halves.sort_by(|one, other| other.cmp(one));
        Ok(halves.into_iter().map(|(_, name)| name).collect())
    }
}

/// The name of the half at `path`, if it is for this peer.
fn name_of(path: &Path, peer: &str) -> Option<MaterialId> {
    let (of, name) = path.file_name()?.to_str()?.rsplit_once('-')?;
    if of == peer { MaterialId::try_from(name.to_owned()).ok() } else { None }
}

#[cfg(test)]
pub(super) mod tests {
    use std::thread;

    use super::*;

    /// A half made of these bytes.
    pub(in super::super) fn half(byte: u8) -> Kept {
        Kept::from_bytes(&[byte; 2 + 16 * 385]).expect("bytes of a half")
    }

    fn name(byte: u8) -> MaterialId {
        MaterialId::new(&[byte; 16])
    }

    #[test]
    fn a_half_is_taken_once_and_by_its_peer_alone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(store.kept_base("a").unwrap(), None);
        store.keep_base("a", &name(1), &half(1)).unwrap();
        store.keep_base("", &name(2), &half(2)).unwrap();
        assert_eq!((store.kept_base("b").unwrap(), store.kept_base("").unwrap()), (None, Some(name(2))));
        assert!(store.take_base("b", &name(1)).unwrap().is_none());
        assert!(store.take_base("a", &name(2)).unwrap().is_none());
        let taken = store.take_base("a", &name(1)).unwrap().expect("the half");
        assert_eq!(*taken.to_bytes(), *half(1).to_bytes());
        assert!(store.take_base("a", &name(1)).unwrap().is_none());
        assert_eq!(store.kept_base("a").unwrap(), None);
    }

    #[test]
    fn of_many_who_want_a_half_one_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for round in 0..20 {
            store.keep_base("a", &name(round), &half(round)).unwrap();
            let takers: Vec<_> = thread::scope(|scope| {
                let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| store.take_base("a", &name(round)))).collect();
                takers.into_iter().map(|taker| taker.join().unwrap().unwrap().is_some()).collect()
            });
            assert!(takers.into_iter().filter(|got| *got).count() <= 1);
        }
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many_and_what_is_no_half_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for byte in 0..=MOST as u8 {
            store.keep_base("a", &name(byte), &half(byte)).unwrap();
            // Times of files may be coarse.
            thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(store.kept_base("a").unwrap(), Some(name(MOST as u8)));
        assert!(store.take_base("a", &name(0)).unwrap().is_none());
        fs::write(store.half("a", &name(1)), b"something else").unwrap();
        assert!(store.take_base("a", &name(1)).unwrap().is_none());
        assert!(!store.half("a", &name(1)).exists());
    }

    #[test]
    fn a_sealed_store_seals_halves() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open_with(directory.path(), Some(privet_seal::StateKey::new(&[1; 32]))).unwrap();
        store.keep_base("a", &name(1), &half(7)).unwrap();
        let bytes = fs::read(store.half("a", &name(1))).unwrap();
        assert!(!bytes.windows(32).any(|window| window == [7; 32]));
        // Under another name it is nothing.
        fs::rename(store.half("a", &name(1)), store.half("b", &name(1))).unwrap();
        assert!(store.take_base("b", &name(1)).unwrap().is_none());
        store.keep_base("a", &name(2), &half(7)).unwrap();
        assert!(store.take_base("a", &name(2)).unwrap().is_some());
    }
}
