//! A server behind a gate: what the gate is told, and that a refusal comes before any work.

use std::sync::{Arc, Mutex};

use privet_channel::{AbortReason, PeerMisbehaved as Link, pair};
use privet_suites::policy::Policy;
use privet_suites::session::{Client, Intent, Server};
use privet_suites::sharing::Rounds;
use privet_suites::{Error, Silent, registry};

use crate::parties::{CHOICE, PATIENCE, StoreFolder, infer, over, prepare, server, session};

/// A server that admits what `admit` says, and the list of what it was asked.
fn behind(folder: &StoreFolder, admit: fn(Intent<'_>) -> bool) -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&asked);
    let gate = move |peer: &str, intent: Intent<'_>| {
        assert_eq!(peer, "", "there are no certificates here");
        list.lock().unwrap().push(format!("{intent:?}"));
        if admit(intent) { Ok(()) } else { Err("not you".to_owned()) }
    };
    (server(folder).behind(Arc::new(gate)), asked)
}

#[test]
fn a_gate_hears_of_every_request() {
    let (folder, client_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, asked) = behind(&folder, |_| true);
    let (plan, program) = (CHOICE.plan(Rounds::Log), CHOICE.program());
    let id = session(&server, &client_folder, |client| {
        client.describe(Some(program.model()), None).unwrap();
        let id = prepare(client, &plan);
        infer(client, &CHOICE, &plan, &id);
        id
    });
    let (program_hash, suite) = (program.hash().to_string(), plan.options().name());
    let expected = [
        Intent::Describe { model: Some(program.model()) },
        Intent::Prepare { program: &program_hash, suite: &suite },
        Intent::Infer { program: &program_hash, suite: Some(&suite), material: Some(&id) },
    ];
    assert_eq!(*asked.lock().unwrap(), expected.map(|intent| format!("{intent:?}")));
}

#[test]
fn what_a_gate_refuses_is_not_begun() {
    let (folder, client_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    let id = session(&server(&folder), &client_folder, |client| prepare(client, &plan));
    let copy = client_folder.copy();
    let (closed, _) = behind(&folder, |_| false);
    let refused = |work: &dyn Fn(&mut Client) -> Result<(), Error>| {
        let (error, side) = over(pair(), &closed, |mut channel| {
            channel.set_timeout(PATIENCE);
            work(&mut Client::new(channel, client_folder.store()).unwrap()).expect_err("a refusal")
        });
        let Error::Channel(privet_channel::Error::PeerMisbehaved(Link::Aborted { reason, text })) = error else {
            panic!("{error:?}")
        };
        assert_eq!((reason, text.as_str()), (AbortReason::NotAllowed, "not you"));
        assert!(side.events.is_empty() && side.result.is_err());
        assert_eq!(folder.ready(), std::slice::from_ref(&id));
    };
    refused(&|client| client.describe(None, None).map(drop));
    refused(&|client| client.prepare(&plan, &mut Silent).map(drop));
    refused(&|client| client.infer(&plan, &id, &CHOICE.case.inputs, &mut Silent).map(drop));
    // The server had not touched the entry, so a client that does not know it as spent is served.
    session(&server(&folder), &copy, |client| infer(client, &CHOICE, &plan, &id));
}

#[test]
fn a_model_is_described_by_its_hash_too_until_it_is_withdrawn() {
    let (folder, client_folder) = (StoreFolder::new(), StoreFolder::new());
    let hash = CHOICE.program().hash().to_string();
    session(&server(&folder), &client_folder, |client| {
        assert_eq!(client.describe(Some(&hash), Some(&hash)).unwrap(), CHOICE.public);
    });
    let mut catalog = crate::parties::catalog();
    assert!(catalog.remove(&hash) && !catalog.remove(&hash));
    let without = registry::server(catalog, folder.store(), Policy::default()).expect("a folder");
    let (described, _) = over(pair(), &without, |mut channel| {
        channel.set_timeout(PATIENCE);
        Client::new(channel, client_folder.store()).unwrap().describe(Some(&hash), None).map(drop)
    });
    assert!(described.is_err());
}
