//! A material entry serves one inference, ever: whoever rolls a store back, whatever fails, whoever asks for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use privet_channel::tls::{Identity, Listener, Trust, connect};
use privet_channel::{AbortReason, Channel, PeerMisbehaved, pair};
use privet_suites::session::{Client, Server};
use privet_suites::sharing::{Plan, Rounds};
use privet_suites::{Error, MaterialId, Observer, Phase, Silent, StoreError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use crate::parties::{CHOICE, PATIENCE, RESIDUAL, Side, StoreFolder, infer, over, prepare, server, session};

/// Asks for an inference on `id` with the store in `client_folder` and returns how that fails on both sides.
fn refused(server: &Server, client_folder: &StoreFolder, plan: &Plan, id: &MaterialId) -> (Error, Side) {
    over(pair(), server, |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        client.infer(plan, id, &CHOICE.case.inputs, &mut Silent).map(drop).expect_err("no second inference")
    })
}

/// The reason and the text of an abort by the peer.
pub fn aborted(error: &Error) -> (AbortReason, &str) {
    match error {
        Error::Channel(privet_channel::Error::PeerMisbehaved(PeerMisbehaved::Aborted { reason, text })) => {
            (*reason, text)
        }
        other => panic!("not an abort: {other:?}"),
    }
}

#[test]
fn a_spent_entry_is_refused_before_the_server_hears_of_it() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&server_folder), CHOICE.plan(Rounds::Log));
    session(&server, &client_folder, |client| {
        let id = prepare(client, &plan);
        infer(client, &CHOICE, &plan, &id);
        for _ in 0..2 {
            let repetition = client.infer(&plan, &id, &CHOICE.case.inputs, &mut Silent).map(drop);
            assert!(matches!(repetition, Err(Error::Store(StoreError::Spent { .. }))), "{repetition:?}");
        }
        // The session goes on.
        let id = prepare(client, &plan);
        infer(client, &CHOICE, &plan, &id);
    });
}

#[test]
fn a_client_that_rolls_its_store_back_is_refused_by_the_server() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&server_folder), CHOICE.plan(Rounds::Log));
    let id = session(&server, &client_folder, |client| prepare(client, &plan));
    let before = client_folder.copy();
    session(&server, &client_folder, |client| infer(client, &CHOICE, &plan, &id));

    assert_eq!(before.ready(), std::slice::from_ref(&id));
    let (error, side) = refused(&server, &before, &plan, &id);
    assert_eq!(aborted(&error), (AbortReason::MaterialUnavailable, ""));
    assert!(matches!(side.result, Err(Error::Store(StoreError::Spent { .. }))));
    // The attempt spent the copy, too.
    assert!(matches!(before.store().claim(&id), Err(StoreError::Spent { .. })));
}

#[test]
fn a_server_that_rolls_its_store_back_is_not_asked_by_the_client() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    let id = session(&server(&server_folder), &client_folder, |client| prepare(client, &plan));
    let before = server_folder.copy();
    session(&server(&server_folder), &client_folder, |client| infer(client, &CHOICE, &plan, &id));

    let (error, side) = refused(&server(&before), &client_folder, &plan, &id);
    assert!(matches!(error, Error::Store(StoreError::Spent { .. })), "{error:?}");
    assert!(side.events.is_empty());
    assert_eq!(before.ready(), [id]);
}

#[test]
fn an_entry_that_only_the_client_holds_is_refused() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    let id = session(&server(&server_folder), &client_folder, |client| prepare(client, &plan));
    let (error, side) = refused(&server(&StoreFolder::new()), &client_folder, &plan, &id);
    assert_eq!(aborted(&error), (AbortReason::MaterialUnavailable, ""));
    assert!(matches!(side.result, Err(Error::Store(StoreError::Missing { .. }))));
}

#[test]
fn an_entry_serves_only_the_program_and_depth_that_it_was_made_for() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    session(&server(&server_folder), &client_folder, |client| {
        let id = prepare(client, &plan);
        for other in [RESIDUAL.plan(Rounds::Log), CHOICE.plan(Rounds::Linear)] {
            let inputs = if other.program() == plan.program() { &CHOICE.case.inputs } else { &RESIDUAL.case.inputs };
            assert!(client.ready(&other).expect("a list").is_empty());
            let unfit = client.infer(&other, &id, inputs, &mut Silent).map(drop);
            assert!(matches!(unfit, Err(Error::Store(StoreError::Unfit { .. }))), "{unfit:?}");
        }
        infer(client, &CHOICE, &plan, &id);
    });
}

#[test]
fn damaged_material_is_spent_and_told_apart_from_a_bad_peer() {
    let plan = CHOICE.plan(Rounds::Log);
    let damage = |folder: &StoreFolder, id: &MaterialId| {
        let path = folder.path().join("ready").join(format!("{id}.material"));
        std::fs::write(path, b"not what was written").expect("a file");
    };
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    let [first, second] = session(&server, &client_folder, |client| [(); 2].map(|()| prepare(client, &plan)));

    damage(&client_folder, &first);
    let (error, side) = refused(&server, &client_folder, &plan, &first);
    assert!(matches!(error, Error::Misuse(_)) && side.events.is_empty(), "{error:?}");
    assert!(!client_folder.ready().contains(&first));

    damage(&server_folder, &second);
    let (error, side) = refused(&server, &client_folder, &plan, &second);
    assert_eq!(aborted(&error), (AbortReason::Internal, ""));
    assert!(matches!(side.result, Err(Error::Misuse(_))));
    assert!(!server_folder.ready().contains(&second));
}

/// An observer that fails in the middle of the online phase.
struct Failing;

impl Observer for Failing {
    fn progress(&mut self, phase: Phase, done: usize, _total: usize, _next: &str) {
        assert!(phase == Phase::Offline || done < 3, "the observer fails");
    }
}

#[test]
fn a_failing_observer_leaves_the_entry_spent_and_the_server_ready() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&server_folder), CHOICE.plan(Rounds::Log));
    let [first, second] = session(&server, &client_folder, |client| [(); 2].map(|()| prepare(client, &plan)));
    let (near, far) = pair();
    thread::scope(|scope| {
        let server = &server;
        let serving =
            scope.spawn(move || catch_unwind(AssertUnwindSafe(|| server.serve(far, &mut Failing, &mut |_| ()))));
        let mut client = Client::new(near, client_folder.store()).expect("a greeting");
        let failed = client.infer(&plan, &first, &CHOICE.case.inputs, &mut Silent).map(drop);
        assert!(matches!(failed, Err(Error::Channel(_))), "{failed:?}");
        assert!(serving.join().expect("caught").is_err(), "the observer's failure is passed on");
    });
    assert!(matches!(server_folder.store().metadata(&first), Err(StoreError::Spent { .. })));
    session(&server, &client_folder, |client| infer(client, &CHOICE, &plan, &second));
}

#[test]
fn a_failing_listener_to_events_loses_no_material() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&server_folder), CHOICE.plan(Rounds::Log));
    let (near, far) = pair();
    let id = thread::scope(|scope| {
        let server = &server;
        let fails = || server.serve(far, &mut Silent, &mut |_| panic!("the listener fails"));
        let serving = scope.spawn(move || catch_unwind(AssertUnwindSafe(fails)).is_err());
        let mut client = Client::new(near, client_folder.store()).expect("a greeting");
        let id = prepare(&mut client, &plan);
        assert!(serving.join().expect("caught"));
        id
    });
    session(&server, &client_folder, |client| infer(client, &CHOICE, &plan, &id));
}

/// An authority and what it issued to a server and to two clients.
struct Certificates {
    trust: Trust,
    server: Identity,
    clients: [Identity; 2],
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let issue = || {
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &authority).expect("a certificate");
            Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).expect("an identity")
        };
        let trust = Trust::from_pem(authority.pem().as_bytes()).expect("trust");
        Self { trust, server: issue(), clients: [issue(), issue()] }
    }

    /// A link between the server and one of the clients.
    fn link(&self, client: usize) -> (Channel, Channel) {
        let listener = Listener::bind("127.0.0.1:0", &self.server, &self.trust).expect("a port");
        let port = listener.local_addr().port();
        thread::scope(|scope| {
            let accepting = scope.spawn(|| listener.accept(PATIENCE)?.handshake(PATIENCE));
            let near = connect("127.0.0.1", port, &self.clients[client], &self.trust, "localhost", PATIENCE);
            (near.expect("a channel"), accepting.join().expect("no panic").expect("a channel"))
        })
    }
}

#[test]
fn an_entry_serves_only_the_certificate_that_it_was_made_with() {
    let certificates = Certificates::new();
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&server_folder), CHOICE.plan(Rounds::Log));
    let make = |client| {
        over(certificates.link(client), &server, |channel| {
            let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
            prepare(&mut client, &plan)
        })
        .0
    };
    let id = make(0);
    // A thief of the client's store: the entry is bound to the server's certificate there, to the client's here.
    let stolen = client_folder.copy();
    let ((error, ready), side) = over(certificates.link(1), &server, |channel| {
        let mut thief = Client::new(channel, stolen.store()).expect("a greeting");
        let ready = thief.ready(&plan).expect("a list");
        (thief.infer(&plan, &id, &CHOICE.case.inputs, &mut Silent).map(drop).expect_err("refused"), ready)
    });
    assert_eq!(ready, std::slice::from_ref(&id));
    let (reason, text) = aborted(&error);
    assert_eq!(reason, AbortReason::StaleSession);
    assert_eq!(text, format!("material {id} was made for another program or client"));
    assert!(side.result.expect_err("refused").is_the_peers_fault());
    // The refusal did not cost its owner the entry.
    let ((), side) = over(certificates.link(0), &server, |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        infer(&mut client, &CHOICE, &plan, &id);
        client.close().expect("a goodbye");
    });
    side.result.expect("the session ends well");
}
