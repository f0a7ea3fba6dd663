//! Limits on disk: a full store refuses before anybody works, and a refused or failed preparation takes no room.

use std::sync::Barrier;
use std::thread;

use privet_channel::{AbortReason, PeerMisbehaved, pair};
use privet_suites::session::{Client, Server};
use privet_suites::sharing::{Options, Plan, Rounds};
use privet_suites::suite::SuitePlan;
use privet_suites::{Error, Silent, StoreError};

use crate::parties::{
    CHOICE, PATIENCE, RESIDUAL, StoreFolder, dealer, infer, over, prepare, server, server_within, session,
};

/// The reason and the text with which the server refuses to prepare.
fn refused(server: &Server, client_folder: &StoreFolder, plan: &Plan) -> (AbortReason, String) {
    let (error, side) = over(pair(), server, |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        client.prepare(plan, &mut Silent).map(drop).expect_err("a refusal")
    });
    assert!(side.result.is_err() && side.events.is_empty());
    let Error::Channel(privet_channel::Error::PeerMisbehaved(PeerMisbehaved::Aborted { reason, text })) = error else {
        panic!("not an abort: {error:?}")
    };
    (reason, text)
}

#[test]
fn an_entry_of_any_suite_takes_no_more_than_its_forecast_says() {
    let (connect, _dealt) = dealer();
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for plan in Options::made().chain(Options::dealt()).map(|options| fixture.plan(options)) {
            let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
            let (mut near, far) = pair();
            near.set_timeout(PATIENCE);
            over((near, far), &server(&server_folder).with_dealer(connect.clone()), |channel| {
                let mut client =
                    Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(connect.clone());
                prepare(&mut client, &plan);
            });
            let (client, server) = (&plan as &dyn SuitePlan).entry_bytes();
            for (folder, most) in [(&client_folder, client), (&server_folder, server)] {
                let [entry] = folder.store().entries().expect("a list").try_into().expect("one entry");
                assert_eq!(entry.metadata.model, plan.program().model());
                assert_eq!(entry.bytes, folder.store().bytes().expect("a size"));
                assert!(entry.bytes <= most && most < entry.bytes + 2048, "{} of {most}", entry.bytes);
            }
        }
    }
}

#[test]
fn a_full_server_refuses_until_an_entry_is_used() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let bytes = (&plan as &dyn SuitePlan).entry_bytes().1;
    let server = server_within(&server_folder, 2 * bytes);
    let [first, _second] = session(&server, &client_folder, |client| [(); 2].map(|()| prepare(client, &plan)));
    let (reason, text) = refused(&server, &client_folder, &plan);
    assert_eq!(reason, AbortReason::Busy);
    assert!(text.starts_with("this server's material store is full"), "{text}");
    session(&server, &client_folder, |client| {
        infer(client, &CHOICE, &plan, &first);
        prepare(client, &plan);
    });
    assert_eq!(
        refused(&server_within(&StoreFolder::new(), bytes - 1), &client_folder, &plan).0,
        AbortReason::BadRequest
    );
}

#[test]
fn sessions_at_the_same_time_do_not_overshoot_together() {
    let (server_folder, plan) = (StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let limit = 3 * (&plan as &dyn SuitePlan).entry_bytes().1;
    let (server, start) = (server_within(&server_folder, limit), Barrier::new(8));
    let count: usize = thread::scope(|scope| {
        let sessions: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let client_folder = StoreFolder::new();
                    let (is_prepared, _) = over(pair(), &server, |channel| {
                        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
                        start.wait();
                        client.prepare(&plan, &mut Silent).is_ok()
                    });
                    usize::from(is_prepared)
                })
            })
            .collect();
        sessions.into_iter().map(|session| session.join().expect("no panic")).sum()
    });
    assert_eq!(count, server_folder.ready().len());
    assert!((1..=3).contains(&count), "{count}");
    assert!(server_folder.store().bytes().expect("a size") <= limit);
}

#[test]
fn a_preparation_that_fails_gives_its_room_back() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let server = server_within(&server_folder, (&plan as &dyn SuitePlan).entry_bytes().1);
    let nowhere = privet_suites::session::Connect::new(|| Err(Error::Misuse("no dealer".into())));
    let dealt = CHOICE.plan(Options::dealt().next().expect("an option"));
    let (failed, _) = over(pair(), &server.clone().with_dealer(nowhere.clone()), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(nowhere);
        client.prepare(&dealt, &mut Silent).is_err()
    });
    assert!(failed);
    assert_eq!([&client_folder, &server_folder].map(|folder| folder.store().bytes().expect("a size")), [0, 0]);
    session(&server, &client_folder, |client| prepare(client, &plan));
}

#[test]
fn a_full_client_does_not_ask() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let (result, side) = over(pair(), &server(&server_folder), |channel| {
        let store = client_folder.store().within((&plan as &dyn SuitePlan).entry_bytes().0);
        let mut client = Client::new(channel, store).expect("a greeting");
        let id = prepare(&mut client, &plan);
        let full = client.prepare(&plan, &mut Silent).map(drop);
        assert!(matches!(full, Err(Error::Store(StoreError::Full { .. }))), "{full:?}");
        // The session goes on.
        infer(&mut client, &CHOICE, &plan, &id);
        prepare(&mut client, &plan);
        client.close()
    });
    result.expect("a goodbye");
    side.result.expect("the server ends well");
    assert_eq!(side.events.len(), 3);
}
