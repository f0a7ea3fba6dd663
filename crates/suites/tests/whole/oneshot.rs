//! Linear layers online: results, costs, the buffer that fills itself, and that its material serves no other mode.

use privet_channel::{AbortReason, pair};
use privet_suites::policy::Policy;
use privet_suites::session::{Event, VERSION};
use privet_suites::sharing::{Encrypted, Keep, Options, Plan, Rounds, Truncation, load_keeping};
use privet_suites::{Error, Report, Silent, StoreError, registry};

use crate::material::aborted;
use crate::parties::{
    CHOICE, Fixture, PATIENCE, RESIDUAL, StoreFolder, infer, over, prepare, server, session, session_over,
};
use crate::requests::greeting;

/// One-shot with logarithmic rounds.
fn one_shot(truncation: Truncation) -> Options {
    let fits = |options: &Options| options.truncation == truncation && options.name().starts_with("gmw log");
    Options::one_shot().find(fits).expect("such an option")
}

/// The client's report of an inference without material, whose result must be right.
fn unprepared(client: &mut privet_suites::session::Client, fixture: &Fixture, plan: &Plan) -> Report {
    let (outputs, report) = client.infer_unprepared(plan, &fixture.case.inputs, &mut Silent).expect("an inference");
    fixture.case.check(&outputs, plan.options());
    report
}

#[test]
fn results_are_those_of_the_executor_with_and_without_material() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for plan in Options::one_shot().map(|options| fixture.plan(options)) {
            session(&server, &client_folder, |client| {
                let id = prepare(client, &plan);
                infer(client, fixture, &plan, &id);
                unprepared(client, fixture, &plan);
            });
        }
    }
}

#[test]
fn exact_truncation_makes_results_exact() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = RESIDUAL.plan(one_shot(Truncation::Exact));
    assert_eq!(plan.product_ring().bits(), plan.program().ring_bits() + 2);
    session(&server(&server_folder), &client_folder, |client| {
        for _ in 0..8 {
            let case = &RESIDUAL.case;
            let (outputs, _) = client.infer_unprepared(&plan, &case.inputs, &mut Silent).expect("an inference");
            assert!(case.errors(&outputs, Truncation::Exact).iter().all(|(error, _)| *error == 0));
        }
    });
}

#[test]
fn bytes_and_rounds_are_those_of_the_forecast_and_the_key_goes_once_per_session() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for plan in Options::one_shot().map(|options| fixture.plan(options)) {
            let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
            let ((offline, reports), events) =
                session_over(pair(), &server(&server_folder), &client_folder, |client| {
                    let (id, offline) = client.prepare(&plan, &mut Silent).expect("material");
                    let (_, online) =
                        client.infer(&plan, &id, &fixture.case.inputs, &mut Silent).expect("an inference");
                    (offline, [online, unprepared(client, fixture, &plan)])
                });
            let sent = |report: &Report| [report.total.bytes_sent, report.total.bytes_received, report.total.rounds];
            let forecast = plan.forecast();
            let offline_bytes = [forecast.offline_bytes_client, forecast.offline_bytes_server];
            assert_eq!(sent(&offline), [offline_bytes[0], offline_bytes[1], forecast.offline_rounds]);
            let online = [forecast.online_bytes_client, forecast.online_bytes_server, forecast.online_rounds];
            assert_eq!(sent(&reports[0]), online);
            let refill = forecast.refill.expect("a one-shot plan");
            let more = [refill.bytes_client, refill.bytes_server, refill.rounds];
            let key = Encrypted::keys_bytes(&[&plan.linear()[0].plan]);
            let expected = [0, 1, 2].map(|i| online[i] + more[i] - if i == 0 { key } else { 0 });
            assert_eq!(sent(&reports[1]), expected);
            let keys = |report: &Report| report.layers.iter().filter(|layer| layer.name == "keys").count();
            assert_eq!(reports.each_ref().map(keys), [1, 0]);
            // The server saw the same bytes go by.
            let served = events.iter().filter_map(|event| match event {
                Event::Inferred { report, material, .. } => Some((report, material.is_some())),
                _ => None,
            });
            let served: Vec<_> = served.collect();
            assert_eq!(served.iter().map(|(_, prepared)| *prepared).collect::<Vec<_>>(), [true, false]);
            for ((server_report, _), client_report) in served.iter().zip(&reports) {
                assert_eq!(server_report.total.bytes_received, client_report.total.bytes_sent);
                assert_eq!(server_report.total.bytes_sent, client_report.total.bytes_received);
            }
        }
    }
}

#[test]
fn a_small_buffer_is_filled_again_and_again_at_the_forecast_cost() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    for (buffer, some) in [(1, true), (4_000, true), (1 << 22, false)] {
        let plan = RESIDUAL.plan(one_shot(Truncation::OneBit)).buffering(buffer);
        let report = session(&server, &client_folder, |client| unprepared(client, &RESIDUAL, &plan));
        let refills = report.layers.iter().filter(|layer| layer.operator == "refill").count();
        let forecast = plan.forecast();
        let refill = forecast.refill.expect("a one-shot plan");
        assert_eq!(refills, refill.chunks);
        assert_eq!(refills > 1, some, "{refills} refills of {buffer}");
        assert_eq!(report.total.bytes_sent, forecast.online_bytes_client + refill.bytes_client);
        assert_eq!(report.total.bytes_received, forecast.online_bytes_server + refill.bytes_server);
        assert_eq!(report.total.rounds, forecast.online_rounds + refill.rounds);
    }
}

#[test]
fn every_form_of_the_weights_gives_the_result_in_the_same_bytes() {
    let plan = RESIDUAL.plan(one_shot(Truncation::OneBit));
    for keep in [Keep::Transformed, Keep::Plain] {
        let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
        let mut catalog = privet_suites::session::Catalog::default();
        catalog.add(load_keeping(RESIDUAL.public.clone(), &RESIDUAL.weights, keep).expect("a served program"));
        let server = registry::server(catalog, server_folder.store(), Policy::unrestricted()).expect("a folder");
        let report = session(&server, &client_folder, |client| {
            let id = prepare(client, &plan);
            client.infer(&plan, &id, &RESIDUAL.case.inputs, &mut Silent).expect("an inference").1
        });
        assert_eq!(report.total.bytes_sent, plan.forecast().online_bytes_client);
    }
}

#[test]
fn material_of_other_modes_is_neither_taken_nor_given() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (plan, default) = (CHOICE.plan(one_shot(Truncation::OneBit)), CHOICE.plan(Rounds::Log));
    session(&server(&server_folder), &client_folder, |client| {
        let (plan_id, default_id) = (prepare(client, &plan), prepare(client, &default));
        for (plan, id) in [(&plan, &default_id), (&default, &plan_id)] {
            let refused = client.infer(plan, id, &CHOICE.case.inputs, &mut Silent).map(drop);
            assert!(matches!(refused, Err(Error::Store(StoreError::Unfit { .. }))), "{refused:?}");
        }
        assert_eq!(client.ready(&plan).expect("a list"), [plan_id]);
        let refused = client.infer_unprepared(&default, &CHOICE.case.inputs, &mut Silent).map(drop);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
    });
}

#[test]
fn a_server_refuses_other_modes_and_large_buffers_without_material() {
    let (log, one_shot) = ("gmw log one-bit", "gmw log one-bit one-shot");
    for (suite, extension, buffer, why) in [
        (log, "silent-small", 1, "does not run without material"),
        ("gmw log one-bit one-shot relu65", "silent-small", 1, "does not run suite"),
        (one_shot, "silent", 1, "no OT extension"),
        (one_shot, "silent-small", (1 << 22) + 1, "4194304 OTs at most"),
    ] {
        let server_folder = StoreFolder::new();
        let (mut near, far) = pair();
        near.set_timeout(PATIENCE);
        let (error, side) = over((near, far), &server(&server_folder), |mut channel| {
            channel.exchange(&greeting(VERSION)).expect("a greeting");
            let program = CHOICE.program().hash().to_string();
            let request = format!(
                r#"{{"request":"infer_unprepared","program":"{program}","suite":"{suite}","extension":"{extension}","buffer":{buffer},"nonce":{:?}}}"#,
                [7; 16]
            );
            channel.send(request.as_bytes()).expect("a request");
            channel.recv_at_most(4096).expect_err("refused")
        });
        let error = Error::from(error);
        let (reason, text) = aborted(&error);
        assert_eq!(reason, AbortReason::BadRequest);
        assert!(text.contains(why), "{text}");
        assert!(side.result.is_err() && side.events.is_empty());
    }
}
