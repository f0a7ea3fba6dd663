//! Sealed files read as they were written, tell nothing, and are refused when anything was changed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use privet_seal::{CHUNK, StateKey, Stored, Writer, sealed_bytes};
use proptest::prelude::*;
use tempfile::TempDir;

/// Where the chunks of a file begin.
const HEADER: usize = 80;
/// Bytes of a whole chunk on disk.
const SEALED: usize = CHUNK + 16;
const MARKER: &[u8] = b"a marker that is long enough to be no accident";

fn key(byte: u8) -> StateKey {
    StateKey::new(&[byte; 32])
}

fn write(path: &Path, plain: &[u8], key: Option<&StateKey>, name: &str) {
    let mut writer = Writer::new(File::create(path).unwrap(), key).unwrap();
    writer.write_all(plain).unwrap();
    writer.finish(name).unwrap();
}

fn read(path: &Path, key: Option<&StateKey>, name: &str) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    Stored::open(File::open(path)?, key, name)?.read_to_end(&mut plain)?;
    Ok(plain)
}

/// That reading fails as a file does that was changed, and what is said of it.
fn refusal(path: &Path, key: &StateKey, name: &str) -> String {
    let error = read(path, Some(key), name).expect_err("a changed file must not be read");
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    error.to_string()
}

fn folder_with(plain: &[u8]) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    write(&path, plain, Some(&key(1)), "one");
    (folder, path)
}

#[test]
fn a_marker_is_on_the_disk_without_a_key_and_not_with_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    let plain = MARKER.repeat(2000);
    for (key, expected) in [(None, true), (Some(key(1)), false)] {
        write(&path, &plain, key.as_ref(), "one");
        let disk = fs::read(&path).unwrap();
        assert_eq!(disk.windows(MARKER.len()).any(|window| window == MARKER), expected);
        assert_eq!(read(&path, key.as_ref(), "one").unwrap(), plain);
    }
}

#[test]
fn the_same_bytes_look_different_each_time() {
    let (_one, one) = folder_with(&[7; 3 * CHUNK]);
    let (_two, two) = folder_with(&[7; 3 * CHUNK]);
    let (one, two) = (fs::read(one).unwrap(), fs::read(two).unwrap());
    assert_ne!(one[HEADER..], two[HEADER..]);
    let chunks: Vec<_> = one[HEADER..].chunks(SEALED).collect();
    assert!(chunks[0] != chunks[1] && chunks[1] != chunks[2]);
}

#[test]
fn another_key_or_name_is_refused() {
    let (_folder, path) = folder_with(b"secret");
    assert_eq!(read(&path, Some(&key(1)), "one").unwrap(), b"secret");
    assert!(refusal(&path, &key(2), "one").contains("another key"));
    assert!(refusal(&path, &key(1), "two").contains("another key or name"));
}

#[test]
fn a_plain_file_is_refused_where_there_is_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    for plain in [&b"short"[..], &[3; 1000]] {
        fs::write(&path, plain).unwrap();
        assert!(refusal(&path, &key(1), "one").contains("not encrypted"));
    }
}

#[test]
fn chunks_cannot_be_exchanged() {
    let plain: Vec<u8> = (0..4 * CHUNK).map(|i| (i / CHUNK) as u8).collect();
    let (_folder, path) = folder_with(&plain);
    let (_other, other) = folder_with(&plain);
    let (whole, other) = (fs::read(&path).unwrap(), fs::read(other).unwrap());
    let chunk = |index: usize| HEADER + index * SEALED..HEADER + (index + 1) * SEALED;

    let mut within = whole.clone();
    within.copy_within(chunk(1), chunk(2).start);
    fs::write(&path, within).unwrap();
    assert!(refusal(&path, &key(1), "one").contains("changed"));

    let mut between = whole.clone();
    between[chunk(1)].copy_from_slice(&other[chunk(1)]);
    fs::write(&path, between).unwrap();
    assert!(refusal(&path, &key(1), "one").contains("changed"));

    fs::write(&path, whole).unwrap();
    assert_eq!(read(&path, Some(&key(1)), "one").unwrap(), plain);
}

#[test]
fn a_file_that_was_cut_or_extended_is_refused_before_its_first_byte() {
    let (_folder, path) = folder_with(&[5; 2 * CHUNK + 10]);
    let whole = fs::read(&path).unwrap();
    for end in [whole.len() - 1, HEADER + SEALED, HEADER] {
        fs::write(&path, &whole[..end]).unwrap();
        let opened = Stored::open(File::open(&path).unwrap(), Some(&key(1)), "one");
        assert!(opened.is_err_and(|error| error.to_string().contains("cut")), "{end}");
    }
    fs::write(&path, &whole[..HEADER - 1]).unwrap();
    assert!(refusal(&path, &key(1), "one").contains("cut"));
    fs::write(&path, [&whole[..], &whole[HEADER..HEADER + SEALED]].concat()).unwrap();
    assert!(refusal(&path, &key(1), "one").contains("extended"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_flipped_bit_is_noticed(bytes in 0..3 * CHUNK, at in any::<prop::sample::Index>(), bit in 0..8) {
        let (_folder, path) = folder_with(&vec![9; bytes]);
        let mut changed = fs::read(&path).unwrap();
        let at = at.index(changed.len());
        changed[at] ^= 1_u8 << bit;
        fs::write(&path, changed).unwrap();
        refusal(&path, &key(1), "one");
    }

    #[test]
    fn sealed_and_plain_files_read_alike(
        bytes in 0..3 * CHUNK,
        reads in prop::collection::vec((any::<prop::sample::Index>(), 0..2 * CHUNK), 1..8),
    ) {
        let plain: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
        let folder = tempfile::tempdir().unwrap();
        let files = [None, Some(key(1))].map(|key| {
            let path = folder.path().join(if key.is_some() { "sealed" } else { "plain" });
            write(&path, &plain, key.as_ref(), "one");
            let expected = if key.is_some() { sealed_bytes(bytes as u64) } else { bytes as u64 };
            assert_eq!(fs::metadata(&path).unwrap().len(), expected);
            Stored::open(File::open(path).unwrap(), key.as_ref(), "one").unwrap()
        });
        for (start, count) in reads {
            let start = start.index(bytes + 10);
            let expected = &plain[start.min(bytes)..(start + count).min(bytes)];
            for mut file in files.clone() {
                let mut out = vec![0; count];
                prop_assert_eq!(file.read_at(&mut out, start as u64).unwrap(), expected.len());
                prop_assert_eq!(&out[..expected.len()], expected);
                file.seek(SeekFrom::Start(start as u64)).unwrap();
                let mut rest = Vec::new();
                file.read_to_end(&mut rest).unwrap();
                prop_assert_eq!(&rest, &plain[start.min(bytes)..]);
            }
        }
    }
}

#[test]
fn a_long_file_that_is_synced_as_it_grows_reads_as_it_was_written() {
    // Two early syncs, and a part of a block behind them.
    let plain: Vec<u8> = (0..(1 << 26) + 12_345_u64).map(|i| ((i * i) >> 7) as u8).collect();
    let (folder, path) = folder_with(&[]);
    for key in [None, Some(key(1))] {
        write(&path, &plain, key.as_ref(), "material");
        assert!(read(&path, key.as_ref(), "material").unwrap() == plain);
    }
    drop(folder);
}

#[test]
fn several_threads_read_one_file() {
    let plain: Vec<u8> = (0..10 * CHUNK).map(|i| (i * 31 % 251) as u8).collect();
    let (_folder, path) = folder_with(&plain);
    let file = Stored::open(File::open(path).unwrap(), Some(&key(1)), "one").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (file, plain) = (&file, &plain);
            scope.spawn(move || {
                for i in 0..200 {
                    let (start, mut out) = ((i * 797 + thread * 4099) % plain.len(), [0; 1000]);
                    let read = file.read_at(&mut out, start as u64).unwrap();
                    assert_eq!(&out[..read], &plain[start..][..read]);
                }
            });
        }
    });
}
