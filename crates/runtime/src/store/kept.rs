//! Encrypted weights of servers that this client keeps, and the secret from which a server's key to them grows.
//!
//! `kept/PROGRAM-PEER-SUITE-MODEL` is written whole. Of a peer's model in a suite the two programs that were used last stay, and what has not
//! been used for a month goes, such as what came under a certificate that has been renewed. Under a limit on the store, what was used
//! longest ago makes place for what comes.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use privet_prg::Seed;
use privet_seal::StateKey;
use sha2::{Digest, Sha256};

use super::room::length;
use super::{Store, StoreError, folder_of};
use crate::Error;

/// Programs of one model whose weights are kept: an application may move from one version to the next.
const MOST: usize = 2;

/// Encrypted weights that were removed to make place for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evicted {
    /// The hash of their program.
    pub program: String,
    /// The fingerprint of the certificate of the server that sent them.
    pub peer: String,
    cause: Cause,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    Newer,
    Limit(u64),
}

impl Evicted {
    fn new(path: &Path, cause: Cause) -> Self {
        let mut parts = name_of(path).split('-').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        Self { program: part(), peer: part(), cause }
    }
}

impl fmt::Display for Evicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, peer, cause } = self;
        write!(
            f,
            "the encrypted weights of program {program:.16} from server {peer:.16} were removed, and will be fetched anew: "
        )?;
        match cause {
            Cause::Newer => write!(f, "of a model this side keeps the {MOST} programs that it used last"),
            Cause::Limit(bytes) => {
                write!(f, "beside those that come there is no room within the limit of {bytes} bytes on disk")
            }
        }
    }
}

impl Store {
    /// The secret from which a client's key to kept weights of a program grows: another for every client, so that answers to one tell
    /// nothing of another's key.
    pub fn kept_key(&self, program: &str, client: &str) -> Result<Seed, Error> {
        let secret = self.secret(&format!("kept-key-{program}"))?;
        let hash = Sha256::new_with_prefix(b"privet kept weights of a client").chain_update(secret.as_bytes());
        let hash = hash.chain_update(client).finalize();
        Ok(Seed::from_bytes(hash[..16].try_into().expect("16 bytes")))
    }

    /// The names of the files with encrypted weights of a program in a suite: one for each server that sent some.
    pub fn kept_names(&self, program: &str, suite: &str) -> Result<Vec<String>, StoreError> {
        let suite = short(suite);
        let is_of = |name: &String| {
            let parts: Vec<&str> = name.split('-').collect();
            parts.first() == Some(&program) && parts.get(2) == Some(&suite.as_str())
        };
        let files = self.files_in(&self.kept())?;
        Ok(files.iter().map(|(_, path)| name_of(path).to_owned()).filter(is_of).collect())
    }

    /// As [`Store::write_whole`] of `bytes` bytes of encrypted weights; what was removed for them. Fails with
    /// [`StoreError::Full`] if there is no room within the limit even without all others: they stay then; with
    /// those of `fill`.
    pub(crate) fn write_kept<E: From<StoreError>>(
        &self,
        path: &Path,
        bytes: u64,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<Vec<Evicted>, E> {
        let (mut evicted, partial) = self.reserve_kept(self.stored_bytes(bytes))?;
        self.write_into(partial, path, fill)?;
        evicted.extend(self.forget_earlier(path)?);
        Ok(evicted)
    }

    /// Makes room for a file of `bytes` bytes, and the file.
    fn reserve_kept(&self, bytes: u64) -> Result<(Vec<Evicted>, (PathBuf, File)), StoreError> {
        let Some(limit) = self.limit else { return Ok((Vec::new(), self.partial(bytes)?)) };
        let lock = self.lock_room()?;
        let mut files = self.files_in(&self.kept())?;
        files.sort_unstable();
        let mut sizes = Vec::new();
        for (_, path) in &files {
            sizes.push(length(path)?);
        }
        let mut excess = self.bytes()?.saturating_add(bytes).saturating_sub(limit);
        if excess > sizes.iter().sum() {
            return Err(self.full(bytes, limit));
        }
        let mut evicted = Vec::new();
        for ((_, path), size) in files.iter().zip(sizes) {
            if excess == 0 {
                break;
            }
            self.remove(path)?;
            evicted.push(Evicted::new(path, Cause::Limit(limit)));
            excess = excess.saturating_sub(size);
        }
        let partial = self.partial(bytes)?;
        drop(lock);
        Ok((evicted, partial))
    }

    /// Bytes of all encrypted weights that are kept here.
    pub(super) fn kept_bytes(&self) -> Result<u64, StoreError> {
        self.files_in(&self.kept())?.iter().map(|(_, path)| length(path)).sum()
    }

    /// Where the encrypted weights lie that a peer's program, of this model, has in a suite, if they were received.
    pub(crate) fn kept_weights(&self, program: &str, model: &str, peer: &str, suite: &str) -> PathBuf {
        self.kept().join(format!("{program}-{peer}-{}-{}", short(suite), short(model)))
    }

    /// Notes that what lies there is in use.
    pub(crate) fn touch(&self, path: &Path) {
        // It goes a month after the last time that this succeeded.
        let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes a file that serves nobody any more.
    pub(crate) fn forget(&self, path: &Path) -> Result<(), StoreError> {
        self.remove(path)
    }

    /// Removes what is kept of earlier programs of the model whose weights at `path` have just come.
    fn forget_earlier(&self, path: &Path) -> Result<Vec<Evicted>, StoreError> {
        let of = |path: &Path| name_of(path).split_once('-').map(|(_, rest)| rest.to_owned());
        let mut those = self.files_in(folder_of(path))?;
        those.retain(|(_, other)| of(other) == of(path) && other != path);
        those.sort_unstable_by(|one, other| other.cmp(one));
        let old = those.iter().skip(MOST - 1);
        old.map(|(_, old)| self.remove(old).map(|()| Evicted::new(old, Cause::Newer))).collect()
    }

    /// The same store, whose files are sealed all the same if it has no key: under one that hides nothing and tells what has changed.
    pub(crate) fn checked(&self) -> Self {
        let key = self.key.clone().or_else(|| Some(StateKey::new(&[0; 32])));
        Self { key, ..self.clone() }
    }

    fn kept(&self) -> PathBuf {
        self.root.join("kept")
    }
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Eight digits that stand for a text in a file's name.
fn short(text: &str) -> String {
    Sha256::digest(text.as_bytes())[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_is_each_clients_own_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let key = |program: &str, client: &str| {
            Store::open(directory.path()).unwrap().kept_key(program, client).unwrap().as_bytes().to_owned()
        };
        let first = key("p", "ann");
        assert_eq!(key("p", "ann"), first);
        assert_ne!(key("p", "bob"), first);
        assert_ne!(key("q", "ann"), first);
    }

    #[test]
    fn of_a_model_two_programs_stay_and_what_is_not_used_goes() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let write = |program: &str, model: &str, days: u64| {
            let path = store.kept_weights(program, model, "peer", "suite");
            fs::write(&path, b"weights").unwrap();
            let used = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
            File::options().append(true).open(&path).unwrap().set_modified(used).unwrap();
            path
        };
        let other = write("o", "other", 20);
        let (first, second, third) = (write("a", "m", 3), write("b", "m", 2), write("c", "m", 0));
        let evicted = store.forget_earlier(&third).unwrap();
        assert_eq!(evicted, [Evicted { program: "a".into(), peer: "peer".into(), cause: Cause::Newer }]);
        assert!(!first.exists() && second.exists() && third.exists() && other.exists());
        let kept = |program: &str, suite: &str| store.kept_names(program, suite).unwrap();
        assert_eq!(kept("b", "suite"), [name_of(&second)]);
        assert!(kept("b", "another").is_empty() && kept("a", "suite").is_empty());
        fs::write(store.kept_weights("b", "m", "renewed", "suite"), b"weights").unwrap();
        assert_eq!(kept("b", "suite").len(), 2);
        let old = write("o", "other", 31);
        store.touch(&second);
        let store = Store::open(directory.path()).unwrap();
        assert!(!old.exists() && second.exists());
        assert!(store.kept_names("o", "suite").unwrap().is_empty());
    }

    #[test]
    fn within_a_limit_what_was_used_longest_ago_makes_place() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap().within(1000);
        let path = |peer: &str| store.kept_weights("p", "m", peer, "suite");
        let write = |peer: &str, bytes: u64| {
            let fill = |out: &mut dyn Write| -> Result<(), StoreError> {
                out.write_all(&vec![7; bytes as usize]).map_err(|error| super::super::io(&path(peer), error))
            };
            store.write_kept(&path(peer), bytes, fill)
        };
        let gone = |evicted: Vec<Evicted>| evicted.into_iter().map(|eviction| eviction.peer).collect::<Vec<_>>();
        // Two servers of one program stay, within the limit.
        assert!(gone(write("ann", 400).unwrap()).is_empty());
        assert!(gone(write("bob", 400).unwrap()).is_empty());
        assert_eq!(store.bytes().unwrap(), 800);
        // Weights that are kept leave material its room.
        drop(store.begin(1000).unwrap());
        let used = SystemTime::now() - Duration::from_secs(60);
        File::options().append(true).open(path("bob")).unwrap().set_modified(used).unwrap();
        let evicted = write("eve", 300).unwrap();
        let text = evicted[0].to_string();
        assert!(text.contains("of program p from server bob") && text.contains("1000 bytes"), "{text}");
        assert_eq!(gone(evicted), ["bob"]);
        assert!(path("ann").exists() && path("eve").exists() && !path("bob").exists());
        // What finds no room at all takes nobody's place.
        assert!(matches!(write("bob", 1001), Err(StoreError::Full { needed: 1001, .. })));
        assert!(path("ann").exists() && path("eve").exists());
        assert_eq!(gone(write("bob", 1000).unwrap()), ["ann", "eve"]);
    }
}
