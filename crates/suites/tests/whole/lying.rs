//! A party that follows the protocol on other shares, keys or weights than it was given: no wrong output goes through.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use privet_channel::pair;
use privet_suites::MaterialId;
use privet_suites::sharing::Truncation;

use crate::deviating::Scene;
use crate::parties::{RESIDUAL, StoreFolder};

/// Places in a file at which a bit is flipped, spread evenly.
const PLACES: u64 = 24;

/// What a party has on disk and could lie about.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Entry,
    Setup,
}

impl Kept {
    fn path(self, folder: &StoreFolder, id: &MaterialId) -> PathBuf {
        match self {
            Self::Entry => folder.path().join("ready").join(format!("{id}.material")),
            Self::Setup => folder.setups().remove(0),
        }
    }
}

/// How runs end in which a bit of what `liar` keeps is flipped.
#[derive(Debug, Default)]
struct Ends {
    failed: usize,
    right: usize,
    wrong: usize,
}

fn lie(scene: &Scene, target: Kept, liar: usize) -> Ends {
    let mut ends = Ends::default();
    for place in 0..PLACES {
        let folders = [StoreFolder::new(), StoreFolder::new()];
        let id = scene.prepare(&folders);
        flip(&target.path(&folders[liar], &id), place);
        match scene.infer_on(&id, pair(), &folders).0 {
            Err(_) => ends.failed += 1,
            Ok(outputs) if scene.is_right(&outputs) => ends.right += 1,
            Ok(_) => ends.wrong += 1,
        }
    }
    ends
}

/// Flips a low bit of a byte.
fn flip(path: &PathBuf, place: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("a file");
    let at = place * (file.metadata().expect("a file").len() - 1) / (PLACES - 1);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 2], at).expect("a byte");
}

#[test]
fn no_lie_about_what_was_dealt_goes_through() {
    let scene = Scene::malicious(&RESIDUAL, Truncation::OneBit);
    for liar in [0, 1] {
        for target in [Kept::Entry, Kept::Setup] {
            let ends = lie(&scene, target, liar);
            // What a comparison's key says of a level is read by one of the two parties alone, so some lies are none.
            let caught = match target {
                Kept::Entry => ends.failed >= 4,
                Kept::Setup => ends.right == 0,
            };
            assert!(ends.wrong == 0 && caught, "{target:?} of {liar}: {ends:?}");
        }
    }
}

#[test]
fn in_the_semi_honest_mode_lies_choose_the_output() {
    let scene = Scene::semi_honest(&RESIDUAL, Truncation::OneBit);
    for liar in [0, 1] {
        let ends = lie(&scene, Kept::Entry, liar);
        assert!(ends.wrong > 0, "{liar}: {ends:?}");
    }
}
