//! After a failed check the setup is given up: its material is refused, the next preparation makes another one.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use privet_channel::tamper::{self, Action};
use privet_channel::{Channel, pair};
use privet_party::authenticated::{Options, Plan};
use privet_party::session::{Client, Connect};
use privet_party::sharing::Truncation;
use privet_party::{Error, MaterialId, Silent, StoreError};

use crate::parties::{CHOICE, PATIENCE, Shelf, dealer, over, server};

/// Messages of the client before its input: the greeting and the request.
const BEFORE: usize = 2;

/// Two parties with their stores, and a dealer.
struct Pair {
    plan: Plan,
    ours: Shelf,
    theirs: Shelf,
    to_dealer: Connect,
}

impl Pair {
    fn new() -> Self {
        let plan = Plan::new(CHOICE.program(), Options { truncation: Truncation::OneBit }).expect("a plan");
        Self { plan, ours: Shelf::new(), theirs: Shelf::new(), to_dealer: dealer().0 }
    }

    fn session<T>(
        &self,
        channels: (Channel, Channel),
        work: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> (Result<T, Error>, Result<(), Error>) {
        let (result, side) = over(channels, &server(&self.theirs).with_dealer(self.to_dealer.clone()), |channel| {
            let mut client = Client::new(channel, self.ours.store())?.with_dealer(self.to_dealer.clone());
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

    /// The setups that a party keeps.
    fn setups(shelf: &Shelf) -> BTreeSet<PathBuf> {
        let files = fs::read_dir(shelf.path().join("setups")).expect("a folder");
        let names = files.map(|file| PathBuf::from(file.expect("an entry").file_name()));
        names.filter(|name| MaterialId::try_from(name.display().to_string()).is_ok()).collect()
    }

    /// The one setup that both keep.
    fn setup(&self) -> PathBuf {
        let [ours, theirs] = [&self.ours, &self.theirs].map(Self::setups);
        assert_eq!((ours.len(), &ours), (1, &theirs));
        ours.into_iter().next().expect("one")
    }

    /// The list of setups that a party gave up.
    fn list(&self, shelf: &Shelf) -> PathBuf {
        shelf.path().join("setups").join(format!("spoiled-{}-", self.plan.program().hash()))
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
    for shelf in [&parties.ours, &parties.theirs] {
        assert_eq!((Pair::setups(shelf).len(), shelf.ready()), (0, Vec::new()));
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
        let loser = [&parties.ours, &parties.theirs][lost];
        fs::remove_file(loser.path().join("setups").join(parties.setup())).expect("a setup");
        let ends = parties.infer(&id);
        let told = |error: &Error| error.to_string().contains("given up: prepare again");
        assert!(ends[0].is_some() && ends.iter().flatten().any(told), "{ends:?}");
        assert!(parties.infer(&parties.prepare()).iter().all(Option::is_none));
    }
}

#[test]
fn no_setup_comes_back_whatever_the_other_party_counts() {
    let parties = Pair::new();
    let mut seen = BTreeSet::new();
    // Lies of the server: it has given up other setups, or the same again, or none.
    for given_up in ["others\n", "others\n", "", "", "many\nothers\n"] {
        fs::create_dir_all(parties.theirs.path().join("setups")).expect("a folder");
        fs::write(parties.list(&parties.theirs), given_up).expect("a list");
        let id = parties.prepare();
        assert!(seen.insert(parties.setup()), "a setup that was given up comes back");
        parties.fail_with(&id);
    }
}

#[test]
fn no_setup_comes_back_to_a_party_that_lost_its_store() {
    let mut parties = Pair::new();
    parties.prepare();
    let setup = parties.setup();
    parties.fail();
    // The dealer hears of it.
    parties.prepare();
    (parties.ours, parties.theirs) = (Shelf::new(), Shelf::new());
    parties.prepare();
    assert_ne!(parties.setup(), setup);
}

#[test]
fn of_runs_at_the_same_time_none_gets_an_output_after_a_failure() {
    let parties = Pair::new();
    let pieces = [(); 8].map(|()| parties.prepare());
    // The first run is cut off when the client has opened its digest: what a cheater sees before it has to answer.
    let honest = thread::scope(|scope| {
        let (mut far, mut near, witness) = tamper::pair(parties.last_message(), Action::Drop);
        [&mut near, &mut far].into_iter().for_each(|channel| channel.set_timeout(PATIENCE / 30));
        let cheated = scope.spawn(|| parties.infer_over((near, far), &pieces[0]));
        let started = Instant::now();
        while fs::metadata(parties.lock()).map_or(0, |lock| lock.len()) == 0 {
            assert!(started.elapsed() < PATIENCE, "the client does not take its turn");
            thread::yield_now();
        }
        let honest: Vec<_> = pieces[1..].iter().map(|id| scope.spawn(|| parties.infer(id))).collect();
        let honest: Vec<_> = honest.into_iter().map(|run| run.join().expect("no panic")).collect();
        assert!(cheated.join().expect("no panic")[0].is_some() && witness.happened());
        honest
    });
    assert!(honest.iter().all(|[client, _]| client.is_some()), "{honest:?}");
}

impl Pair {
    /// The lock under which the client's runs check.
    fn lock(&self) -> PathBuf {
        let ours = Self::setups(&self.ours).into_iter().next().expect("a setup");
        self.ours.path().join("setups").join(ours).with_extension("lock")
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
