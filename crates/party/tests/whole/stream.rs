//! Suite `stream`: results are exactly the executor's, costs are those forecast, and what does not fit is refused.

use std::thread;

use privet_channel::pair;
use privet_party::stream::{Client, Event, KeySize, Plan, Server};
use privet_party::{Error, PeerMisbehaved, Report, Silent};
use privet_program::Program;

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL};

fn plan(fixture: &Fixture) -> Plan {
    Plan::new(fixture.program(), KeySize::Bits2048).expect("a plan")
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
    for fixture in [&*RESIDUAL, &*CHOICE] {
        let plan = plan(fixture);
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
fn bytes_are_those_forecast() {
    let plan = plan(&RESIDUAL);
    let (report, ..) = session(&RESIDUAL, |client| infer(client, &RESIDUAL, &plan));
    let forecast = plan.forecast();
    let headers = |bytes: u64, ciphertexts: usize| bytes - ciphertexts as u64;
    // Every message has a header of a few bytes; here a tensor is a message.
    for (bytes, ciphertexts) in [
        (report.total.bytes_sent, forecast.online_bytes_client),
        (report.total.bytes_received, forecast.online_bytes_server),
    ] {
        assert!(bytes > ciphertexts as u64 && headers(bytes, ciphertexts) < 200, "{bytes} for {ciphertexts}");
    }
}

#[test]
fn noise_is_used_once() {
    let plan = plan(&CHOICE);
    let (again, result, _) = session(&CHOICE, |client| {
        infer(client, &CHOICE, &plan);
        client.infer(&plan, &CHOICE.case.inputs, &mut Silent).map(drop)
    });
    assert!(matches!(again, Err(Error::Misuse(_))), "{again:?}");
    assert!(result.is_err());
}

#[test]
fn another_program_is_refused() {
    let other = plan(&RESIDUAL);
    let (refused, result, _) = session(&CHOICE, |client| client.prepare(&other, &mut Silent).map(drop));
    assert!(refused.expect_err("a refusal").is_the_peers_fault());
    assert!(matches!(result, Err(Error::PeerMisbehaved(PeerMisbehaved::Request(_)))), "{result:?}");
}

/// Why a program with one text of its public half replaced is refused.
fn refusal(fixture: &Fixture, from: &str, to: &str) -> String {
    let text = String::from_utf8(fixture.public.clone()).expect("JSON");
    assert!(text.contains(from), "{from} in {text}");
    let program = Program::parse(text.replacen(from, to, 1).as_bytes()).expect("a program");
    match Plan::new(program, KeySize::Bits2048) {
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
