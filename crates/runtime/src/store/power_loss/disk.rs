//! The disk of power losses: what is done to it, in order, and what it may hold when power fails.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use privet_prg::Prg;

use super::super::files::{Disk, Files};
use super::Fact;

/// A file or a folder, whatever names it has.
pub(super) type Node = usize;

/// What was done, in order.
#[derive(Clone, Debug)]
pub(super) enum Event {
    MakeFolder(PathBuf, Node),
    Create(PathBuf, Node),
    /// All bytes of a file, on their way to the disk.
    Bytes(Node, Vec<u8>),
    SyncFile(Node),
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    /// What somebody outside may rely on from here on.
    Fact(Fact),
}

/// Whether a sync of a path is left out, given what was done last in or to it.
pub(super) type LeaveOut = fn(&Path, Option<&Event>) -> bool;

/// The disk, with a record of all that is done to it.
pub(super) struct Recorder {
    pub(super) base: PathBuf,
    leave_out: LeaveOut,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    nodes: BTreeMap<PathBuf, Node>,
    count: Node,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

impl State {
    fn new_node(&mut self, path: &Path) -> Node {
        self.count += 1;
        self.nodes.insert(path.to_owned(), self.count);
        self.count
    }

    /// Notes what a file holds.
    fn bytes(&mut self, path: &Path) -> std::io::Result<Node> {
        let node = self.nodes[path];
        let bytes = fs::read(path)?;
        self.events.push(Event::Bytes(node, bytes));
        Ok(node)
    }

    /// Takes up a folder as it is, all of it safe.
    fn take_up(&mut self, folder: &Path) {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in &paths {
            let node = self.new_node(path);
            if path.is_dir() {
                self.events.push(Event::MakeFolder(path.clone(), node));
                self.take_up(path);
            } else {
                self.events.push(Event::Create(path.clone(), node));
                self.bytes(path).unwrap();
                self.events.push(Event::SyncFile(node));
            }
        }
        self.events.push(Event::SyncFolder(folder.to_owned()));
    }
}

impl Recorder {
    pub(super) fn new(base: &Path, leave_out: LeaveOut) -> Arc<Self> {
        Arc::new(Self { base: base.to_owned(), leave_out, state: Mutex::default() })
    }

    /// Takes up its folder as it is, all of it safe.
    pub(super) fn take_up(&self) {
        self.state.lock().unwrap().take_up(&self.base);
    }

    pub(super) fn fact(&self, fact: Fact) {
        self.state.lock().unwrap().events.push(Event::Fact(fact));
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.state.lock().unwrap().events.clone()
    }
}

impl Files for Recorder {
    fn create(&self, path: &Path) -> std::io::Result<File> {
        let file = Disk.create(path)?;
        let mut state = self.state.lock().unwrap();
        let node = state.new_node(path);
        state.events.push(Event::Create(path.to_owned(), node));
        Ok(file)
    }

    fn make_folder(&self, path: &Path) -> std::io::Result<()> {
        Disk.make_folder(path)?;
        let mut state = self.state.lock().unwrap();
        let node = state.new_node(path);
        state.events.push(Event::MakeFolder(path.to_owned(), node));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let node = state.bytes(from)?;
        Disk.rename(from, to)?;
        state.nodes.remove(from);
        state.nodes.insert(to.to_owned(), node);
        state.events.push(Event::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let node = state.bytes(from)?;
        Disk.link(from, to)?;
        state.nodes.insert(to.to_owned(), node);
        state.events.push(Event::Link(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        Disk.remove(path)?;
        if state.nodes.remove(path).is_some() {
            state.events.push(Event::Remove(path.to_owned()));
        }
        Ok(())
    }

    fn sync_file(&self, _: &File, path: &Path) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let node = state.bytes(path)?;
        if !(self.leave_out)(path, None) {
            state.events.push(Event::SyncFile(node));
        }
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let within = |event: &&Event| match event {
            Event::MakeFolder(place, _) | Event::Create(place, _) | Event::Remove(place) => {
                place.parent() == Some(path)
            }
            Event::Rename(_, place) | Event::Link(_, place) => place.parent() == Some(path),
            _ => false,
        };
        let last = state.events.iter().rev().find(within);
        if path.starts_with(&self.base) && !(self.leave_out)(path, last) {
            state.events.push(Event::SyncFolder(path.to_owned()));
        }
        Ok(())
    }
}

/// Changes to the names in a folder that may be lost or kept, each for itself.
#[derive(Clone)]
enum Change {
    Add(PathBuf, Node),
    Remove(PathBuf),
    /// Within a folder a file has one name or the other.
    Rename(PathBuf, PathBuf, Node),
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Self::Add(path, node) => drop(names.insert(path.clone(), *node)),
            Self::Remove(path) => drop(names.remove(path)),
            Self::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// What is on the disk for certain, what may be, and what programs see.
#[derive(Default)]
pub(super) struct Model {
    safe: BTreeMap<PathBuf, Node>,
    changes: BTreeMap<PathBuf, Vec<Change>>,
    seen: BTreeMap<PathBuf, Node>,
    folders: Vec<Node>,
    /// Bytes on their way, and whether they have arrived.
    bytes: BTreeMap<Node, (Vec<u8>, bool)>,
}

impl Model {
    pub(super) fn new(events: &[Event]) -> Self {
        let mut model = Self::default();
        events.iter().for_each(|event| model.step(event));
        model
    }

    fn change(&mut self, folder: &Path, change: Change) {
        change.apply(&mut self.seen);
        self.changes.entry(folder.to_owned()).or_default().push(change);
    }

    fn step(&mut self, event: &Event) {
        let folder = |path: &Path| path.parent().expect("a folder").to_owned();
        match event {
            Event::MakeFolder(path, node) => {
                self.folders.push(*node);
                self.change(&folder(path), Change::Add(path.clone(), *node));
            }
            Event::Create(path, node) => self.change(&folder(path), Change::Add(path.clone(), *node)),
            Event::Link(from, to) => {
                let node = self.seen[from];
                self.change(&folder(to), Change::Add(to.clone(), node));
            }
            Event::Rename(from, to) if folder(from) == folder(to) => {
                let node = self.seen[from];
                self.change(&folder(to), Change::Rename(from.clone(), to.clone(), node));
            }
            Event::Rename(from, to) => {
                let node = self.seen[from];
                self.change(&folder(to), Change::Add(to.clone(), node));
                self.change(&folder(from), Change::Remove(from.clone()));
            }
            Event::Remove(path) => self.change(&folder(path), Change::Remove(path.clone())),
            Event::Bytes(node, bytes) => {
                // Files are written once, so what was synced before is the same.
                self.bytes.entry(*node).or_insert((bytes.clone(), false));
            }
            Event::SyncFile(node) => {
                if let Some((_, safe)) = self.bytes.get_mut(node) {
                    *safe = true;
                }
            }
            Event::SyncFolder(path) => {
                for change in self.changes.remove(path).unwrap_or_default() {
                    change.apply(&mut self.safe);
                }
            }
            Event::Fact(_) => {}
        }
    }

    /// Writes to `target` what a disk may hold; paths are those below `base`.
    pub(super) fn crash(mut self, base: &Path, target: &Path, prg: &mut Prg) {
        for change in self.changes.into_values() {
            let fate = below(4, prg);
            let last = below(change.len() + 1, prg);
            for (place, change) in change.iter().enumerate() {
                // All, none, the first ones, or any.
                if [true, false, place < last, prg.bit()][fate] {
                    change.apply(&mut self.safe);
                }
            }
        }
        for (path, node) in &self.safe {
            let place = target.join(path.strip_prefix(base).expect("a path below"));
            // What lies in a folder that was lost is lost; a folder comes before what lies in it.
            if !place.parent().is_some_and(Path::exists) {
                continue;
            }
            if self.folders.contains(node) {
                fs::create_dir(place).unwrap();
                continue;
            }
            let (mut bytes, safe) = self.bytes.get(node).cloned().unwrap_or_default();
            if !safe && !bytes.is_empty() {
                match below(4, prg) {
                    0 => bytes.truncate(below(bytes.len(), prg)),
                    1 => bytes.fill(0),
                    2 => bytes.clear(),
                    _ => {}
                }
            }
            fs::write(place, bytes).unwrap();
        }
    }
}

pub(super) trait Random {
    fn bit(&mut self) -> bool;
}

impl Random for Prg {
    fn bit(&mut self) -> bool {
        self.word() & 1 == 1
    }
}

/// A number below `end`.
pub(super) fn below(end: usize, prg: &mut Prg) -> usize {
    prg.below(end as u64) as usize
}
