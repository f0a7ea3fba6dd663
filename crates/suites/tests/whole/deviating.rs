//! Every message of an inference, in both directions, altered in every way: in the malicious mode no altered run gives the
//! client an output, and both parties end. In the semi-honest one the same alterations give wrong outputs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use privet_channel::record::{self, Direction};
use privet_channel::tamper::{self, Action};
use privet_channel::{Channel, Error as LinkError, Link, PeerMisbehaved as LinkMisbehaved, pair};
use privet_shark::Error as Deviation;
use privet_suites::session::{Client, Connect};
use privet_suites::sharing::Truncation;
use privet_suites::suite::{SuiteConfig, SuitePlan};
use privet_suites::{Error, MaterialId, Silent, fss, malicious};

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL, StoreFolder, dealer, over, server};

/// How long the parties wait for a message that may never come.
const WAIT: Duration = Duration::from_millis(500);

/// Runs at the same time; some of them wait.
const WORKERS: usize = 6;

/// Messages before an inference: the greeting, and the request or its answer.
const BEFORE: usize = 2;

pub type Outputs = Vec<Vec<i64>>;

/// A program in one mode.
pub struct Scene {
    fixture: &'static Fixture,
    plan: Box<dyn SuitePlan>,
    truncation: Truncation,
    to_dealer: Connect,
}

/// Who alters which message how.
#[derive(Clone, Debug)]
struct Alteration {
    by_client: bool,
    message: usize,
    action: Action,
}

/// How an altered run ended.
struct End {
    alteration: Alteration,
    client: Result<Outputs, Error>,
    server: Result<(), Error>,
}

impl Scene {
    fn new(fixture: &'static Fixture, config: &dyn SuiteConfig, truncation: Truncation) -> Self {
        let plan = config.plan(fixture.program(), Link::LAN).expect("a plan");
        Self { fixture, plan, truncation, to_dealer: dealer().0 }
    }

    pub fn malicious(fixture: &'static Fixture, truncation: Truncation) -> Self {
        Self::new(fixture, &malicious::Config { truncation }, truncation)
    }

    pub fn semi_honest(fixture: &'static Fixture, truncation: Truncation) -> Self {
        Self::new(fixture, &fss::Config { truncation }, truncation)
    }

    /// A session with `work` at the client, and how both sides ended.
    pub fn session<T>(
        &self,
        channels: (Channel, Channel),
        [client_folder, server_folder]: &[StoreFolder; 2],
        work: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> (Result<T, Error>, Result<(), Error>) {
        let (result, side) = over(channels, &server(server_folder).with_dealer(self.to_dealer.clone()), |channel| {
            let mut client = Client::new(channel, client_folder.store())?.with_dealer(self.to_dealer.clone());
            let result = work(&mut client)?;
            // The result is there; if the server has gone, nobody minds.
            client.close().ok();
            Ok(result)
        });
        (result, side.result)
    }

    /// Fresh material.
    pub fn prepare(&self, folders: &[StoreFolder; 2]) -> MaterialId {
        let (id, served) = self.prepare_over(pair(), folders);
        id.map_err(|error| (error, served)).expect("an honest deal")
    }

    /// Fresh material, over this link.
    pub fn prepare_over(
        &self,
        channels: (Channel, Channel),
        folders: &[StoreFolder; 2],
    ) -> (Result<MaterialId, Error>, Result<(), Error>) {
        self.session(channels, folders, |client| Ok(client.prepare(&*self.plan, &mut Silent)?.0))
    }

    fn infer(
        &self,
        channels: (Channel, Channel),
        folders: &[StoreFolder; 2],
    ) -> (Result<Outputs, Error>, Result<(), Error>) {
        self.infer_on(&self.prepare(folders), channels, folders)
    }

    /// Infers on material that is there.
    pub fn infer_on(
        &self,
        id: &MaterialId,
        channels: (Channel, Channel),
        folders: &[StoreFolder; 2],
    ) -> (Result<Outputs, Error>, Result<(), Error>) {
        let inputs = &self.fixture.case.inputs;
        self.session(channels, folders, |client| Ok(client.infer(&*self.plan, id, inputs, &mut Silent)?.0))
    }

    /// Whether these are the outputs of an honest run, up to what its truncations may do.
    pub fn is_right(&self, outputs: &Outputs) -> bool {
        self.fixture.case.errors(outputs, self.truncation).iter().all(|(error, bound)| error <= bound)
    }

    /// Whether an honest run gives the right output, after whatever happened before.
    pub fn serves(&self, folders: &[StoreFolder; 2]) {
        let (outputs, served) = self.infer(pair(), folders);
        served.expect("an honest run");
        self.fixture.case.check_with(&outputs.expect("an honest run"), self.truncation);
    }

    /// Bytes of each message of an inference, by the client and by the server.
    fn messages(&self) -> [Vec<usize>; 2] {
        let (near, far, transcript) = record::pair();
        let (outputs, served) = self.infer((near, far), &[StoreFolder::new(), StoreFolder::new()]);
        outputs.map(drop).and(served).expect("an honest run");
        let transcript = transcript.lock().expect("no thread panicked");
        let [mut client, server] = [Direction::FirstToSecond, Direction::SecondToFirst]
            .map(|sender| transcript.payloads(sender).map(<[u8]>::len).skip(BEFORE).collect::<Vec<_>>());
        // It says goodbye.
        client.pop();
        [client, server]
    }

    /// Runs each alteration on material of its own; those that changed nothing that was sent are left out.
    fn altered(&self, alterations: Vec<Alteration>) -> Vec<End> {
        let (queue, ends) = (Mutex::new(alterations), Mutex::new(Vec::new()));
        let take = || queue.lock().expect("no thread panicked").pop();
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    let folders = [StoreFolder::new(), StoreFolder::new()];
                    while let Some(alteration) = take() {
                        let end = self.run(&folders, alteration);
                        ends.lock().expect("no thread panicked").extend(end);
                    }
                    self.serves(&folders);
                });
            }
        });
        ends.into_inner().expect("no thread panicked")
    }

    fn run(&self, folders: &[StoreFolder; 2], alteration: Alteration) -> Option<End> {
        let (mut first, mut second, witness) = tamper::pair(BEFORE + alteration.message, alteration.action.clone());
        let wait = if alteration.is_of_bytes() { PATIENCE } else { WAIT };
        [&mut first, &mut second].into_iter().for_each(|channel| channel.set_timeout(wait));
        let channels = if alteration.by_client { (first, second) } else { (second, first) };
        let (client, server) = self.infer(channels, folders);
        witness.happened().then_some(End { alteration, client, server })
    }
}

impl Alteration {
    /// Whether a message of the same length is sent in place of the right one.
    fn is_of_bytes(&self) -> bool {
        matches!(self.action, Action::FlipBit { .. } | Action::Randomise { .. } | Action::Zero)
    }
}

impl End {
    /// Panics unless the client has no output and the party that was sent nonsense says so.
    fn check(&self) {
        let Self { alteration, client, server } = self;
        let place = format!("{alteration:?}: client {client:?}, server {server:?}");
        assert!(client.is_err(), "an output in spite of {place}");
        if alteration.is_of_bytes() {
            let is_noticed = [client.as_ref().err(), server.as_ref().err()].into_iter().flatten().any(is_deviation);
            assert!(is_noticed, "nobody noticed what was wrong: {place}");
        }
    }
}

/// Whether a party found that the other one deviated, and not only that the link failed.
fn is_deviation(error: &Error) -> bool {
    matches!(error, Error::Authenticated(Deviation::PeerMisbehaved(_)))
}

/// How a party ended, in a word.
fn kind<T>(result: &Result<T, Error>) -> String {
    match result {
        Ok(_) => "well".into(),
        Err(Error::Authenticated(Deviation::PeerMisbehaved(how))) => format!("{how:?}"),
        Err(Error::Authenticated(Deviation::CheckCut(_))) => "CheckCut".into(),
        Err(Error::Channel(LinkError::PeerMisbehaved(LinkMisbehaved::Aborted { .. }))) => "aborted".into(),
        Err(Error::Channel(LinkError::PeerMisbehaved(_)) | Error::PeerMisbehaved(_)) => "form".into(),
        Err(Error::Channel(_)) => "link".into(),
        Err(error) => format!("{error:?}"),
    }
}

/// `actions`, given a message's length, on every message.
fn alterations(messages: &[Vec<usize>; 2], actions: impl Fn(usize) -> Vec<Action>) -> Vec<Alteration> {
    let mut all = Vec::new();
    for (side, lengths) in messages.iter().enumerate() {
        for (message, &length) in lengths.iter().enumerate() {
            // What comes after a side's last message is no part of the inference.
            let is_last = message + 1 == lengths.len();
            let actions = actions(length).into_iter().filter(|action| !(is_last && *action == Action::Repeat));
            all.extend(actions.map(|action| Alteration { by_client: side == 0, message, action }));
        }
    }
    all
}

/// A bit of the first byte, of one in the middle and of the last.
fn few_flips(length: usize) -> Vec<Action> {
    [3, 8 * (length / 2) + 1, 8 * length - 1].map(|bit| Action::FlipBit { bit }).into()
}

fn all_actions(length: usize) -> Vec<Action> {
    let mut actions = few_flips(length);
    actions.extend((0..40).map(|i| Action::FlipBit { bit: i * (8 * length - 1) / 39 }));
    actions.extend([
        Action::Randomise { seed: 1 },
        Action::Zero,
        Action::ReplayPrevious,
        Action::Repeat,
        Action::SwapWithNext,
        Action::Shorten { by: 1 },
        Action::Shorten { by: usize::MAX },
        Action::Lengthen { by: 1 },
        Action::Cut { keep: 6 },
        Action::Drop,
        Action::Close,
        Action::Replace(b"\x02\x06\0\0\0\x06never".to_vec()),
    ]);
    actions
}

/// Panics if an altered run gave an output; how many runs ended how, client and server.
fn none_goes_through(scene: &Scene, actions: impl Fn(usize) -> Vec<Action>) -> BTreeMap<[String; 2], usize> {
    let messages = scene.messages();
    let asked = alterations(&messages, actions);
    let count = asked.len();
    let ends = scene.altered(asked);
    assert!(ends.len() * 20 >= count * 19, "only {} of {count} runs were altered", ends.len());
    let mut kinds = BTreeMap::new();
    for end in &ends {
        end.check();
        *kinds.entry([kind(&end.client), kind(&end.server)]).or_default() += 1;
    }
    kinds
}

#[test]
fn no_bit_flipped_on_the_way_goes_through() {
    let scene = Scene::malicious(&RESIDUAL, Truncation::OneBit);
    let kinds = none_goes_through(&scene, few_flips);
    // Whoever notices first tells the other one.
    assert!(kinds.keys().flatten().any(|kind| kind == "Check"), "{kinds:?}");
}

#[test]
#[ignore = "minutes: thousands of runs"]
fn no_altered_message_goes_through() {
    let programs = [&*RESIDUAL, &*CHOICE].into_iter();
    let scenes = programs.flat_map(|fixture| {
        [Truncation::OneBit, Truncation::Exact].map(|truncation| Scene::malicious(fixture, truncation))
    });
    let mut kinds = BTreeMap::new();
    for (ends, count) in scenes.flat_map(|scene| none_goes_through(&scene, all_actions)) {
        *kinds.entry(ends).or_insert(0) += count;
    }
    println!("how client and server end: {kinds:?}");
    for expected in ["Check", "Padding", "Commitment", "CheckCut", "form", "link", "aborted"] {
        assert!(kinds.keys().flatten().any(|kind| kind == expected), "no run ended with {expected}: {kinds:?}");
    }
}

#[test]
fn in_the_semi_honest_mode_the_same_flips_choose_the_output() {
    let scene = Scene::semi_honest(&RESIDUAL, Truncation::OneBit);
    let messages = scene.messages();
    let ends = scene.altered(alterations(&messages, few_flips));
    let is_wrong = |end: &&End| end.client.as_ref().is_ok_and(|outputs| !scene.is_right(outputs));
    let wrong: Vec<_> = ends.iter().filter(is_wrong).collect();
    for by_client in [true, false] {
        assert!(wrong.iter().any(|end| end.alteration.by_client == by_client && end.server.is_ok()));
    }
}
