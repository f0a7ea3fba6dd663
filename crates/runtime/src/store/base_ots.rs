//! Random OTs that a session left for the next with the same peer ([`Kept`]), in place of base OTs.
//!
//! `base/PEER-ID` is this party's half, with the name of the material that the session made, and a digest. It is written
//! whole, and taken once: its name is gone from the disk before a byte of it is used. Nothing needs to remember it then. Whoever
//! names a half has locked and read it, so that it is there and whole. A peer that does not have the other half says so, and
//! both begin with base OTs: it costs that work, no secret, whichever party lost its state or went back to a copy.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use privet_ot::{BaseOts, Kept};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::room::is_at;
use super::{MaterialId, Store, StoreError, folder_of, io};

/// Halves that are kept for one peer, whose sessions may run side by side; the oldest goes.
const MOST: usize = 4;

/// Bytes of the digest behind a half.
const DIGEST_BYTES: usize = 32;

/// More bytes than a half and its digest have.
const MOST_BYTES: usize = 1 << 13;

/// A half that nobody else can take meanwhile.
pub(crate) struct HeldBase {
    pub(crate) name: MaterialId,
    path: PathBuf,
    half: Kept,
    _lock: File,
}

impl Store {
    /// The newest half for this peer that is here, whole and not held by anybody. One that cannot be read goes.
    pub(crate) fn hold_base(&self, peer: &str) -> Result<Option<HeldBase>, StoreError> {
        for name in self.halves(peer)? {
            if let Some(held) = self.hold_half(peer, &name)? {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    /// Takes a half, for good; `None` if it is not here, somebody else has it, or it cannot be read.
    pub(crate) fn take_base(&self, peer: &str, name: &MaterialId) -> Result<Option<Kept>, StoreError> {
        self.hold_half(peer, name)?.map(|held| self.take_held(held)).transpose()
    }

    /// Takes a half that is held, for good.
    pub(crate) fn take_held(&self, held: HeldBase) -> Result<Kept, StoreError> {
        self.remove(&held.path)?;
        self.sync(folder_of(&held.path))?;
        Ok(held.half)
    }

    /// Keeps what a session left, if it did, under the name of what it made.
    pub(crate) fn keep_left(&self, peer: &str, name: &MaterialId, base: &mut BaseOts) {
        if let Some(half) = base.take_left() {
            self.keep_base(peer, name, &half);
        }
    }

    /// Keeps a half for the next session with this peer, and only the newest few. Where that fails there is none: the material
    /// that was made is none the worse for it.
    pub(super) fn keep_base(&self, peer: &str, name: &MaterialId, half: &Kept) {
        let path = self.half(peer, name);
        let bytes = half.to_bytes();
        let result = self.write_whole(&path, |out| {
            let whole = out.write_all(&bytes).and_then(|()| out.write_all(&digest(&bytes)));
            whole.map_err(|error| io(&path, error))
        });
        if result.is_err() {
            // As above; what could not even be removed is not whole, or fits.
            let _ = self.remove(&path);
        }
        for name in self.halves(peer).unwrap_or_default().iter().skip(MOST) {
            self.remove_unless_locked(&self.half(peer, name), || true);
        }
    }

    /// Locks and reads a half; `None` if it is not here, somebody else has it, or it cannot be read, in which case it goes.
    fn hold_half(&self, peer: &str, name: &MaterialId) -> Result<Option<HeldBase>, StoreError> {
        let path = self.half(peer, name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| io(&path, error))?,
        };
        if file.try_lock().is_err() || !is_at(&file, &path) {
            return Ok(None);
        }
        let lock = file.try_clone().map_err(|error| io(&path, error))?;
        let Some(half) = self.read_half(&path, file) else {
            self.remove(&path)?;
            return Ok(None);
        };
        Ok(Some(HeldBase { name: name.clone(), path, half, _lock: lock }))
    }

    fn read_half(&self, path: &Path, file: File) -> Option<Kept> {
        // Of the right size at once: a buffer that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MOST_BYTES));
        self.unseal(path, file).ok()?.take(MOST_BYTES as u64 - 1).read_to_end(&mut bytes).ok()?;
        let (half, tag) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        if digest(half) == tag { Kept::from_bytes(half) } else { None }
    }

    fn half(&self, peer: &str, name: &MaterialId) -> PathBuf {
        self.base().join(format!("{peer}-{name}"))
    }

    fn base(&self) -> PathBuf {
        self.root.join("base")
    }

    /// The names of the halves for a peer, the newest first.
    fn halves(&self, peer: &str) -> Result<Vec<MaterialId>, StoreError> {
        let files = self.files_of(&self.base(), |path| name_of(path, peer).is_some())?.into_iter();
        let mut halves: Vec<_> = files.filter_map(|(created, path)| Some((created, name_of(&path, peer)?))).collect();
        halves.sort_by(|one, other| other.cmp(one));
        Ok(halves.into_iter().map(|(_, name)| name).collect())
    }
}

/// What tells that a half is as it was written.
fn digest(half: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::new_with_prefix(b"privet half in place of base OTs").chain_update(half).finalize().into()
}

/// The name of the half at `path`, if it is for this peer.
fn name_of(path: &Path, peer: &str) -> Option<MaterialId> {
    let (of, name) = path.file_name()?.to_str()?.rsplit_once('-')?;
    if of == peer { MaterialId::try_from(name.to_owned()).ok() } else { None }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::thread;
    use std::time::SystemTime;

    use super::super::sweep::OLDEST;
    use super::*;

    /// A half made of these bytes.
    pub(in super::super) fn half(byte: u8) -> Kept {
        Kept::from_bytes(&[byte; 2 + 16 * 385]).expect("bytes of a half")
    }

    fn newest(store: &Store, peer: &str) -> Option<MaterialId> {
        store.hold_base(peer).unwrap().map(|held| held.name)
    }

    fn name(byte: u8) -> MaterialId {
        MaterialId::new(&[byte; 16])
    }

    #[test]
    fn a_half_is_taken_once_and_by_its_peer_alone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(newest(&store, "a"), None);
        store.keep_base("a", &name(1), &half(1));
        store.keep_base("", &name(2), &half(2));
        assert_eq!((newest(&store, "b"), newest(&store, "")), (None, Some(name(2))));
        assert!(store.take_base("b", &name(1)).unwrap().is_none());
        assert!(store.take_base("a", &name(2)).unwrap().is_none());
        let taken = store.take_base("a", &name(1)).unwrap().expect("the half");
        assert_eq!(*taken.to_bytes(), *half(1).to_bytes());
        assert!(store.take_base("a", &name(1)).unwrap().is_none());
        assert_eq!(newest(&store, "a"), None);
    }

    #[test]
    fn of_many_who_want_a_half_one_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for round in 0..20 {
            store.keep_base("a", &name(round), &half(round));
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
            store.keep_base("a", &name(byte), &half(byte));
            // Times of files may be coarse.
            thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(newest(&store, "a"), Some(name(MOST as u8)));
        assert!(store.take_base("a", &name(0)).unwrap().is_none());
        fs::write(store.half("a", &name(1)), b"something else").unwrap();
        assert!(store.take_base("a", &name(1)).unwrap().is_none());
        assert!(!store.half("a", &name(1)).exists());
    }

    #[test]
    fn a_half_of_which_a_bit_has_changed_is_none_and_goes() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.keep_base("a", &name(1), &half(1));
        store.keep_base("a", &name(2), &half(2));
        let path = store.half("a", &name(2));
        let mut bytes = fs::read(&path).unwrap();
        bytes[3000] ^= 4;
        fs::write(&path, bytes).unwrap();
        // The other one is named in its place.
        assert_eq!(newest(&store, "a"), Some(name(1)));
        assert!(!path.exists());
    }

    #[test]
    fn a_half_that_is_held_is_named_by_nobody_else_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.keep_base("a", &name(1), &half(1));
        let held = store.hold_base("a").unwrap().expect("the half");
        assert_eq!(newest(&store, "a"), None);
        assert!(store.take_base("a", &name(1)).unwrap().is_none());
        for byte in 2..=2 + MOST as u8 {
            thread::sleep(std::time::Duration::from_millis(20));
            store.keep_base("a", &name(byte), &half(byte));
        }
        assert_eq!(*store.take_held(held).unwrap().to_bytes(), *half(1).to_bytes());
        assert!(!store.half("a", &name(1)).exists());
    }

    #[test]
    fn what_nobody_took_for_a_month_goes_at_an_opening() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for (byte, age) in [(1, 0.9), (2, 1.1)] {
            store.keep_base("a", &name(byte), &half(byte));
            let file = File::options().write(true).open(store.half("a", &name(byte))).unwrap();
            file.set_modified(SystemTime::now() - OLDEST.mul_f64(age)).unwrap();
        }
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(store.halves("a").unwrap(), [name(1)]);
    }

    #[test]
    fn a_sealed_store_seals_halves() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open_with(directory.path(), Some(privet_seal::StateKey::new(&[1; 32]))).unwrap();
        store.keep_base("a", &name(1), &half(7));
        let bytes = fs::read(store.half("a", &name(1))).unwrap();
        assert!(!bytes.windows(32).any(|window| window == [7; 32]));
        // Under another name it is nothing.
        fs::rename(store.half("a", &name(1)), store.half("b", &name(1))).unwrap();
        assert!(store.take_base("b", &name(1)).unwrap().is_none());
        store.keep_base("a", &name(2), &half(7));
        assert!(store.take_base("a", &name(2)).unwrap().is_some());
    }
}
