//! Programs on authenticated values: the executor's results, or none.

use privet_channel::{Link, pair};
use privet_suites::malicious::{Config, Plan};
use privet_suites::policy::Policy;
use privet_suites::session::{Catalog, Client, Event};
use privet_suites::sharing::{Truncation, load};
use privet_suites::{Error, Silent, registry};

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL, StoreFolder, dealer, over, server};

fn plan(fixture: &Fixture, truncation: Truncation) -> Plan {
    Plan::new(fixture.program().clone(), Config { truncation }).expect("a plan")
}

/// A session with a dealer of its own; both sides must end well.
fn session<T>(
    [client_folder, server_folder]: [&StoreFolder; 2],
    work: impl FnOnce(&mut Client) -> Result<T, Error>,
) -> (T, Vec<Event>) {
    let (connect, _dealt) = dealer();
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let serving = server(server_folder).with_dealer(connect.clone());
    let (result, side) = over((near, far), &serving, |channel| {
        let mut client = Client::new(channel, client_folder.store())?.with_dealer(connect);
        let result = work(&mut client)?;
        client.close()?;
        Ok::<_, Error>(result)
    });
    let result = result.expect("the client ends well");
    side.result.expect("the server ends well");
    (result, side.events)
}

#[test]
fn results_are_the_executors_for_the_forecast_bytes() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for truncation in [Truncation::OneBit, Truncation::Exact] {
            let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
            let plan = plan(fixture, truncation);
            let ((outputs, offline, online), events) = session([&client_folder, &server_folder], |client| {
                // The second run finds the setup of the first.
                client.prepare(&plan, &mut Silent)?;
                let (id, offline) = client.prepare(&plan, &mut Silent)?;
                let (outputs, online) = client.infer(&plan, &id, &fixture.case.inputs, &mut Silent)?;
                Ok((outputs, offline, online))
            });
            fixture.case.check_with(&outputs, truncation);
            let forecast = plan.forecast();
            let [Event::Prepared { .. }, Event::Prepared { report: prepared, .. }, Event::Inferred { .. }] =
                events.as_slice()
            else {
                panic!("two preparations and an inference")
            };
            assert_eq!(offline.total.bytes_received, forecast.dealer_bytes_client);
            assert_eq!(prepared.total.bytes_received, forecast.dealer_bytes_server);
            assert_eq!(offline.total.bytes_sent, forecast.offline_bytes_client);
            assert_eq!(prepared.total.bytes_sent, forecast.offline_bytes_server);
            assert_eq!(online.total.bytes_sent, forecast.online_bytes_client);
            assert_eq!(online.total.bytes_received, forecast.online_bytes_server);
            assert_eq!(online.total.rounds, forecast.online_rounds);
            let material = std::fs::metadata(client_folder.path().join("ready")).expect("a folder");
            assert!(material.is_dir() && client_folder.ready().len() == 1);
        }
    }
}

/// Outputs of repeated runs on one input within the public bound, with weights that make values leave their rings.
fn overflowing(truncation: Truncation) -> Vec<Vec<i64>> {
    // The average overflows the ring of 37 bits, so what is left of it after a truncation can be anything in 21 bits; the dense
    // layer needs it in 37 again.
    let fixture = RESIDUAL.with_weights(|_, _| 2047);
    let inputs: Vec<Vec<i64>> = fixture.case.inputs.iter().map(|x| vec![8191; x.len()]).collect();
    let plan = plan(&fixture, truncation);
    let mut catalog = Catalog::default();
    catalog.add(load(fixture.public.clone(), &fixture.weights).expect("a served program"));
    let (client_folder, server_folder, (connect, _dealt)) = (StoreFolder::new(), StoreFolder::new(), dealer());
    let serving = registry::server(catalog, server_folder.store(), Policy::unrestricted()).expect("a folder");
    let serving = serving.with_dealer(connect.clone());
    let (outputs, side) = over(pair(), &serving, |channel| {
        let mut client = Client::new(channel, client_folder.store())?.with_dealer(connect);
        let mut outputs = Vec::new();
        for _ in 0..8 {
            let (id, _) = client.prepare(&plan, &mut Silent)?;
            outputs.push(client.infer(&plan, &id, &inputs, &mut Silent)?.0.concat());
        }
        client.close()?;
        Ok::<_, Error>(outputs)
    });
    side.result.expect("the server ends well");
    outputs.expect("the client ends well")
}

#[test]
fn an_overflow_gives_the_same_output_every_time_if_truncations_are_exact() {
    let exact = overflowing(Truncation::Exact);
    assert!(exact.iter().all(|output| output == &exact[0]), "{exact:?}");
    // One-bit truncations leave it to the masks on which side of its ring a value comes out: a difference of 2^21 times a weight.
    let one_bit = overflowing(Truncation::OneBit);
    let far = |output: &Vec<i64>| output.iter().zip(&one_bit[0]).any(|(a, b)| a.abs_diff(*b) > 1 << 24);
    assert!(one_bit.iter().any(far), "{one_bit:?}");
}

#[test]
fn every_suite_is_found_by_its_name() {
    for config in registry::configs() {
        let suite = registry::parse(&config.label()).expect("the suite");
        let plan = suite.plan(CHOICE.program(), Link::LAN).expect("a plan");
        assert_eq!((plan.label(), plan.is_dealt()), (config.label(), config.is_dealt()));
    }
    assert!(registry::parse("fss malicious").is_none());
}
