//! Material from a dealer: the same results by the same online phase, and a dealer that brings only partners together.

use std::time::Duration;

use privet_channel::{AbortReason, pair, record};
use privet_ring::Modulus;
use privet_suites::session::{Client, Connect, Dealt, Event};
use privet_suites::sharing::{Maker, Options, Plan, Rounds, Suite, Truncation};
use privet_suites::{Error, PeerMisbehaved, Silent};

use crate::parties::{
    CHOICE, Fixture, GRAM, MOST, PATIENCE, PRODUCTS, RESIDUAL, SMOOTH, StoreFolder, dealer, dealer_with, over, server,
};

pub fn dealt(fixture: &Fixture, rounds: Rounds) -> Plan {
    fixture.plan(Options { maker: Maker::Dealer, ..Options::gmw(rounds, Truncation::OneBit) })
}

/// A session in which both parties know ways to a dealer; both results.
fn session<T>(
    [client_folder, server_folder]: [&StoreFolder; 2],
    [client_dealer, server_dealer]: [Connect; 2],
    work: impl FnOnce(&mut Client) -> Result<T, Error>,
) -> (Result<T, Error>, Result<(), Error>, Vec<Event>) {
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (result, side) = over((near, far), &server(server_folder).with_dealer(server_dealer), |channel| {
        let mut client = Client::new(channel, client_folder.store())?.with_dealer(client_dealer);
        let result = work(&mut client)?;
        client.close()?;
        Ok(result)
    });
    (result, side.result, side.events)
}

#[test]
fn dealt_material_gives_the_executors_results_for_the_forecast_bytes() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (connect, dealt) = dealer();
    let only_exact: [&Fixture; 2] = [&SMOOTH, &PRODUCTS];
    for fixture in [&*RESIDUAL, &*CHOICE, &*SMOOTH, &*PRODUCTS, &*GRAM] {
        let exact = |options: &Options| options.truncation == Truncation::Exact;
        let needs_exact = only_exact.iter().any(|other| std::ptr::eq(*other, fixture));
        let options = Options::dealt().filter(|options| exact(options) || !needs_exact);
        for plan in options.map(|options| fixture.plan(options)) {
            let (result, served, events) =
                session([&client_folder, &server_folder], [connect.clone(), connect.clone()], |client| {
                    let (id, offline) = client.prepare(&plan, &mut Silent)?;
                    let (outputs, online) = client.infer(&plan, &id, &fixture.case.inputs, &mut Silent)?;
                    Ok((outputs, offline, online))
                });
            served.expect("the server ends well");
            let (outputs, offline, online) = result.expect("an inference");
            fixture.case.check(&outputs, plan.options());

            let forecast = plan.forecast();
            let [Event::Prepared { report, .. }, Event::Inferred { .. }] = events.as_slice() else {
                panic!("a preparation and an inference")
            };
            assert_eq!(offline.total.bytes_received, forecast.dealer_bytes_client);
            assert_eq!(report.total.bytes_received, forecast.dealer_bytes_server);
            assert_eq!(offline.total.bytes_sent, forecast.offline_bytes_client);
            assert_eq!(report.total.bytes_sent, forecast.offline_bytes_server);
            let sent = [forecast.dealer_bytes_client, forecast.dealer_bytes_server];
            let heard: Vec<_> = dealt.iter().take(2).flatten().flatten().collect();
            assert!(matches!(heard.as_slice(), [Dealt { bytes, .. }] if *bytes == sent), "{heard:?}");
            assert_eq!(online.total.bytes_sent, forecast.online_bytes_client);
            assert_eq!(online.total.bytes_received, forecast.online_bytes_server);
            assert_eq!(online.total.rounds, forecast.online_rounds);
            if plan.options().suite == Suite::Fss
                || [&*PRODUCTS, &*GRAM].iter().any(|other| std::ptr::eq(*other, fixture))
            {
                continue;
            }
            let by_parties = fixture.plan(Options { maker: Maker::Parties, ..plan.options() }).forecast();
            // Online nothing changes, but that products of a dealer have no guard bits to round off, which at times fit in the same tables.
            let [by_dealer, by_parties] =
                [&forecast, &by_parties].map(|of| [of.online_bytes_client, of.online_bytes_server, of.online_rounds]);
            match plan.options().truncation {
                Truncation::OneBit => assert_eq!(by_dealer, by_parties),
                Truncation::Exact => {
                    assert!(
                        by_dealer[0] + by_dealer[1] <= by_parties[0] + by_parties[1] && by_dealer[2] <= by_parties[2],
                        "{by_dealer:?}, {by_parties:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn hidden_weights_travel_once() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (connect, _dealt) = dealer();
    let plan = dealt(&RESIDUAL, Rounds::Log);
    let ring = Modulus::new(plan.program().ring_bits());
    let weights: usize = plan.linear().iter().map(|layer| ring.packed_bytes(layer.plan.weights_len())).sum();
    let received = [(); 2].map(|()| {
        let (near, far, transcript) = record::pair();
        let (prepared, side) = over((near, far), &server(&server_folder).with_dealer(connect.clone()), |channel| {
            let mut client = Client::new(channel, client_folder.store())?.with_dealer(connect.clone());
            client.prepare(&plan, &mut Silent)?;
            client.close()
        });
        prepared.and(side.result).expect("material");
        let transcript = transcript.lock().expect("no thread panicked");
        transcript.payloads(record::Direction::SecondToFirst).map(<[u8]>::len).sum::<usize>()
    });
    // The nonces of the two answers are written in decimal and may differ in length.
    let difference = received[0] - received[1];
    assert!(difference.abs_diff(weights) < 48, "{received:?}, hidden weights are {weights}");
    assert!(weights > 10 * 48 && received[1] < weights, "{received:?}, hidden weights are {weights}");
}

#[test]
fn another_weight_mask_brings_the_weights_again() {
    let (client_folder, server_folder, other_folder) = (StoreFolder::new(), StoreFolder::new(), StoreFolder::new());
    let (connect, _dealt) = dealer();
    let plan = dealt(&RESIDUAL, Rounds::Log);
    for server_folder in [&server_folder, &other_folder] {
        let (result, ..) = session([&client_folder, server_folder], [connect.clone(), connect.clone()], |client| {
            let (id, _) = client.prepare(&plan, &mut Silent)?;
            client.infer(&plan, &id, &RESIDUAL.case.inputs, &mut Silent)
        });
        RESIDUAL.case.check(&result.expect("an inference").0, plan.options());
    }
}

/// The text of an abort.
fn abort_of<T: std::fmt::Debug>(result: Result<T, Error>) -> (AbortReason, String) {
    match result {
        Err(Error::Channel(privet_channel::Error::PeerMisbehaved(privet_channel::PeerMisbehaved::Aborted {
            reason,
            text,
        }))) => (reason, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_party_whose_partner_does_not_come_is_told() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let patience = Duration::from_millis(200);
    let (to_one, first) = dealer_with(MOST, patience);
    let (to_other, second) = dealer_with(MOST, patience);
    let plan = dealt(&CHOICE, Rounds::Log);
    let (result, served, _) =
        session([&client_folder, &server_folder], [to_one, to_other], |client| client.prepare(&plan, &mut Silent));
    let (reason, text) = abort_of(result);
    assert_eq!(reason, AbortReason::BadRequest);
    assert!(text.contains("same dealer"), "{text}");
    assert!(served.is_err());
    for dealer in [first, second] {
        let result = dealer.recv().expect("one result");
        assert!(matches!(result, Err(Error::PeerMisbehaved(PeerMisbehaved::Request(_)))), "{result:?}");
    }
    assert_eq!((client_folder.ready(), server_folder.ready()), (Vec::new(), Vec::new()));
}

#[test]
fn without_a_dealer_dealt_material_is_refused_on_either_side() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (connect, _dealt) = dealer();
    let plan = dealt(&CHOICE, Rounds::Log);
    let (refused, served) = over(pair(), &server(&server_folder).with_dealer(connect.clone()), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        let refused = client.prepare(&plan, &mut Silent);
        client.close().expect("a goodbye");
        refused
    });
    assert!(matches!(refused, Err(Error::Misuse(_))));
    served.result.expect("the session goes on");

    let (refused, _) = over(pair(), &server(&server_folder), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(connect);
        client.prepare(&plan, &mut Silent)
    });
    let (reason, text) = abort_of(refused);
    assert!(reason == AbortReason::BadRequest && text.contains("no dealer"), "{text}");
}

#[test]
fn a_dealer_refuses_entries_beyond_its_limit() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (connect, dealt_now) = dealer_with(1000, PATIENCE);
    let plan = dealt(&RESIDUAL, Rounds::Log);
    let (result, ..) = session([&client_folder, &server_folder], [connect.clone(), connect], |client| {
        client.prepare(&plan, &mut Silent)
    });
    let (_, text) = abort_of(result);
    assert!(text.contains("limit is 1000"), "{text}");
    assert!(dealt_now.iter().take(2).any(|result| result.is_err()));
}
