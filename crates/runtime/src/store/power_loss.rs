//! Power losses: what a disk may hold when the power fails between any two steps of a store, and what the store makes of it.
//!
//! A [`Recorder`] stands in for the disk. It does everything for real in a folder of its own, without syncing, and writes down
//! what was done. From a beginning of that record [`crash`] makes a folder as a disk could hold it: of what was not synced,
//! names are there or not in any combination, and bytes are whole, cut, zero or missing. A store is opened there, sometimes
//! only to lose power again while it sweeps, and must keep what it had promised by then.
//!
//! A test that finds nothing proves nothing, so each sync that matters is left out once, and then something must be found.
//! `PRIVET_POWER_LOSSES` sets the number of random histories, of which each is cut at many places.

mod disk;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use privet_prg::{Prg, Seed};
use privet_shark::{Error as CheckError, PeerMisbehaved, Turns};
use tempfile::TempDir;

use self::disk::{Event, LeaveOut, Model, Random, Recorder, below};
use super::base_ots::tests::half;
use super::files::Files;
use super::tests::metadata_of;
use super::{MaterialId, Metadata, Store};
use crate::Error;

/// A folder in memory where there is such a thing: thousands of small files are slow on a busy disk.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[derive(Clone, Debug, PartialEq)]
enum Fact {
    /// A store was opened.
    Opened,
    /// This material is ready, made with this setup.
    Ready(u8, Option<u8>),
    /// Somebody begins to claim this material.
    Claiming(u8),
    /// Somebody reads this material.
    Used(u8),
    /// This setup is here.
    Kept(u8),
    /// A run waits for its turn to check; its mark may cost the setup.
    Turn(u8),
    /// A check begins, which may tell the peer something.
    Checking(u8),
    /// It has gone well.
    Checked(u8),
    /// The setup was given up.
    GivenUp(u8),
    /// Somebody uses this half of what stands in for base OTs.
    TookHalf(u8),
    /// The store's secret.
    Secret([u8; 16]),
}

const PROGRAM: &str = "p";

/// Steps of a history.
const STEPS: usize = 10;

fn material(number: u8) -> Vec<u8> {
    [vec![number; 30], vec![99; 3]].concat()
}

fn name(number: u8) -> MaterialId {
    MaterialId::new(&[number; 16])
}

fn setup_bytes(number: u8) -> Vec<u8> {
    [vec![number; 16], vec![77; 40]].concat()
}

/// Some life of a store, in which somebody may open it again at any time.
struct Life<'a> {
    recorder: &'a Arc<Recorder>,
    store: Store,
    /// How many entries were made, and how many setups.
    entries: u8,
    setups: u8,
    /// Halves of what stands in for base OTs.
    halves: u8,
}

fn open(recorder: &Arc<Recorder>) -> Store {
    let files: Arc<dyn Files> = Arc::clone(recorder) as Arc<dyn Files>;
    Store::open_on(files, recorder.base.join("deep/store"), None).unwrap()
}

impl Life<'_> {
    fn live(&mut self, steps: usize, prg: &mut Prg) {
        for _ in 0..steps {
            match below(10, prg) {
                0 | 1 => self.put(prg),
                2 => self.add_setup(),
                3 => self.claim(prg),
                4 | 5 => self.check(prg),
                6 => {
                    self.store = open(self.recorder);
                    self.recorder.fact(Fact::Opened);
                }
                7 => self.keep_half(),
                8 => self.take_half(prg),
                _ => self.secret(),
            }
        }
    }

    fn keep_half(&mut self) {
        self.store.keep_base("", &name(self.halves), &half(self.halves));
        self.halves += 1;
    }

    fn take_half(&mut self, prg: &mut Prg) {
        if self.halves == 0 {
            return;
        }
        let number = below(self.halves.into(), prg) as u8;
        if self.store.take_base("", &name(number)).unwrap().is_some() {
            self.recorder.fact(Fact::TookHalf(number));
        }
    }

    fn put(&mut self, prg: &mut Prg) {
        let number = self.entries;
        let setup = (self.setups > 0 && prg.bit()).then(|| below(self.setups.into(), prg) as u8);
        let metadata = Metadata { setup: setup.map(name), program: PROGRAM.into(), ..metadata_of(number) };
        self.entries += 1;
        self.store.put(&metadata, &material(number)).unwrap();
        self.recorder.fact(Fact::Ready(number, setup));
    }

    fn claim(&mut self, prg: &mut Prg) {
        if self.entries == 0 {
            return;
        }
        let number = below(self.entries.into(), prg) as u8;
        self.recorder.fact(Fact::Claiming(number));
        if self.store.claim(&name(number)).is_ok() {
            self.recorder.fact(Fact::Used(number));
        }
    }

    fn add_setup(&mut self) {
        if self.setups == 3 {
            return;
        }
        let setups = self.store.setups(PROGRAM, "");
        let number = self.setups;
        let fill = |out: &mut dyn Write| {
            out.write_all(&setup_bytes(number)).map_err(|error| Error::from(super::io(Path::new("a setup"), error)))
        };
        setups.add(&name(number), fill).unwrap();
        self.recorder.fact(Fact::Kept(number));
        self.setups += 1;
    }

    /// A check that goes well, fails, or never ends.
    fn check(&mut self, prg: &mut Prg) {
        if self.setups == 0 {
            return;
        }
        let number = below(self.setups.into(), prg) as u8;
        let entry = self.store.setups(PROGRAM, "").entry(&name(number));
        let (end, recorder) = (below(4, prg), self.recorder);
        let mut check = || {
            recorder.fact(Fact::Checking(number));
            match end {
                0 | 1 => {
                    recorder.fact(Fact::Checked(number));
                    Ok(())
                }
                2 => Err(CheckError::from(PeerMisbehaved::Check)),
                // As a process that is killed: locks are gone, files stay.
                _ => std::panic::resume_unwind(Box::new("killed in its turn")),
            }
        };
        self.recorder.fact(Fact::Turn(number));
        let take = std::panic::AssertUnwindSafe(|| entry.take(&mut check));
        if let Ok(Err(error)) = std::panic::catch_unwind(take)
            && error.spoils_setup()
        {
            self.recorder.fact(Fact::GivenUp(number));
        }
    }

    fn secret(&self) {
        let secret = self.store.secret("s").unwrap();
        self.recorder.fact(Fact::Secret(*secret.as_bytes()));
    }
}

/// What is wrong with a store after a power loss, given what was done before it.
fn broken(base: &Path, before: &[Event]) -> Option<String> {
    let root = base.join("deep/store");
    let recorder = Recorder::new(base, |_, _| false);
    let store = Store::open_on(recorder, root, None).map_err(|error| error.to_string());
    let store = match store {
        Ok(store) => store,
        Err(error) => return Some(error),
    };
    let facts: Vec<&Fact> =
        before.iter().filter_map(|event| if let Event::Fact(fact) = event { Some(fact) } else { None }).collect();
    let is = |fact: Fact| facts.contains(&&fact);
    let setups = store.setups(PROGRAM, "");
    let names: Vec<MaterialId> = match setups.kept() {
        Ok(setups) => setups.into_iter().map(|setup| setup.name).collect(),
        Err(error) => return Some(error.to_string()),
    };
    for number in 0..3 {
        let checks = [Fact::Checking(number), Fact::Checked(number), Fact::GivenUp(number)];
        let last = facts.iter().rev().find(|fact| checks.contains(fact));
        let entry = setups.entry(&name(number));
        match (last, names.contains(&name(number))) {
            (Some(Fact::Checking(_) | Fact::GivenUp(_)), true) => return Some(format!("setup {number} comes back")),
            (None, false) if is(Fact::Kept(number)) && !is(Fact::Turn(number)) => {
                return Some(format!("setup {number} was lost"));
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        match entry.open().map(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) if bytes != setup_bytes(number) => return Some(format!("setup {number} is damaged")),
            _ => {}
        }
    }
    let listed = match store.list() {
        Ok(listed) => listed,
        Err(error) => return Some(error.to_string()),
    };
    for number in 0..STEPS as u8 {
        let (listed, claimed) = (listed.iter().any(|entry| entry.id == name(number)), store.claim(&name(number)));
        // A setup that a run had its turn with may be given up, and its material with it.
        let must_be_here = facts.iter().any(|fact| match fact {
            Fact::Ready(ready, setup) => *ready == number && setup.is_none_or(|setup| !is(Fact::Turn(setup))),
            _ => false,
        });
        match claimed {
            Ok(_) if is(Fact::Used(number)) => return Some(format!("material {number} is used twice")),
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                if bytes != material(number) {
                    return Some(format!("material {number} is damaged"));
                }
            }
            Err(error) if listed => return Some(format!("material {number} is listed, but {error}")),
            Err(_) if must_be_here && !is(Fact::Claiming(number)) => {
                return Some(format!("material {number} was lost"));
            }
            Err(_) => {}
        }
    }
    for number in 0..STEPS as u8 {
        match store.take_base("", &name(number)) {
            Ok(Some(_)) if is(Fact::TookHalf(number)) => return Some(format!("half {number} is used twice")),
            Ok(Some(taken)) if *taken.to_bytes() != *half(number).to_bytes() => {
                return Some(format!("half {number} is damaged"));
            }
            Err(error) => return Some(error.to_string()),
            _ => {}
        }
    }
    let secret = facts.iter().find_map(|fact| if let Fact::Secret(secret) = fact { Some(secret) } else { None });
    match (secret, store.secret("s")) {
        (Some(secret), Ok(now)) if secret != now.as_bytes() => Some("the secret is another one".into()),
        (_, Err(error)) => Some(error.to_string()),
        _ => None,
    }
}

/// Cuts a history at a random place, sometimes once more while the store sweeps, and looks at what is left.
fn crash(base: &Path, events: &[Event], leave_out: LeaveOut, prg: &mut Prg) -> Option<String> {
    let before = &events[..=below(events.len(), prg)];
    let mut place = folder();
    Model::new(before).crash(base, place.path(), prg);
    if prg.below(4) == 0 && place.path().join("deep").exists() {
        let recorder = Recorder::new(place.path(), leave_out);
        recorder.take_up();
        let first = recorder.events().len();
        open(&recorder);
        let swept = recorder.events();
        let end = first + below(swept.len() - first + 1, prg);
        let next_place = folder();
        Model::new(&swept[..end]).crash(place.path(), next_place.path(), prg);
        place = next_place;
    }
    broken(place.path(), before)
}

/// The first thing that goes wrong in so many histories, if anything does.
fn find(histories: u64, leave_out: LeaveOut) -> Option<String> {
    (0..histories).find_map(|seed| {
        let mut prg = Prg::from_seed(&Seed::from_block(u128::from(seed)));
        let base = folder();
        let recorder = Recorder::new(base.path(), leave_out);
        let mut life = Life { store: open(&recorder), recorder: &recorder, entries: 0, setups: 0, halves: 0 };
        recorder.fact(Fact::Opened);
        life.live(STEPS, &mut prg);
        let events = recorder.events();
        (0..25).find_map(|_| crash(base.path(), &events, leave_out, &mut prg)).map(|what| format!("{seed}: {what}"))
    })
}

fn histories() -> u64 {
    std::env::var("PRIVET_POWER_LOSSES").ok().and_then(|count| count.parse().ok()).unwrap_or(30)
}

#[test]
fn nothing_is_used_twice_and_no_spoiled_setup_looks_whole_after_a_power_loss() {
    assert_eq!(find(histories(), |_, _| false), None);
}

/// Each sync that matters, by what it is for.
const SYNCS: [(&str, LeaveOut); 11] = [
    ("the bytes of a new file", |path, last| {
        last.is_none() && path.extension().is_some_and(|extension| extension == "partial")
    }),
    ("the folder in which the store was made", |path, _| path.ends_with("deep")),
    ("the store's own folder", |path, _| path.ends_with("store")),
    ("the names of what is ready", |path, _| path.ends_with("ready")),
    ("the spent markers", |path, _| path.ends_with("spent")),
    ("the folder of a program's and peer's setups", |path, _| path.ends_with("setups")),
    ("the names of setups", |path, last| path.ends_with("p-") && matches!(last, Some(Event::Link(..)))),
    ("the mark of a check", |path, last| path.ends_with("p-") && matches!(last, Some(Event::Create(..)))),
    ("the removal of a setup", |path, last| path.ends_with("p-") && matches!(last, Some(Event::Remove(_)))),
    ("the removal of what stood in for base OTs", |path, last| {
        path.ends_with("base") && matches!(last, Some(Event::Remove(_)))
    }),
    ("the secret", |path, _| path.ends_with("secrets")),
];

#[test]
fn without_any_one_of_the_syncs_a_power_loss_breaks_something() {
    for (what, leave_out) in SYNCS {
        assert!(find(400, leave_out).is_some(), "nothing was found without a sync of {what}");
    }
}
