//! Sessions that stay for a client's next job: what ends them, and that no material is lost or used again by that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use privet_channel::{AbortReason, Channel, pair};
use privet_suites::session::{Client, Connect, Deal, Dealer, Event, messages};
use privet_suites::sharing::{Plan, Rounds};
use privet_suites::{Error, MaterialId, Silent, StoreError, registry};

use crate::dealt::dealt;
use crate::material::aborted;
use crate::parties::{CHOICE, MOST, PATIENCE, StoreFolder, infer, over, prepare, server, session, session_with_dealer};

/// How long servers wait for another job here, unless they are to end soon.
const IDLE: Duration = Duration::from_secs(60);

#[test]
fn a_session_serves_one_job_after_the_other_with_keys_of_their_own() {
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let ((), side) = over((near, far), &server(&theirs).ending_after(IDLE), |channel| {
        let mut client = Client::new(channel, ours.store()).expect("a greeting");
        for _ in 0..2 {
            let id = prepare(&mut client, &plan);
            assert!(client.resume(PATIENCE));
            infer(&mut client, &CHOICE, &plan, &id);
            assert!(client.resume(PATIENCE));
        }
        client.close().expect("a goodbye");
    });
    side.result.expect("the session ends well");
    let sent = |event: &Event| match event {
        Event::Prepared { report, .. } | Event::Inferred { report, .. } => report.total.bytes_sent,
        _ => 0,
    };
    let bytes: Vec<u64> = side.events.iter().map(sent).collect();
    assert_eq!(bytes[..2], bytes[2..], "each job sends what the one before has sent");
}

#[test]
fn a_server_ends_a_session_that_is_idle_without_an_error() {
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    let soon = Duration::from_millis(200);
    let (left, side) = over(pair(), &server(&theirs).ending_after(soon), |channel| {
        let mut client = Client::new(channel, ours.store()).expect("a greeting");
        prepare(&mut client, &plan);
        let since = Instant::now();
        thread::sleep(3 * soon);
        assert!(client.resume(PATIENCE));
        let failed = client.prepare(&plan, &mut Silent).map(drop);
        assert!(failed.is_err() && since.elapsed() < PATIENCE, "{failed:?}");
        client.was_left()
    });
    assert!(left, "it may be asked again in another session");
    side.result.expect("nothing went wrong");
}

/// Asks for an inference of a server that has ended the session after a job, or hangs up on whoever asks: the error, and whether
/// it may be asked again.
fn hung_up(ours: &StoreFolder, plan: &Plan, id: &MaterialId, resumes: bool) -> (Error, bool) {
    let (near, far) = pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut far = far;
            messages::greet(&mut far).expect("a greeting");
            drop(far.recv_at_most(1 << 16));
        });
        let mut client = Client::new(near, ours.store()).expect("a greeting");
        if resumes {
            assert!(client.resume(PATIENCE));
        }
        let error = client.infer(plan, id, &CHOICE.case.inputs, &mut Silent).map(drop).expect_err("nobody is there");
        (error, client.was_left())
    })
}

/// The control is a session in which the client has no reason to think that the server ended it before it heard of the job.
#[test]
fn material_that_was_asked_for_in_a_session_that_had_ended_is_not_lost() {
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let (server, plan) = (server(&theirs), CHOICE.plan(Rounds::Log));
    let [first, second] = session(&server, &ours, |client| [(); 2].map(|()| prepare(client, &plan)));

    let (error, was_left) = hung_up(&ours, &plan, &first, true);
    assert!(was_left, "{error:?}");
    session(&server, &ours, |client| infer(client, &CHOICE, &plan, &first));

    let (error, was_left) = hung_up(&ours, &plan, &second, false);
    assert!(!was_left, "{error:?}");
    assert!(matches!(ours.store().claim(&second), Err(StoreError::Spent { .. })));
}

#[test]
fn material_of_which_the_server_has_said_yes_is_spent_in_a_session_that_was_taken_up_again() {
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    let id = session(&server(&theirs), &ours, |client| prepare(client, &plan));
    let (near, far) = pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut far = far;
            messages::greet(&mut far).expect("a greeting");
            far.recv_at_most(1 << 16).expect("a request");
            far.send(b"{}").and_then(|()| far.flush()).expect("a yes");
        });
        let mut client = Client::new(near, ours.store()).expect("a greeting");
        assert!(client.resume(PATIENCE));
        let failed = client.infer(&plan, &id, &CHOICE.case.inputs, &mut Silent).map(drop);
        assert!(failed.is_err() && !client.was_left(), "{failed:?}");
    });
    assert!(matches!(ours.store().claim(&id), Err(StoreError::Spent { .. })));
}

/// The links to a dealer that so many deals take whose parties wait `apart` in between, if it waits `idle` for another on each.
fn links_of_deals(deals: usize, idle: Duration, apart: Duration) -> usize {
    let dealer = Arc::new(registry::dealer(MOST, PATIENCE).expect("entropy"));
    let links = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&links);
    let connect = Connect::new(move || {
        let (mut near, far) = pair();
        near.set_timeout(PATIENCE);
        count.fetch_add(1, Ordering::SeqCst);
        let dealer = Arc::clone(&dealer);
        thread::spawn(move || {
            let mut link = dealer.serve(far)?.link;
            while let Some(channel) = link {
                link = dealer.serve_another(channel, idle, || Ok(()))?.link;
            }
            Ok::<_, Error>(())
        });
        Ok(near)
    });
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let plan = dealt(&CHOICE, Rounds::Log);
    session_with_dealer([&ours, &theirs], &connect, |client| {
        for _ in 0..deals {
            let id = prepare(client, &plan);
            infer(client, &CHOICE, &plan, &id);
            thread::sleep(apart);
        }
    });
    links.load(Ordering::SeqCst)
}

#[test]
fn one_link_of_each_party_serves_all_deals() {
    assert_eq!(links_of_deals(3, IDLE, Duration::ZERO), 2);
}

#[test]
fn a_party_whose_link_has_ended_opens_another() {
    let soon = Duration::from_millis(50);
    assert_eq!(links_of_deals(3, soon, 6 * soon), 6);
}

#[test]
fn a_link_on_which_the_dealer_is_silent_keeps_nobody_waiting_for_long() {
    let dealer = Arc::new(registry::dealer(MOST, PATIENCE).expect("entropy"));
    let silent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&silent);
    let connect = Connect::new(move || {
        let (mut near, far) = pair();
        near.set_timeout(PATIENCE);
        let (dealer, kept) = (Arc::clone(&dealer), Arc::clone(&kept));
        thread::spawn(move || {
            // It deals once, and then the link is open and says nothing.
            let deal = dealer.serve(far)?;
            kept.lock().expect("no panic").extend(deal.link);
            Ok::<_, Error>(())
        });
        Ok(near)
    });
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let plan = dealt(&CHOICE, Rounds::Log);
    let since = session_with_dealer([&ours, &theirs], &connect, |client| {
        prepare(client, &plan);
        let since = Instant::now();
        prepare(client, &plan);
        since
    });
    assert!(since.elapsed() < PATIENCE / 4, "{:?}", since.elapsed());
    drop(silent);
}

/// Asks a dealer for a half of the deal `material` by hand: the thread that serves the party, and its link.
fn ask(dealer: &Arc<Dealer>, half: &str, material: &MaterialId) -> (thread::JoinHandle<Result<Deal, Error>>, Channel) {
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let serving = thread::spawn({
        let dealer = Arc::clone(dealer);
        move || dealer.serve(far)
    });
    messages::greet(&mut near).expect("a greeting");
    let program = "00".repeat(32);
    let ask = serde_json::json!({
        "half": half, "material": material, "other": "", "program": program, "suite": "fss", "kept": [],
    });
    messages::send(&mut near, &ask).expect("a request");
    if half == "server" {
        // Which no program is, so the deal fails.
        near.send(b"{}").and_then(|()| near.flush()).expect("a public half");
    }
    (serving, near)
}

/// Whoever takes up the name of a deal that has failed is no party of that deal: its link would go to another party's thread, which
/// knows another certificate.
#[test]
fn a_third_party_does_not_take_the_place_of_one_whose_deal_failed() {
    let patience = Duration::from_secs(5);
    let dealer = Arc::new(registry::dealer(MOST, patience).expect("entropy"));
    for round in 0..50 {
        let material = MaterialId::new(&[round; 16]);
        let (first, _link) = ask(&dealer, "client", &material);
        thread::sleep(Duration::from_millis(20));
        let since = Instant::now();
        let (second, _link) = ask(&dealer, "server", &material);
        let (_third, _link) = ask(&dealer, "client", &material);
        assert!(second.join().expect("no panic").is_err(), "there is no such program");
        let deal = first.join().expect("no panic").expect("the other party's thread tells of the error");
        assert!(deal.link.is_none() && since.elapsed() < patience / 2, "{:?}", since.elapsed());
    }
}

#[test]
fn a_party_that_may_have_no_other_deal_is_told_why() {
    let dealer = registry::dealer(MOST, PATIENCE).expect("entropy");
    let (mut near, far) = pair();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            let served = dealer.serve_another(far, IDLE, || Err("it was revoked".into())).expect("no failure");
            assert!(served.dealt.is_none() && served.link.is_none());
        });
        messages::greet(&mut near).expect_err("a refusal")
    });
    let (reason, text) = aborted(&error);
    assert_eq!((reason, text), (AbortReason::NotAllowed, "it was revoked"));
}
