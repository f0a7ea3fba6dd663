//! After a failed check the setup is given up: its material is refused, the next preparation makes another one.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use privet_channel::tamper::{self, Action};
use privet_channel::{Channel, pair};
use privet_suites::malicious::{Config, Plan};
use privet_suites::session::{Client, Connect};
use privet_suites::sharing::Truncation;
use privet_suites::{Error, MaterialId, Silent, StoreError};

use crate::parties::{CHOICE, PATIENCE, StoreFolder, dealer, over, server};

/// Messages of the client before its input: the greeting and the request.
const BEFORE: usize = 2;

/// Two parties with their stores, and a dealer.
struct Pair {
    plan: Plan,
    client_folder: StoreFolder,
    server_folder: StoreFolder,
    to_dealer: Connect,
}

impl Pair {
    fn new() -> Self {
        let plan = Plan::new(CHOICE.program(), Config { truncation: Truncation::OneBit }).expect("a plan");
        Self { plan, client_folder: StoreFolder::new(), server_folder: StoreFolder::new(), to_dealer: dealer().0 }
    }

    fn session<T>(
        &self,
        channels: (Channel, Channel),
        work: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> (Result<T, Error>, Result<(), Error>) {
        let (result, side) =
            over(channels, &server(&self.server_folder).with_dealer(self.to_dealer.clone()), |channel| {
                let mut client = Client::new(channel, self.client_folder.store())?.with_dealer(self.to_dealer.clone());
                let result = work(&mut client)?;
                client.close()?;
                Ok(result)
            });
        (result, side.result)
    }

    fn prepare(&self) -> MaterialId {
        let (id, served) = self.session(pair(), |client| Ok(client.prepare(&self.plan, &mut Silent)?.0));
        served.expect("an honest deal");
        id.expect("an honest deal")
    }

    fn infer_over(&self, channels: (Channel, Channel), id: &MaterialId) -> [Option<Error>; 2] {
        let (outputs, served) =
            self.session(channels, |client| Ok(client.infer(&self.plan, id, &CHOICE.case.inputs, &mut Silent)?.0));
        if let Ok(outputs) = &outputs {
            CHOICE.case.check_with(outputs, Truncation::OneBit);
        }
        [outputs.err(), served.err()]
    }

    fn infer(&self, id: &MaterialId) -> [Option<Error>; 2] {
        self.infer_over(pair(), id)
    }

    /// A run in which a bit of the client's input is flipped on the way: the check fails.
    fn fail(&self) {
        self.fail_with(&self.prepare());
    }

    fn fail_with(&self, id: &MaterialId) {
        let (near, far, witness) = tamper::pair(BEFORE, Action::FlipBit { bit: 5 });
        let ends = self.infer_over((near, far), id);
        assert!(witness.happened() && ends.iter().all(Option::is_some), "{ends:?}");
    }

    /// Names of the setups that a party keeps.
    fn setups(folder: &StoreFolder) -> BTreeSet<PathBuf> {
        folder.setups().iter().map(|path| PathBuf::from(path.file_name().expect("a name"))).collect()
    }

    /// The one setup that both keep.
    fn setup(&self) -> PathBuf {
        let [client_setups, server_setups] = [&self.client_folder, &self.server_folder].map(Self::setups);
        assert_eq!((client_setups.len(), &client_setups), (1, &server_setups));
        client_setups.into_iter().next().expect("one")
    }
}

#[test]
fn another_setup_takes_the_place_of_one_that_failed() {
    let parties = Pair::new();
    let (first, second) = (parties.prepare(), parties.prepare());
    let setup = parties.setup();
    assert!(parties.infer(&first).iter().all(Option::is_none));
    assert_eq!(parties.setup(), setup, "an honest run leaves the setup alone");
    parties.fail();
    for folder in [&parties.client_folder, &parties.server_folder] {
        assert_eq!((Pair::setups(folder).len(), folder.ready()), (0, Vec::new()));
    }
    assert!(matches!(parties.infer(&second), [Some(Error::Store(StoreError::Spent { .. })), _]));
    let third = parties.prepare();
    assert_ne!(parties.setup(), setup);
    assert!(parties.infer(&third).iter().all(Option::is_none));
}

#[test]
fn material_of_a_setup_that_is_gone_is_refused_by_either_side() {
    for lost in 0..2 {
        let parties = Pair::new();
        let id = parties.prepare();
        let loser = [&parties.client_folder, &parties.server_folder][lost];
        fs::remove_file(&loser.setups()[0]).expect("a setup");
        let ends = parties.infer(&id);
        let says_spoiled = |error: &Error| error.to_string().contains("given up: prepare again");
        assert!(ends[0].is_some() && ends.iter().flatten().any(says_spoiled), "{ends:?}");
        assert!(parties.infer(&parties.prepare()).iter().all(Option::is_none));
    }
}

/// Who still has the setup after a check that failed: a cheat that gave up nothing, or a party whose store was set back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Has {
    /// What it should have: nothing of this setup, but all the rest of its store.
    GivenUp,
    /// Nothing at all: it lost its store.
    Lost,
    /// The setup, as if nothing had happened.
    Whole,
}

/// Whether a setup that failed is dealt again to parties of which this is left.
fn comes_back(client: Has, server: Has) -> bool {
    let mut parties = Pair::new();
    parties.prepare();
    let setup = parties.setup();
    let files = [&parties.client_folder, &parties.server_folder].map(|folder| folder.setups().remove(0));
    let contents = files.each_ref().map(|file| fs::read(file).expect("a setup"));
    parties.fail();
    for (place, has) in [client, server].into_iter().enumerate() {
        match has {
            Has::GivenUp => {}
            Has::Lost => *[&mut parties.client_folder, &mut parties.server_folder][place] = StoreFolder::new(),
            Has::Whole => fs::write(&files[place], &contents[place]).expect("a setup"),
        }
    }
    let id = parties.prepare();
    let [client_setups, server_setups] = [&parties.client_folder, &parties.server_folder].map(Pair::setups);
    // Whatever else a party has, the material is made with a setup that both have.
    let metadata = parties.client_folder.store().metadata(&id).expect("material");
    let made_with = PathBuf::from(metadata.setup.expect("a setup").as_str());
    assert!(client_setups.contains(&made_with) && server_setups.contains(&made_with));
    made_with == setup
}

#[test]
fn no_setup_comes_back_whichever_party_lost_its_state_and_whatever_the_other_says() {
    for honest in [Has::GivenUp, Has::Lost] {
        for other in [Has::GivenUp, Has::Lost, Has::Whole] {
            assert!(!comes_back(honest, other), "the client: {honest:?}, the server: {other:?}");
            assert!(!comes_back(other, honest), "the client: {other:?}, the server: {honest:?}");
        }
    }
    // If both set their stores back to the same moment, it does: the one case that nobody notices.
    assert!(comes_back(Has::Whole, Has::Whole));
}

#[test]
fn a_dealer_that_starts_anew_knows_no_old_setup() {
    let mut parties = Pair::new();
    let id = parties.prepare();
    let setup = parties.setup();
    parties.to_dealer = dealer().0;
    let other = parties.prepare();
    let [client_setups, server_setups] = [&parties.client_folder, &parties.server_folder].map(Pair::setups);
    assert!(client_setups == server_setups && client_setups.len() == 2 && client_setups.contains(&setup));
    for id in [id, other] {
        assert!(parties.infer(&id).iter().all(Option::is_none));
    }
}

#[test]
fn of_runs_at_the_same_time_none_gets_an_output_after_a_failure() {
    let parties = Pair::new();
    let entries = [(); 8].map(|()| parties.prepare());
    // The first run is cut off when the client has opened its digest: what a cheater sees before it has to answer.
    let honest = thread::scope(|scope| {
        let (mut far, mut near, witness) = tamper::pair(parties.last_message(), Action::Drop);
        [&mut near, &mut far].into_iter().for_each(|channel| channel.set_timeout(PATIENCE / 10));
        let cheated = scope.spawn(|| parties.infer_over((near, far), &entries[0]));
        let started = Instant::now();
        while !witness.happened() {
            assert!(started.elapsed() < PATIENCE, "the server does not answer");
            thread::yield_now();
        }
        assert!(parties.mark().exists(), "the client opened its digest without a turn");
        let honest: Vec<_> = entries[1..].iter().map(|id| scope.spawn(|| parties.infer(id))).collect();
        let honest: Vec<_> = honest.into_iter().map(|run| run.join().expect("no panic")).collect();
        assert!(cheated.join().expect("no panic")[0].is_some());
        honest
    });
    assert!(honest.iter().all(|[client, _]| client.is_some()), "{honest:?}");
}

impl Pair {
    /// The mark of a check of the client's.
    fn mark(&self) -> PathBuf {
        self.client_folder.setups().remove(0).with_extension("checking")
    }

    /// The server's last message of an inference: its digest in the second check.
    fn last_message(&self) -> usize {
        let (near, far, transcript) = privet_channel::record::pair();
        let ends = self.infer_over((near, far), &self.prepare());
        assert!(ends.iter().all(Option::is_none), "{ends:?}");
        let transcript = transcript.lock().expect("no thread panicked");
        transcript.payloads(privet_channel::record::Direction::SecondToFirst).count() - 1
    }
}
