//! Control messages that are wrong: from a client by hand to a real server, and from a server by hand to a real client.
//!
//! Each must end the session with a typed error on both sides, with a reason that fits and a text that says nothing of
//! the other side's files; afterwards the same server serves an honest client.

use std::sync::{Arc, Barrier};
use std::thread;

use privet_channel::{AbortReason, Channel, PeerMisbehaved as Link, pair};
use privet_prg::{Prg, Seed};
use privet_suites::session::{Client, Server, VERSION};
use privet_suites::sharing::Rounds;
use privet_suites::{Error, PeerMisbehaved, Silent, StoreError, registry};
use serde_json::json;

use crate::parties::{CHOICE, PATIENCE, RESIDUAL, StoreFolder, infer, over, prepare, server, session};

pub fn greeting(version: u16) -> Vec<u8> {
    [b"PRIVET".as_slice(), &version.to_le_bytes()].concat()
}

/// What ended a session at the side that spoke by hand: the peer's reason and text.
type Abort = (AbortReason, String);

/// Receives until the peer aborts.
fn abort_of(channel: &mut Channel) -> Abort {
    loop {
        match channel.recv_at_most(1 << 20) {
            Ok(_) => {}
            Err(privet_channel::Error::PeerMisbehaved(Link::Aborted { reason, text })) => return (reason, text),
            Err(other) => panic!("not an abort: {other:?}"),
        }
    }
}

/// Sends `messages` to a server after no greeting at all; how both sides end.
fn say(server: &Server, messages: &[Vec<u8>]) -> (Abort, Error) {
    let (abort, side) = over(pair(), server, |mut channel| {
        channel.set_timeout(PATIENCE);
        for message in messages {
            // The server may give up before it has all of a long message; the receive tells why.
            let _ = channel.send(message);
        }
        abort_of(&mut channel)
    });
    assert!(side.events.is_empty());
    (abort, side.result.expect_err("the session failed"))
}

/// Greets and sends one control message; how both sides end.
fn ask(server: &Server, message: impl Into<Vec<u8>>) -> (Abort, Error) {
    say(server, &[greeting(VERSION), message.into()])
}

/// What a client says that must not come into this side's errors, which are logged.
const QUOTED: &str = "said by the client";

/// Checks a text from the server for what must not be in it.
fn assert_discreet(text: &str, folder: &StoreFolder) {
    let path = folder.path().display().to_string();
    assert!(!text.contains(&path) && !text.contains("ready/") && !text.contains(".material"), "{text}");
}

/// An honest session on the server, to show that it still serves.
fn serves(server: &Server) {
    let (client_folder, plan) = (StoreFolder::new(), CHOICE.plan(Rounds::Log));
    session(server, &client_folder, |client| {
        let id = prepare(client, &plan);
        infer(client, &CHOICE, &plan, &id);
    });
}

#[test]
fn greetings_of_strangers_and_other_versions_are_refused() {
    let folder = StoreFolder::new();
    let server = server(&folder);
    for hello in [b"GET / HT".to_vec(), b"SSH-2.0-".to_vec(), vec![0; 8], b"privet\x01\0".to_vec()] {
        let (abort, error) = say(&server, &[hello]);
        assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::NotPrivet)), "{error:?}");
    }
    for version in [0, VERSION + 1, u16::MAX] {
        let (abort, error) = say(&server, &[greeting(version)]);
        assert_eq!(abort, (AbortReason::Version, String::new()));
        let expected = PeerMisbehaved::Version { ours: VERSION, theirs: version };
        assert!(matches!(error, Error::PeerMisbehaved(fault) if fault == expected));
    }
    for hello in [vec![], greeting(VERSION)[1..].to_vec(), vec![1; 9], vec![1; 1 << 20]] {
        let (abort, error) = say(&server, &[hello]);
        assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
        assert!(matches!(error, Error::Channel(privet_channel::Error::PeerMisbehaved(Link::WrongLength { .. }))));
    }
    serves(&server);
}

#[test]
fn control_messages_that_are_no_requests_are_refused() {
    let folder = StoreFolder::new();
    let server = server(&folder);
    let hash = CHOICE.program().hash().to_string();
    let mut prg = Prg::from_seed(&Seed::from_bytes([3; 16]));
    let mut garbage: Vec<Vec<u8>> = [1, 2, 16, 100, 4096].map(|length| vec![0; length]).to_vec();
    garbage.iter_mut().for_each(|bytes| prg.fill(bytes));
    let prepare = json!({
        "request": "prepare", "program": hash, "suite": "gmw log one-bit", "extension": "silent-large", "nonce": vec![0; 16],
    });
    let with = |key: &str, value: serde_json::Value| {
        let mut request = prepare.clone();
        request[key] = value;
        request.to_string()
    };
    let malformed = [
        String::new(),
        "{}".into(),
        "null".into(),
        "[".repeat(4096),
        json!({"request": "format_disk"}).to_string(),
        json!({"request": QUOTED}).to_string(),
        json!({"request": "infer", "program": hash, "material": QUOTED}).to_string(),
        json!({"request": "kept_weights", "program": hash, "suite": "gmw log one-bit", "known": [QUOTED]}).to_string(),
        with("base", json!({"kept": QUOTED})),
        with("base", json!({QUOTED: 1})),
        json!({"request": "infer"}).to_string(),
        json!({"request": "describe", "model": 7}).to_string(),
        json!({"request": "infer", "program": hash, "material": "../../server.key"}).to_string(),
        json!({"request": "infer", "program": hash, "material": "0".repeat(31)}).to_string(),
        json!({"request": "infer", "program": hash, "material": "A".repeat(32)}).to_string(),
        with("nonce", json!(vec![0; 15])),
        with("nonce", json!(vec![0; 17])),
        with("nonce", json!(vec![256; 16])),
        with("suite", json!(null)),
        with("extension", json!(1)),
        with("program", json!([hash])),
        prepare.to_string() + "}",
    ];
    for message in garbage.into_iter().chain(malformed.map(String::into_bytes)) {
        let (abort, error) = ask(&server, message);
        assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::ControlMessage(_))), "{error:?}");
        assert!(!error.to_string().contains(QUOTED), "{error}");
    }
    for length in [4097, 1 << 20] {
        let (abort, error) = ask(&server, vec![b' '; length]);
        assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
        assert!(matches!(error, Error::Channel(privet_channel::Error::PeerMisbehaved(Link::TooLong { .. }))));
    }
    serves(&server);
}

#[test]
fn an_entry_of_a_client_that_leaves_before_the_answer_is_spent_and_leaves_no_file() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&server_folder), CHOICE.plan(Rounds::Log));
    let id = session(&server, &client_folder, |client| prepare(client, &plan));
    let request = json!({"request": "infer", "program": plan.program().hash().to_string(), "material": id});
    let departure = Arc::new(Barrier::new(2));
    let waits = Arc::clone(&departure);
    let server = server.behind(Arc::new(move |_, _| {
        waits.wait();
        Ok(())
    }));
    let ((), side) = over(pair(), &server, |mut channel| {
        channel.send(&greeting(VERSION)).expect("a server that reads");
        channel.recv(greeting(VERSION).len()).expect("a greeting");
        channel.send(request.to_string().as_bytes()).expect("a server that reads");
        drop(channel);
        departure.wait();
    });
    assert!(side.result.is_err() && side.events.is_empty());
    // A store that is opened sweeps what others left.
    assert_eq!(std::fs::read_dir(server_folder.path().join("ready")).expect("a folder").count(), 0);
    assert!(matches!(server_folder.store().metadata(&id), Err(StoreError::Spent { .. })));
}

#[test]
fn requests_that_cannot_be_granted_are_refused_with_a_reason() {
    let folder = StoreFolder::new();
    let server = server(&folder);
    let hash = CHOICE.program().hash().to_string();
    let with = |program: &str, suite: &str, extension: &str| {
        json!({
            "request": "prepare", "program": program, "suite": suite, "extension": extension, "nonce": vec![0; 16],
        })
    };
    let prepare = |program: &str, suite: &str| with(program, suite, "softspoken-2");
    let infer = |program: &str| json!({"request": "infer", "program": program, "material": "0".repeat(32)});
    let describe = |model: Option<&str>| json!({"request": "describe", "model": model});
    let keep = |program: &str, suite: &str| json!({"request": "kept_weights", "program": program, "suite": suite, "known": QUOTED});
    let unknown = "this server does not serve the program with that hash; ask it to describe the model again";
    let long = "x".repeat(4000);
    let cases = [
        (describe(Some("resnet")), AbortReason::UnknownProgram, "there is no model \"resnet\"; served here: "),
        (describe(Some("\u{1b}[31m\n")), AbortReason::UnknownProgram, "there is no model \"\\u{1b}[31m\\n\"; served"),
        (describe(Some(&long)), AbortReason::UnknownProgram, "there is no model \"xxx"),
        (
            describe(Some(QUOTED)),
            AbortReason::UnknownProgram,
            "there is no model \"said by the client\"; served here: ",
        ),
        (with(&hash, "gmw log one-bit", QUOTED), AbortReason::BadRequest, "this server has no OT extension \"said by"),
        (prepare(&hash, QUOTED), AbortReason::BadRequest, "this server does not run suite \"said by the client\""),
        (prepare(QUOTED, "gmw"), AbortReason::UnknownProgram, unknown),
        (keep(&hash, QUOTED), AbortReason::BadRequest, "this server does not run suite \"said by the client\""),
        (keep(QUOTED, "gmw log one-bit"), AbortReason::UnknownProgram, unknown),
        (keep(&hash, "gmw log one-bit"), AbortReason::BadRequest, "in suite \"gmw log one-bit\" nobody keeps weights"),
        (describe(None), AbortReason::UnknownProgram, "no model was named; served here: "),
        (prepare(&"0".repeat(64), "gmw log one-bit"), AbortReason::UnknownProgram, unknown),
        (prepare("/etc/passwd", "gmw"), AbortReason::UnknownProgram, unknown),
        (with(&hash, "gmw log one-bit", "ot"), AbortReason::BadRequest, "this server has no OT extension \"ot\""),
        (prepare(&hash, "gmw log one-bit dealt"), AbortReason::BadRequest, "this server has no dealer"),
        (prepare(&hash, "mpc9"), AbortReason::BadRequest, "this server does not run suite \"mpc9\""),
        (infer(&"0".repeat(64)), AbortReason::UnknownProgram, unknown),
    ];
    for (request, reason, text) in cases {
        let ((actual_reason, actual), error) = ask(&server, request.to_string());
        assert_eq!(actual_reason, reason);
        assert!(actual.starts_with(text), "{actual:?}");
        assert_discreet(&actual, &folder);
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::Request(_))), "{error:?}");
        assert!(!error.to_string().contains(QUOTED), "{error}");
    }
    // An inference that was never prepared. The server's own log names the store, the client hears the reason only.
    let (abort, error) = ask(&server, infer(&hash).to_string());
    assert_eq!(abort, (AbortReason::MaterialUnavailable, String::new()));
    assert!(matches!(error, Error::Store(_)));
    serves(&server);
}

/// What a client makes of a server that sends `answers` one after the other, and what it tells that server.
fn client_of<T>(answers: &[Vec<u8>], work: impl FnOnce(&mut Client) -> Result<T, Error>) -> (Result<T, Error>, Abort) {
    let (near, mut far) = pair();
    let folder = StoreFolder::new();
    thread::scope(|scope| {
        let serving = scope.spawn(move || {
            far.set_timeout(PATIENCE);
            for answer in answers {
                // The client may have given up already; the receive tells why.
                let _ = far.send(answer);
            }
            abort_of(&mut far)
        });
        let result = Client::new(near, folder.store()).and_then(|mut client| work(&mut client));
        assert!(folder.ready().is_empty());
        (result, serving.join().expect("no panic"))
    })
}

#[test]
fn a_client_refuses_servers_that_greet_wrongly() {
    let refusal_of = |greeting: Vec<u8>| {
        let (result, (reason, text)) = client_of(&[greeting], |client| client.describe(None, None));
        assert_eq!(text, "");
        (result.expect_err("refused"), reason)
    };
    let (error, reason) = refusal_of(b"HTTP/1.1".to_vec());
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::NotPrivet)));
    assert_eq!(reason, AbortReason::Misbehaved);
    let (error, reason) = refusal_of(greeting(VERSION + 1));
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::Version { .. })));
    assert_eq!(reason, AbortReason::Version);
    let (error, reason) = refusal_of(vec![0; 100]);
    assert!(matches!(error, Error::Channel(privet_channel::Error::PeerMisbehaved(Link::WrongLength { .. }))));
    assert_eq!(reason, AbortReason::Misbehaved);
}

#[test]
fn a_client_refuses_answers_that_make_no_sense() {
    let plan = CHOICE.plan(Rounds::Log);
    for answer in [b"".to_vec(), b"<html>".to_vec(), b"{\"nonce\":[1]}".to_vec(), vec![b' '; 4097]] {
        let answers = [greeting(VERSION), answer.clone()];
        let (result, abort) = client_of(&answers, |client| client.prepare(&plan, &mut Silent));
        let error = result.expect_err("refused");
        assert!(error.is_the_peers_fault(), "{error:?}");
        assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
        let (result, abort) = client_of(&answers, |client| client.describe(None, None));
        assert!(matches!(result, Err(Error::PeerMisbehaved(PeerMisbehaved::Program(_)))));
        assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
    }
}

#[test]
fn a_client_that_named_nothing_in_place_of_base_ots_refuses_that_it_was_taken() {
    let plan = CHOICE.plan(Rounds::Log);
    let accepted = json!({"nonce": vec![7; 16], "kept": true}).to_string().into_bytes();
    let (result, abort) = client_of(&[greeting(VERSION), accepted], |client| client.prepare(&plan, &mut Silent));
    assert!(result.expect_err("refused").is_the_peers_fault());
    assert_eq!(abort, (AbortReason::Misbehaved, String::new()));
}

#[test]
fn a_client_reads_nothing_but_the_program_that_it_expects() {
    let expected = CHOICE.program().hash().to_string();
    // A sound program, and bytes that are none: with a pin both are just another program, and the server hears why.
    for answer in [RESIDUAL.public.clone(), b"<html>".to_vec()] {
        let answers = [greeting(VERSION), answer.clone()];
        let (result, abort) = client_of(&answers, |client| client.describe(None, Some(&expected)));
        let Err(Error::PeerMisbehaved(PeerMisbehaved::OtherProgram { actual, .. })) = result else {
            panic!("{result:?}");
        };
        assert_eq!(actual, privet_program::ProgramHash::of(&answer).to_string());
        assert_eq!(abort.0, AbortReason::Misbehaved);
    }
}

#[test]
fn the_options_that_a_client_may_name_are_few() {
    // A server keeps a plan for each, and for nothing else.
    let names: std::collections::BTreeSet<String> = registry::configs().map(|config| config.label()).collect();
    assert_eq!((names.len(), registry::configs().count()), (49, 49));
    for name in ["", "gmw", "gmw log one-bit ", "GMW log one-bit", "gmw log one-bit relu 7", "fss exact malicious x"] {
        assert!(registry::parse(name).is_none(), "{name:?}");
    }
}

#[test]
fn halves_of_two_programs_do_not_make_a_served_program() {
    use privet_suites::session::Served;
    let mixed = Served::new(CHOICE.public.clone(), &RESIDUAL.weights).map(drop);
    assert!(matches!(mixed, Err(Error::Program(privet_program::Error::WrongWeights))));
    for end in [0, 8, CHOICE.weights.len() - 1] {
        assert!(matches!(Served::new(CHOICE.public.clone(), &CHOICE.weights[..end]), Err(Error::Program(_))));
    }
    for end in [0, 100, CHOICE.public.len() - 1] {
        assert!(matches!(Served::new(CHOICE.public[..end].to_vec(), &CHOICE.weights), Err(Error::Program(_))));
    }
}
