//! Many sessions on one client's store: every entry serves one of them, and nobody fails while entries are left.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use privet_channel::pair;
use privet_suites::Silent;
use privet_suites::session::Client;
use privet_suites::sharing::Rounds;

use crate::parties::{CHOICE, PATIENCE, StoreFolder, over, prepare, server, session};

#[test]
fn sessions_that_pick_the_same_entry_go_on_to_the_next() {
    const SESSIONS: usize = 6;
    const EACH: usize = 3;
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let server = server(&server_folder);
    let ids: BTreeSet<_> =
        session(&server, &client_folder, |client| (0..SESSIONS * EACH).map(|_| prepare(client, &plan)).collect());

    let start = Barrier::new(SESSIONS);
    let work = |client: &mut Client| {
        (0..EACH)
            .map(|_| {
                start.wait();
                let inference = client.infer_next(&plan, &CHOICE.case.inputs, &mut Silent).expect("an inference");
                let (id, (outputs, _)) = inference.expect("entries are left");
                CHOICE.case.check(&outputs, plan.options());
                id
            })
            .collect::<Vec<_>>()
    };
    let used: Vec<_> = thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS).map(|_| scope.spawn(|| session(&server, &client_folder, work))).collect();
        sessions.into_iter().flat_map(|session| session.join().expect("no panic")).collect()
    });
    assert_eq!(used.len(), ids.len());
    assert_eq!(used.into_iter().collect::<BTreeSet<_>>(), ids);
}

#[test]
fn without_an_entry_nothing_is_said() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (has_inferred, side) = over((near, far), &server(&server_folder), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        let has_inferred = client.infer_next(&plan, &CHOICE.case.inputs, &mut Silent).expect("no failure").is_some();
        client.close().expect("a goodbye");
        has_inferred
    });
    assert!(!has_inferred);
    side.result.expect("the server ends well");
    assert!(side.events.is_empty());
}

#[test]
fn metadata_without_its_material_is_passed_over() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let server = server(&server_folder);
    session(&server, &client_folder, |client| {
        let mut ids = [(); 2].map(|()| prepare(client, &plan));
        ids.sort();
        std::fs::remove_file(client_folder.path().join("ready").join(format!("{}.material", ids[0]))).expect("a file");
        let mut next =
            || client.infer_next(&plan, &CHOICE.case.inputs, &mut Silent).expect("no failure").map(|(id, _)| id);
        assert_eq!(next(), Some(ids[1].clone()));
        assert_eq!(next(), None);
    });
}

#[test]
fn an_entry_that_its_maker_still_holds_is_waited_for() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    session(&server(&server_folder), &client_folder, |client| {
        let id = prepare(client, &plan);
        // As the maker's own lock, while the entry can be seen already.
        let maker = File::open(client_folder.path().join("ready").join(format!("{id}.material"))).expect("a file");
        maker.lock().expect("a lock");
        let inference = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(50));
                drop(maker);
            });
            client.infer_next(&plan, &CHOICE.case.inputs, &mut Silent).expect("no failure")
        });
        assert_eq!(inference.map(|(id, _)| id), Some(id));
    });
}
