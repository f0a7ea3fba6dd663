//! Counts of the answers that each client got in the last hour.
//!
//! Every answer tells a little of the weights, so a limit must hold when a server is started again, and over all its sessions
//! and processes. So the counts are files: one a client, replaced as a whole and flushed before the answer is given, under a
//! lock that all processes share. A count takes two flushes of a small file, and only where there is a limit.
//!
//! Times are those of the system's clock. If that is set back, answers from its future count as given now.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::StoreError;

/// How long an answer counts.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Bytes of a file for each time that answers were given: milliseconds since 1970 in eight, how many answers in four.
const RECORD: usize = 12;

/// A folder of counts.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    folder: PathBuf,
}

impl Allowance {
    /// The counts in `folder`, which is made if need be; of clients that have not come for an hour they are removed.
    pub(crate) fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let allowance = Self { folder: folder.into() };
        let folder = &allowance.folder;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| io(folder, error))?;
        let _lock = allowance.lock()?;
        for entry in fs::read_dir(folder).map_err(|error| io(folder, error))?.flatten() {
            let old = entry
                .metadata()
                .and_then(|file| file.modified())
                .is_ok_and(|then| SystemTime::now().duration_since(then).is_ok_and(|age| age > HOUR));
            if old && entry.file_name() != LOCK {
                // What stays takes little room.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(allowance)
    }

    /// Counts `answers` more of a client, who may have `per_hour`; if they are too many, none is counted, and this is
    /// how long until they are not. Fails with [`StoreError::Io`], and [`StoreError::Damaged`] for a file that is no
    /// count.
    pub(crate) fn take(
        &self,
        client: &str,
        per_hour: u32,
        answers: u32,
        now: SystemTime,
    ) -> Result<Option<Duration>, StoreError> {
        let name: String = Sha256::digest(client).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.folder.join(name);
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let _lock = self.lock()?;
        let mut entries = read(&path)?;
        let clock_went_back = entries.iter().any(|&(time, _)| time > now);
        entries.iter_mut().for_each(|(time, _)| *time = (*time).min(now));
        entries.retain(|&(time, _)| now - time < HOUR.as_millis() as u64);
        let mut total: u64 = entries.iter().map(|&(_, count)| u64::from(count)).sum();
        let allowed = u64::from(per_hour);
        if total + u64::from(answers) <= allowed {
            entries.push((now, answers));
            self.write(&path, &entries)?;
            return Ok(None);
        }
        if clock_went_back {
            self.write(&path, &entries)?;
        }
        // The oldest go first.
        let free = entries.iter().find(|&&(_, count)| {
            total -= u64::from(count);
            total + u64::from(answers) <= allowed
        });
        let last = free.map_or(now, |&(time, _)| time);
        Ok(Some(HOUR - Duration::from_millis(now - last)))
    }

    /// Keeps all other processes and threads out.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.folder.join(LOCK);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(|error| io(&path, error))?;
        file.lock().map_err(|error| io(&path, error))?;
        Ok(file)
    }

    fn write(&self, path: &Path, counts: &[(u64, u32)]) -> Result<(), StoreError> {
        let bytes: Vec<u8> =
            counts.iter().flat_map(|(time, count)| [&time.to_le_bytes()[..], &count.to_le_bytes()].concat()).collect();
        let fresh = self.folder.join(FRESH);
        let result = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&fresh);
        let result = result.and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        result.and_then(|()| fs::rename(&fresh, path)).map_err(|error| io(path, error))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(|error| io(&self.folder, error))
    }
}

/// Names that no client's file has.
const LOCK: &str = "lock";
const FRESH: &str = "fresh";

fn read(path: &Path) -> Result<Vec<(u64, u32)>, StoreError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(path, error)),
    };
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if !rest.is_empty() {
        let problem = format!("it has {} bytes", bytes.len());
        return Err(StoreError::Damaged { path: path.display().to_string(), problem });
    }
    let record = |record: &[u8; RECORD]| {
        let (time, count) = record.split_at(8);
        (u64::from_le_bytes(time.try_into().expect("8 bytes")), u32::from_le_bytes(count.try_into().expect("4 bytes")))
    };
    Ok(records.iter().map(record).collect())
}

fn io(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
    }

    #[test]
    fn an_hour_has_so_many_answers_however_often_the_counts_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let take = |client: &str, answers, seconds| {
            Allowance::open(folder.path()).unwrap().take(client, 3, answers, at(seconds)).unwrap()
        };
        assert_eq!([take("a", 1, 0), take("a", 1, 10), take("a", 1, 20)], [None; 3]);
        assert_eq!(take("a", 1, 100), Some(Duration::from_secs(3500)));
        assert_eq!(take("a", 2, 100), Some(Duration::from_secs(3510)));
        assert_eq!(take("b", 3, 100), None);
        // What is refused is not counted, and the oldest is free again after an hour.
        assert_eq!([take("a", 1, 3599), take("a", 1, 3600)], [Some(Duration::from_secs(1)), None]);
        assert_eq!(take("a", 1, 3601), Some(Duration::from_secs(9)));
        // A clock that is set back neither frees answers nor locks a client out for ever.
        assert_eq!(take("a", 1, 0), Some(Duration::from_secs(3600)));
        assert_eq!(take("a", 3, 3600), None);
    }

    #[test]
    fn answers_taken_at_once_are_counted_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let count = std::thread::scope(|scope| {
            let takes: Vec<_> = (0..4)
                .map(|_| {
                    let allowance = Allowance::open(folder.path()).unwrap();
                    scope.spawn(move || (0..5).filter(|_| allowance.take("a", 7, 1, at(0)).unwrap().is_none()).count())
                })
                .collect();
            takes.into_iter().map(|take| take.join().unwrap()).sum::<usize>()
        });
        assert_eq!(count, 7);
    }

    #[test]
    fn a_count_that_cannot_be_read_gives_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let allowance = Allowance::open(folder.path()).unwrap();
        allowance.take("a", 9, 1, at(0)).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().flatten().find(|entry| entry.file_name() != LOCK).unwrap();
        fs::write(file.path(), [1; RECORD + 1]).unwrap();
        assert!(matches!(allowance.take("a", 9, 1, at(0)), Err(StoreError::Damaged { .. })));
    }
}
