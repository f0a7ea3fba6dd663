//! A server decides: what its policy does not accept is refused before anything is made or spent, whatever a client asks.
//!
//! The controls lift the policy: then every refused mode is served, and answers to one input differ as the attack needs it that
//! learns weights from one-bit truncations.

use std::collections::BTreeSet;

use privet_channel::{AbortReason, Link, PeerMisbehaved, pair};
use privet_suites::policy::{Guard, Policy};
use privet_suites::session::{Client, Server};
use privet_suites::sharing::{Linear, Maker, Options, Plan, Rounds, Truncation};
use privet_suites::{Error, Silent, registry, stream};

use crate::parties::{
    CHOICE, PATIENCE, RESIDUAL, StoreFolder, dealer, infer, over, prepare, server, server_under, session,
};

fn gmw(truncation: Truncation) -> Options {
    Options::gmw(Rounds::Log, truncation)
}

fn one_shot(truncation: Truncation) -> Options {
    Options { linear: Linear::Online, ..gmw(truncation) }
}

fn dealt(truncation: Truncation) -> Options {
    Options { maker: Maker::Dealer, ..gmw(truncation) }
}

/// How a session ended at the client that was refused; nothing may have happened at the server.
fn refused(
    server: &Server,
    client_folder: &StoreFolder,
    work: impl FnOnce(&mut Client) -> Result<(), Error>,
) -> (AbortReason, String) {
    let (error, side) = over(pair(), server, |mut channel| {
        channel.set_timeout(PATIENCE);
        let (connect, _) = dealer();
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(connect);
        work(&mut client).expect_err("a refusal")
    });
    assert!(side.events.is_empty(), "the server did something");
    side.result.expect_err("the session failed");
    match error {
        Error::Channel(privet_channel::Error::PeerMisbehaved(PeerMisbehaved::Aborted { reason, text })) => {
            (reason, text)
        }
        other => panic!("not told why: {other:?}"),
    }
}

#[test]
fn by_default_every_weaker_mode_is_refused_before_anything_is_made() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (connect, dealt) = dealer();
    let server = server_under(&server_folder, Policy::default()).with_dealer(connect);
    let mut names = BTreeSet::new();
    for config in registry::configs() {
        let weaknesses = config.mode().weaknesses();
        if weaknesses.is_empty() {
            continue;
        }
        let plan = config.plan(CHOICE.program(), Link::LAN).expect("a plan");
        let (reason, text) = refused(&server, &client_folder, |client| client.prepare(&*plan, &mut Silent).map(drop));
        assert_eq!(reason, AbortReason::NotAllowed);
        let defaults = ["exact", "parties", "masks"];
        assert!(defaults.iter().any(|value| text.contains(&format!("accepted for you: {value}"))), "{text}");
        names.extend(weaknesses.into_iter().map(|weakness| weakness.name));
    }
    assert_eq!(names, ["one-bit", "dealer", "kept-weights"].into());
    let one_shot = CHOICE.plan(one_shot(Truncation::OneBit));
    let ask = |client: &mut Client| client.infer_unprepared(&one_shot, &CHOICE.case.inputs, &mut Silent).map(drop);
    assert_eq!(refused(&server, &client_folder, ask).0, AbortReason::NotAllowed);
    assert!(client_folder.ready().is_empty() && server_folder.ready().is_empty());
    assert!(dealt.try_recv().is_err(), "nobody went to the dealer");
}

#[test]
fn what_a_policy_allows_is_served_and_nothing_beyond_it() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let mut policy = Policy::default();
    policy.accepts.allow("one-bit").expect("a weakness");
    let server = server_under(&server_folder, policy);
    for truncation in [Truncation::Exact, Truncation::OneBit] {
        let plan = CHOICE.plan(gmw(truncation));
        session(&server, &client_folder, |client| {
            let id = prepare(client, &plan);
            infer(client, &CHOICE, &plan, &id);
        });
    }
    let dealt = CHOICE.plan(dealt(Truncation::Exact));
    let (reason, _) = refused(&server, &client_folder, |client| client.prepare(&dealt, &mut Silent).map(drop));
    assert_eq!(reason, AbortReason::NotAllowed);
}

/// Material may be older than the policy. Neither side loses what was refused.
#[test]
fn material_of_a_mode_that_is_accepted_no_more_is_refused_and_kept() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(gmw(Truncation::OneBit));
    let id = session(&server(&server_folder), &client_folder, |client| prepare(client, &plan));
    let strict = server_under(&server_folder, Policy::default());
    let ask = |client: &mut Client| client.infer(&plan, &id, &CHOICE.case.inputs, &mut Silent).map(drop);
    assert_eq!(refused(&strict, &client_folder, ask).0, AbortReason::NotAllowed);
    assert_eq!((client_folder.ready(), server_folder.ready()), (vec![id.clone()], vec![id.clone()]));
    session(&server(&server_folder), &client_folder, |client| infer(client, &CHOICE, &plan, &id));
}

#[test]
fn a_client_has_its_answers_in_an_hour_over_modes_sessions_and_restarts() {
    const ANSWERS: u32 = 3;
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let limited = || {
        let policy = Policy { answers_per_hour: Some(ANSWERS), ..Policy::unrestricted() };
        server_under(&server_folder, policy)
    };
    let exact = CHOICE.plan(gmw(Truncation::Exact));
    let one_bit = CHOICE.plan(gmw(Truncation::OneBit));
    let one_shot = CHOICE.plan(one_shot(Truncation::Exact));
    // Three modes, each answer from a server that was started again.
    let answer = |plan: &Plan| {
        session(&limited(), &client_folder, |client| {
            let id = prepare(client, plan);
            infer(client, &CHOICE, plan, &id);
        });
    };
    answer(&exact);
    answer(&one_bit);
    session(&limited(), &client_folder, |client| {
        client.infer_unprepared(&one_shot, &CHOICE.case.inputs, &mut Silent).expect("an inference");
    });
    // Material may still be made, but none is spent, in whatever mode.
    let ids = [&exact, &one_bit].map(|plan| session(&limited(), &client_folder, |client| prepare(client, plan)));
    for (plan, id) in [&exact, &one_bit].into_iter().zip(&ids) {
        let ask = |client: &mut Client| client.infer(plan, id, &CHOICE.case.inputs, &mut Silent).map(drop);
        let (reason, text) = refused(&limited(), &client_folder, ask);
        assert_eq!(reason, AbortReason::Busy);
        let wait = text.strip_prefix(
            "this server gives a client 3 answers in an hour at most, and you have had them: try again in ",
        );
        let seconds: u64 = wait.and_then(|rest| rest.strip_suffix(" seconds")).expect(&text).parse().expect("a number");
        assert!((3000..=3600).contains(&seconds), "{seconds}");
    }
    let ask = |client: &mut Client| client.infer_unprepared(&one_shot, &CHOICE.case.inputs, &mut Silent).map(drop);
    assert_eq!(refused(&limited(), &client_folder, ask).0, AbortReason::Busy);
    assert_eq!((client_folder.ready().len(), server_folder.ready().len()), (2, 2));
    // Without the limit both are good.
    session(&server(&server_folder), &client_folder, |client| infer(client, &CHOICE, &exact, &ids[0]));
}

#[test]
fn sessions_at_once_share_a_clients_answers() {
    const SESSIONS: usize = 4;
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(gmw(Truncation::Exact));
    let policy = Policy { answers_per_hour: Some(2), ..Policy::default() };
    session(&server(&server_folder), &client_folder, |client| (0..SESSIONS).for_each(|_| drop(prepare(client, &plan))));
    let answers = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|_| {
                let server = server_under(&server_folder, policy.clone());
                let (client_folder, plan) = (&client_folder, &plan);
                scope.spawn(move || {
                    over(pair(), &server, |mut channel| {
                        channel.set_timeout(PATIENCE);
                        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
                        client.infer_next(plan, &CHOICE.case.inputs, &mut Silent).is_ok()
                    })
                    .0
                })
            })
            .collect();
        sessions.into_iter().map(|session| session.join().expect("no panic")).filter(|&answered| answered).count()
    });
    assert_eq!(answers, 2);
    assert_eq!((client_folder.ready().len(), server_folder.ready().len()), (SESSIONS - 2, SESSIONS - 2));
}

#[test]
fn suite_stream_is_refused_unless_the_policy_accepts_it() {
    let plan = stream::Plan::new(CHOICE.program(), stream::Cipher::Bfv).expect("a plan");
    for (policy, served) in [(Policy::default(), false), (Policy::unrestricted(), true)] {
        let guard = Guard::new(policy, "unused").expect("nothing is counted");
        let server = stream::Server::new(CHOICE.public.clone(), &CHOICE.weights).expect("a server").under(guard);
        let (mut near, far) = pair();
        near.set_timeout(PATIENCE);
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let mut events = 0;
                (server.serve(None, None, far, &mut Silent, &mut |_| events += 1), events)
            });
            let mut client = stream::Client::new(near).expect("a greeting");
            let prepared = client.prepare(&plan, &mut Silent);
            assert_eq!(prepared.is_ok(), served);
            if let Err(error) = prepared {
                let text = error.to_string();
                assert!(text.contains("does not accept suite stream: accepted for you: gmw, fss, ckks"), "{text}");
            }
            client.close().ok();
            let (result, events) = serving.join().expect("no panic");
            assert_eq!((result.is_ok(), events > 0), (served, served));
        });
    }
}

/// What the attack on one-bit truncations starts from: answers to one input that differ. The default mode has none.
#[test]
fn answers_to_one_input_are_the_same_by_default_and_differ_where_one_bit_is_allowed() {
    const TIMES: usize = 6;
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let answers = |server: &Server, truncation| {
        let plan = RESIDUAL.plan(gmw(truncation));
        session(server, &client_folder, |client| {
            (0..TIMES)
                .map(|_| prepare(client, &plan))
                .collect::<Vec<_>>()
                .iter()
                .map(|id| infer(client, &RESIDUAL, &plan, id))
                .collect::<BTreeSet<_>>()
        })
    };
    assert_eq!(answers(&server_under(&server_folder, Policy::default()), Truncation::Exact).len(), 1);
    assert!(answers(&server(&server_folder), Truncation::OneBit).len() > 1);
}
