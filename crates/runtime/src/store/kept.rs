//! Encrypted weights of servers that this client keeps, and the secret from which a server's key to them grows.
//!
//! `kept/PROGRAM-PEER-SUITE-MODEL` is written whole. Of a peer's model in a suite the two programs that were used last stay, and what has not
//! been used for a month goes, such as what came under a certificate that has been renewed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use privet_prg::Seed;
use privet_seal::StateKey;
use sha2::{Digest, Sha256};

use super::{Store, StoreError, folder_of};
use crate::Error;

/// Programs of one model whose weights are kept: an application may move from one version to the next.
const MOST: usize = 2;

impl Store {
    /// The secret from which a client's key to kept weights of a program grows: another for every client, so that answers to one tell
    /// nothing of another's key.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Damaged`].
    pub fn kept_key(&self, program: &str, client: &str) -> Result<Seed, Error> {
        let secret = self.secret(&format!("kept-key-{program}"))?;
        let hash = Sha256::new_with_prefix(b"privet kept weights of a client").chain_update(secret.as_bytes());
        let hash = hash.chain_update(client).finalize();
        Ok(Seed::from_bytes(hash[..16].try_into().expect("16 bytes")))
    }

    /// Whether encrypted weights of a program in a suite are kept here, whoever sent them.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn keeps(&self, program: &str, suite: &str) -> Result<bool, StoreError> {
        Ok(!self.kept_of(program, suite)?.is_empty())
    }

    /// Removes what is kept of a program in a suite, whoever sent it.
    pub(crate) fn forget_kept(&self, program: &str, suite: &str) -> Result<(), StoreError> {
        self.kept_of(program, suite)?.iter().try_for_each(|path| self.remove(path))
    }

    fn kept_of(&self, program: &str, suite: &str) -> Result<Vec<PathBuf>, StoreError> {
        let suite = short(suite);
        let is_of = |path: &PathBuf| {
            let parts: Vec<&str> = name_of(path).split('-').collect();
            parts.first() == Some(&program) && parts.get(2) == Some(&suite.as_str())
        };
        Ok(self.files_in(&self.kept())?.into_iter().map(|(_, path)| path).filter(is_of).collect())
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
    pub(crate) fn forget_earlier(&self, path: &Path) -> Result<(), StoreError> {
        let of = |path: &Path| name_of(path).split_once('-').map(|(_, rest)| rest.to_owned());
        let mut those = self.files_in(folder_of(path))?;
        those.retain(|(_, other)| of(other) == of(path) && other != path);
        those.sort_unstable_by(|one, other| other.cmp(one));
        those.iter().skip(MOST - 1).try_for_each(|(_, old)| self.remove(old))
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
        store.forget_earlier(&third).unwrap();
        assert!(!first.exists() && second.exists() && third.exists() && other.exists());
        assert!(store.keeps("b", "suite").unwrap());
        assert!(!store.keeps("b", "another").unwrap());
        assert!(!store.keeps("a", "suite").unwrap());
        let renewed = store.kept_weights("b", "m", "renewed", "suite");
        fs::write(&renewed, b"weights").unwrap();
        store.forget_kept("b", "another").unwrap();
        assert!(second.exists() && renewed.exists());
        store.forget_kept("b", "suite").unwrap();
        assert!(!second.exists() && !renewed.exists() && third.exists());
        let second = write("b", "m", 2);
        let old = write("o", "other", 31);
        store.touch(&second);
        let store = Store::open(directory.path()).unwrap();
        assert!(!old.exists() && second.exists());
        assert!(!store.keeps("o", "suite").unwrap());
    }
}
