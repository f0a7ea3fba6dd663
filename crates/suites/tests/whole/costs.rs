//! Bytes, rounds and sizes of material are exactly those that the plan forecasts.

use std::time::Duration;

use privet_channel::{Link, pair};
use privet_linear::Saving;
use privet_ot::{BaseOts, Demand, Stock};
use privet_prg::Prg;
use privet_suites::session::Event;
use privet_suites::sharing::{self, Correlated, Options, Plan, Rounds, Truncation};
use privet_suites::{Report, Silent};

use crate::parties::{
    CHOICE, Fixture, GRAM, PATIENCE, PRODUCTS, RESIDUAL, SMOOTH, StoreFolder, both, head, server, session_over,
};

fn plans() -> impl Iterator<Item = (&'static Fixture, Plan)> {
    let of = |fixture: &'static Fixture, options: Options| (fixture, fixture.plan(options));
    let all = move |fixture: &'static Fixture| Options::made().map(move |options| of(fixture, options));
    let in_ring = || Options::made().filter(|options| !options.is_prime());
    let exact = || in_ring().filter(|options| options.truncation == Truncation::Exact);
    let layers = [&*RESIDUAL, &*CHOICE, &*SMOOTH].into_iter().flat_map(all);
    let sparing = exact().map(|options| Options { saving: Saving::Bytes, ..options });
    let products = exact().chain(sparing).map(move |options| of(&PRODUCTS, options));
    layers.chain(products).chain(in_ring().map(move |options| of(&GRAM, options)))
}

/// Client's and server's reports of a preparation and an inference.
fn reports(fixture: &Fixture, plan: &Plan) -> [[Report; 2]; 2] {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let ((offline, online), events) = session_over(pair(), &server(&server_folder), &client_folder, |client| {
        let (id, offline) = client.prepare(plan, &mut Silent).expect("material");
        let (outputs, online) = client.infer(plan, &id, &fixture.case.inputs, &mut Silent).expect("an inference");
        if plan.options().truncation == Truncation::Exact {
            fixture.case.check(&outputs, plan.options());
        }
        (offline, online)
    });
    match <[Event; 2]>::try_from(events) {
        Ok([Event::Prepared { report: prepared, .. }, Event::Inferred { report: inferred, .. }]) => {
            [[offline, prepared], [online, inferred]]
        }
        _ => panic!("the server does not tell of a preparation and an inference"),
    }
}

/// Bytes that the client and the server sent, on which both must agree.
fn traffic([client, server]: &[Report; 2]) -> (u64, u64) {
    assert_eq!(client.total.bytes_sent, server.total.bytes_received);
    assert_eq!(client.total.bytes_received, server.total.bytes_sent);
    (client.total.bytes_sent, client.total.bytes_received)
}

#[test]
fn bytes_and_rounds_are_those_of_the_forecast() {
    for (fixture, plan) in plans() {
        let (forecast, [offline, online]) = (plan.forecast(), reports(fixture, &plan));
        assert_eq!(traffic(&offline), (forecast.offline_bytes_client, forecast.offline_bytes_server));
        assert_eq!(traffic(&online), (forecast.online_bytes_client, forecast.online_bytes_server));
        assert_eq!(online[0].total.rounds, forecast.online_rounds);
        // The client sends for all linear layers and products before it waits. The server answers each before it reads the next,
        // which is there already: it turns, but does not wait.
        let [client, server] = offline.each_ref().map(|report| report.total.rounds);
        assert_eq!(client, forecast.offline_rounds);
        let layers = plan.linear().len();
        if forecast.linear.len() == layers {
            assert_eq!(server, forecast.offline_rounds + layers as u64 - 2);
        }
    }
}

#[test]
fn the_link_chooses_the_extension_and_the_server_takes_it() {
    let slow = Link::new(Duration::from_millis(1), 1e6).expect("a link");
    let lan_plan = RESIDUAL.plan(Rounds::Log);
    let slow_plan = RESIDUAL.plan(Rounds::Log).over(slow);
    assert_ne!(lan_plan.extension(), slow_plan.extension());
    let [offline, _] = reports(&RESIDUAL, &slow_plan);
    let forecast = slow_plan.forecast();
    assert_eq!(traffic(&offline), (forecast.offline_bytes_client, forecast.offline_bytes_server));
    assert!(forecast.offline_bytes_client < lan_plan.forecast().offline_bytes_client);
}

#[test]
fn the_parts_of_a_report_add_up_to_the_whole() {
    for (fixture, plan) in plans() {
        for report in reports(fixture, &plan).iter().flatten() {
            let sum = |part: fn(&privet_suites::LayerCost) -> u64| report.layers.iter().map(part).sum::<u64>();
            assert_eq!(sum(|layer| layer.bytes_sent), report.total.bytes_sent);
            assert_eq!(sum(|layer| layer.bytes_received), report.total.bytes_received);
            assert_eq!(sum(|layer| layer.rounds), report.total.rounds);
            assert!(report.layers.iter().map(|layer| layer.seconds).sum::<f64>() <= report.total.seconds);
        }
    }
}

#[test]
fn the_demand_is_what_an_inference_uses_and_material_has_the_forecast_size() {
    let mut nothing = Prg::from_os().expect("entropy");
    let header = Stock::deal(&Demand::default(), &mut nothing).0.to_bytes().len() as u64;
    for (fixture, plan) in plans() {
        let model = fixture.model(&plan);
        let (mut near, mut far) = pair();
        near.set_timeout(PATIENCE);
        let (client_half, server_half) = both(
            || {
                sharing::prepare_client(
                    &mut near,
                    &plan,
                    &mut BaseOts::default(),
                    None,
                    &mut std::io::sink(),
                    &mut Silent,
                )
                .expect("material")
                .0
            },
            || {
                sharing::prepare_server(
                    &mut far,
                    &plan,
                    (plan.extension(), &mut BaseOts::default()),
                    &model,
                    None,
                    &mut std::io::sink(),
                    &mut Silent,
                )
                .expect("material")
                .0
            },
        );
        for correlated in [&client_half.correlated, &server_half.correlated] {
            let Correlated::Stock(stock, _) = correlated else { panic!("a stock") };
            assert_eq!(stock.left(), plan.online_cost().demand);
        }
        let forecast = plan.forecast();
        assert_eq!(head(&client_half, &plan).len() as u64, forecast.material_bytes_client + header);
        assert_eq!(head(&server_half, &plan).len() as u64, forecast.material_bytes_server + header);
    }
}

#[test]
fn a_function_by_lines_is_in_the_ring_that_truncations_read() {
    let plan = SMOOTH.plan(Rounds::Log);
    // A GELU that a truncation by 8 bits to 18 reads, where the program's ring has 37.
    assert_eq!((plan.program().ring_bits(), plan.width(3), plan.width(4)), (37, 26, 18));
}
