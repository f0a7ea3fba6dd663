//! Suite `stream`: results are exactly the executor's, costs are those forecast, and what does not fit is refused.

use std::thread;

use privet_channel::pair;
use privet_party::stream::{Cipher, Client, Event, KeySize, Plan, Server};
use privet_party::{Error, PeerMisbehaved, Report, Silent};
use privet_program::Program;

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL};

const PAILLIER: Cipher = Cipher::Paillier(KeySize::Bits2048);

const BOTH: [Cipher; 2] = [PAILLIER, Cipher::Bfv];

fn plan(fixture: &Fixture, cipher: Cipher) -> Plan {
    Plan::new(fixture.program(), cipher).expect("a plan")
}

/// Runs `client` against a server of the fixture; also what that server did.
fn session<T>(fixture: &Fixture, client: impl FnOnce(&mut Client) -> T) -> (T, Result<(), Error>, Vec<Event>) {
    let server = Server::new(fixture.public.clone(), &fixture.weights).expect("a server");
    let (mut near, mut far) = pair();
    near.set_timeout(PATIENCE);
    far.set_timeout(PATIENCE);
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut events = Vec::new();
            let result = server.serve(far, &mut Silent, &mut |event| events.push(event));
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
    for (fixture, cipher) in [&*RESIDUAL, &*CHOICE].into_iter().flat_map(|fixture| BOTH.map(|cipher| (fixture, cipher))) {
        let plan = plan(fixture, cipher);
        let ((), result, events) = session(fixture, |client| {
            assert_eq!(client.describe().expect("a program"), fixture.public);
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
fn bytes_are_those_forecast() {
    for cipher in BOTH {
        let plan = plan(&RESIDUAL, cipher);
        let ((offline, online), ..) = session(&RESIDUAL, |client| {
            let offline = client.prepare(&plan, &mut Silent).expect("a preparation");
            let (_, online) = client.infer(&plan, &RESIDUAL.case.inputs, &mut Silent).expect("outputs");
            (offline, online)
        });
        let forecast = plan.forecast();
        // Beside tensors there are the requests, and with Paillier a header for every message.
        for (bytes, expected) in [
            (offline.total.bytes_sent, forecast.offline_bytes_client),
            (offline.total.bytes_received, forecast.offline_bytes_server),
            (online.total.bytes_sent, forecast.online_bytes_client),
            (online.total.bytes_received, forecast.online_bytes_server),
        ] {
            let around = bytes.checked_sub(expected as u64);
            assert!(around.is_some_and(|around| around < 200), "{bytes} for {expected} with {cipher}");
        }
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
