//! Suite `stream`: results are exactly the executor's, costs are those forecast, and what does not fit is refused.

use std::thread;
use std::time::Duration;

use privet_channel::pair;
use privet_channel::record::{self, Direction};
use privet_channel::tamper::{self, Action};
use privet_program::Program;
use privet_suites::policy::{Guard, Policy};
use privet_suites::stream::{Cipher, Client, Config, Event, KeySize, Plan, Server};
use privet_suites::{Error, PeerMisbehaved, Report, Silent};

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL};

const PAILLIER: Cipher = Cipher::Paillier(KeySize::Bits2048);

const BOTH: [Cipher; 2] = [PAILLIER, Cipher::Bfv];

fn plan(fixture: &Fixture, cipher: Cipher) -> Plan {
    Plan::new(fixture.program(), cipher).expect("a plan")
}

/// A server of the fixture whose policy accepts this suite.
fn server(fixture: &Fixture) -> Server {
    let guard = Guard::new(Policy::unrestricted(), "unused").expect("nothing is counted");
    Server::new(fixture.public.clone(), &fixture.weights).expect("a server").under(guard)
}

/// Runs `client` against a server of the fixture; also what that server did.
fn session<T>(fixture: &Fixture, client: impl FnOnce(&mut Client) -> T) -> (T, Result<(), Error>, Vec<Event>) {
    let server = server(fixture);
    let (mut near, mut far) = pair();
    near.set_timeout(PATIENCE);
    far.set_timeout(PATIENCE);
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut events = Vec::new();
            let result = server.serve(None, None, far, &mut Silent, &mut |event| events.push(event));
            (result, events)
        });
        let mut session = Client::new(near).expect("a greeting");
        let out = client(&mut session);
        // A session that failed is closed already.
        session.close().ok();
        let (result, events) = serving.join().expect("the server does not panic");
        (out, result, events)
    })
}

fn infer(client: &mut Client, fixture: &Fixture, plan: &Plan) -> Report {
    client.prepare(plan, &mut Silent).expect("a key and noise");
    let (outputs, report) = client.infer(plan, &fixture.case.inputs, &mut Silent).expect("outputs");
    assert_eq!(outputs, fixture.case.expected(), "the executor's integers, each bit");
    report
}

#[test]
fn results_are_those_of_the_executor_to_the_bit() {
    for (fixture, cipher) in [&*RESIDUAL, &*CHOICE].into_iter().flat_map(|fixture| BOTH.map(|cipher| (fixture, cipher)))
    {
        let plan = plan(fixture, cipher);
        let ((), result, events) = session(fixture, |client| {
            assert_eq!(client.describe(None).expect("a program"), fixture.public);
            infer(client, fixture, &plan);
            infer(client, fixture, &plan);
        });
        result.expect("a clean end");
        assert_eq!(events.len(), 5);
    }
}

#[test]
fn a_session_may_change_its_cipher() {
    let plans = BOTH.map(|cipher| plan(&CHOICE, cipher));
    let ((), result, _) = session(&CHOICE, |client| {
        for plan in [1, 0, 1, 1, 0].map(|index: usize| &plans[index]) {
            infer(client, &CHOICE, plan);
        }
    });
    result.expect("a clean end");
}

#[test]
fn bytes_and_rounds_are_those_forecast() {
    for (fixture, cipher) in [&*RESIDUAL, &*CHOICE].into_iter().flat_map(|fixture| BOTH.map(|cipher| (fixture, cipher)))
    {
        let plan = plan(fixture, cipher);
        let ((offline, online), ..) = session(fixture, |client| {
            let offline = client.prepare(&plan, &mut Silent).expect("a preparation");
            let (_, online) = client.infer(&plan, &fixture.case.inputs, &mut Silent).expect("outputs");
            (offline, online)
        });
        let forecast = plan.forecast();
        let counted = |report: &Report| (report.total.bytes_sent as usize, report.total.bytes_received as usize);
        assert_eq!(counted(&offline), (forecast.offline_bytes_client, forecast.offline_bytes_server), "{cipher}");
        assert_eq!(counted(&online), (forecast.online_bytes_client, forecast.online_bytes_server), "{cipher}");
        let rounds = (offline.total.rounds, online.total.rounds);
        assert_eq!(rounds, (forecast.offline_rounds, forecast.online_rounds), "{cipher}");
    }
}

#[test]
fn what_was_prepared_is_used_once() {
    for cipher in BOTH {
        let plan = plan(&CHOICE, cipher);
        let (again, result, _) = session(&CHOICE, |client| {
            infer(client, &CHOICE, &plan);
            client.infer(&plan, &CHOICE.case.inputs, &mut Silent).map(drop)
        });
        assert!(matches!(again, Err(Error::Misuse(_))), "{again:?}");
        assert!(result.is_err());
    }
}

#[test]
fn another_program_is_refused() {
    for cipher in BOTH {
        let other = plan(&RESIDUAL, cipher);
        let (refused, result, _) = session(&CHOICE, |client| client.prepare(&other, &mut Silent).map(drop));
        assert!(refused.expect_err("a refusal").is_the_peers_fault());
        assert!(matches!(result, Err(Error::PeerMisbehaved(PeerMisbehaved::Request(_)))), "{result:?}");
    }
}

/// Why a program with one text of its public half replaced is refused.
fn refusal(fixture: &Fixture, from: &str, to: &str) -> String {
    let text = String::from_utf8(fixture.public.clone()).expect("JSON");
    assert!(text.contains(from), "{from} in {text}");
    let program = Program::parse(text.replacen(from, to, 1).as_bytes()).expect("a program");
    match Plan::new(program, PAILLIER) {
        Err(Error::Misuse(text)) => text,
        other => panic!("planned: {}", other.is_ok()),
    }
}

#[test]
fn what_permutations_cannot_hide_is_refused_by_name() {
    let window = r#""kernel":[2,2],"name":"max""#;
    let overlapping = refusal(&RESIDUAL, window, &window.replace("[2,2]", "[3,3]"));
    assert!(overlapping.starts_with("layer max (max_pool2d)") && overlapping.contains("overlap"), "{overlapping}");
    let factors = refusal(&RESIDUAL, "[16384,", "[2147483648,");
    assert!(factors.contains("31 bits"), "{factors}");
}

#[test]
fn packed_samples_come_out_as_they_would_alone() {
    for (fixture, samples) in [(&*RESIDUAL, 3), (&*CHOICE, 53)] {
        let plan = plan(fixture, PAILLIER).packed(samples).expect("room");
        // Samples of all sizes and signs, the fixture's own among them.
        let sample = |index: usize| -> Vec<Vec<i64>> {
            let factor = |value: i64| match index {
                0 => value,
                _ => value / index as i64 * if index.is_multiple_of(2) { 1 } else { -1 },
            };
            fixture.case.inputs.iter().map(|input| input.iter().map(|&value| factor(value)).collect()).collect()
        };
        let joined: Vec<Vec<i64>> = (0..fixture.case.inputs.len())
            .map(|input| (0..samples).flat_map(|index| sample(index).swap_remove(input)).collect())
            .collect();
        let (outputs, result, _) = session(fixture, |client| {
            client.prepare(&plan, &mut Silent).expect("a key and noise");
            client.infer(&plan, &joined, &mut Silent).expect("outputs").0
        });
        result.expect("a clean end");
        let alone = |index: usize| {
            let plan = self::plan(fixture, Cipher::Bfv);
            let (outputs, ..) = session(fixture, |client| {
                client.prepare(&plan, &mut Silent).expect("masks");
                client.infer(&plan, &sample(index), &mut Silent).expect("outputs").0
            });
            outputs
        };
        for index in [0, 1, samples - 1] {
            for (output, alone) in outputs.iter().zip(alone(index)) {
                assert_eq!(output[index * alone.len()..][..alone.len()], alone, "sample {index}");
            }
        }
        assert_eq!(plan.forecast().encryptions, self::plan(fixture, PAILLIER).forecast().encryptions);
    }
}

#[test]
fn more_samples_than_there_is_room_for_are_refused() {
    assert!(plan(&CHOICE, PAILLIER).packed(53).is_ok());
    for samples in [0, 54, usize::MAX] {
        assert!(plan(&CHOICE, PAILLIER).packed(samples).is_err(), "{samples}");
    }
    assert!(plan(&CHOICE, Cipher::Paillier(KeySize::Bits3072)).packed(80).is_ok());
    assert!(plan(&CHOICE, Cipher::Bfv).packed(2).is_err());
}

/// What a server that takes `only` one way says to a preparation in another; None if it takes it.
fn refused_by(only: Config, plan: &Plan) -> Option<String> {
    let server = server(&CHOICE);
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (prepared, served) = thread::scope(|scope| {
        let serving = scope.spawn(move || server.serve(Some(only), None, far, &mut Silent, &mut |_| ()));
        let mut session = Client::new(near).expect("a greeting");
        let prepared = session.prepare(plan, &mut Silent);
        drop(session);
        (prepared, serving.join().expect("the server does not panic"))
    });
    let error = prepared.err()?;
    assert!(error.is_the_peers_fault(), "{error}");
    Some(served.expect_err("a refusal").to_string())
}

#[test]
fn a_session_for_one_cipher_refuses_all_others() {
    for only in Cipher::ALL {
        // A key of 3072 bits takes seconds to make, and is refused no differently by a session for BFV.
        let [_, long, bfv] = Cipher::ALL;
        for cipher in Cipher::ALL.into_iter().filter(|&cipher| cipher != long || only != bfv) {
            match refused_by(Config { cipher: only, packed: false }, &plan(&CHOICE, cipher)) {
                None => assert_eq!(cipher, only),
                Some(text) => {
                    assert_ne!(cipher, only);
                    assert!(text.contains(&format!("takes {only} alone, not {cipher}")), "{text}");
                }
            }
        }
    }
}

/// A client that packs samples has several answers for one inference, and sees which of their values belong together.
#[test]
fn samples_are_packed_only_where_the_server_packs() {
    let two = plan(&CHOICE, PAILLIER).packed(2).expect("room for two");
    let text = refused_by(Config { cipher: PAILLIER, packed: false }, &two).expect("a refusal");
    assert!(text.contains("packs no samples"), "{text}");
    for plan in [two, plan(&CHOICE, PAILLIER)] {
        assert_eq!(refused_by(Config { cipher: PAILLIER, packed: true }, &plan), None);
    }
}

/// What a malicious client may put in place of its messages of a preparation over BFV: the server names it and answers
/// nothing, and serves the next client.
#[test]
fn residues_that_are_not_reduced_are_refused_by_name() {
    let (near, far, transcript) = record::pair();
    let lengths: Vec<usize> = {
        let server = server(&CHOICE);
        thread::scope(|scope| {
            scope.spawn(move || server.serve(None, None, far, &mut Silent, &mut |_| ()).expect("a clean end"));
            let mut client = Client::new(near).expect("a greeting");
            client.prepare(&plan(&CHOICE, Cipher::Bfv), &mut Silent).expect("masks");
            client.close().expect("a goodbye");
        });
        let transcript = transcript.lock().expect("no thread panicked");
        transcript.payloads(Direction::FirstToSecond).map(<[u8]>::len).collect()
    };
    // The key and one ciphertext, which are alike in size.
    let large: Vec<usize> = (0..lengths.len()).filter(|&index| lengths[index] > 30_000).collect();
    assert_eq!(large.len(), 2, "{lengths:?}");
    for (message, what) in large.into_iter().zip(["public key", "ciphertext"]) {
        let frame = [&[1][..], &(lengths[message] as u32).to_le_bytes(), &vec![0xff; lengths[message]]].concat();
        let (mut near, mut far, witness) = tamper::pair(message, Action::Replace(frame));
        near.set_timeout(PATIENCE);
        far.set_timeout(PATIENCE);
        let server = server(&CHOICE);
        let (refused, served) = thread::scope(|scope| {
            let serving = scope.spawn(move || server.serve(None, None, far, &mut Silent, &mut |_| ()));
            let mut client = Client::new(near).expect("a greeting");
            let refused = client.prepare(&plan(&CHOICE, Cipher::Bfv), &mut Silent);
            drop(client);
            (refused, serving.join().expect("the server does not panic"))
        });
        assert!(witness.happened());
        assert!(refused.expect_err("a refusal").is_the_peers_fault());
        let refusal = served.expect_err("a refusal");
        assert!(refusal.is_the_peers_fault() && refusal.to_string().contains(what), "{refusal}");
    }
}

/// A preparation and an inference on which one message of one side is tampered with: what both sides say.
///
/// On a busy machine a side may have given up before that message came; both are given longer, then.
fn tampered(cipher: Cipher, by_client: bool, message: usize, action: Action) -> (Result<(), Error>, Result<(), Error>) {
    let tries = WAITS.iter().find_map(|&wait| tampered_within(wait, cipher, by_client, message, action.clone()));
    tries.unwrap_or_else(|| panic!("message {message} is never sent"))
}

/// The same where a side waits for any message for so long at most; None if the message never came.
fn tampered_within(
    wait: Duration,
    cipher: Cipher,
    by_client: bool,
    message: usize,
    action: Action,
) -> Option<(Result<(), Error>, Result<(), Error>)> {
    let (one, two, witness) = tamper::pair(message, action);
    let (mut near, mut far) = if by_client { (one, two) } else { (two, one) };
    near.set_timeout(wait);
    far.set_timeout(wait);
    let server = server(&CHOICE);
    let plan = plan(&CHOICE, cipher);
    let ended = thread::scope(|scope| {
        let serving = scope.spawn(move || server.serve(None, None, far, &mut Silent, &mut |_| ()));
        let talk = || {
            let mut client = Client::new(near)?;
            client.prepare(&plan, &mut Silent)?;
            client.infer(&plan, &CHOICE.case.inputs, &mut Silent)?;
            client.close()
        };
        (talk(), serving.join().expect("the server does not panic"))
    });
    witness.happened().then_some(ended)
}

/// How long a side waits for a message that may never come, from one try to the next.
const WAITS: [Duration; 3] = [Duration::from_millis(1500), Duration::from_secs(6), Duration::from_secs(24)];

#[test]
fn no_message_can_be_cut_or_lengthened_unnoticed_and_none_makes_a_side_panic() {
    let (near, far, transcript) = record::pair();
    let server = server(&CHOICE);
    thread::scope(|scope| {
        scope.spawn(move || server.serve(None, None, far, &mut Silent, &mut |_| ()).expect("a clean end"));
        let mut client = Client::new(near).expect("a greeting");
        infer(&mut client, &CHOICE, &plan(&CHOICE, Cipher::Bfv));
        client.close().expect("a goodbye");
    });
    let transcript = transcript.lock().expect("no thread panicked");
    for (by_client, side) in [(true, Direction::FirstToSecond), (false, Direction::SecondToFirst)] {
        thread::scope(|scope| {
            for message in 0..transcript.payloads(side).count() {
                scope.spawn(move || {
                    for (action, fails) in [
                        (Action::Shorten { by: 1 }, true),
                        (Action::Lengthen { by: 1 }, true),
                        (Action::Close, true),
                        (Action::Randomise { seed: 1 }, false),
                        (Action::Zero, false),
                    ] {
                        // The goodbye is the client's last word, and nobody tells it that it was not understood.
                        let (client, server) = tampered(Cipher::Bfv, by_client, message, action.clone());
                        assert!(!fails || client.is_err() || server.is_err(), "message {message}, {action:?}");
                    }
                });
            }
        });
    }
}
