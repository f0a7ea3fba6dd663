//! Programs on authenticated values: the executor's results, or none.

use privet_channel::pair;
use privet_party::authenticated::{Options, Plan};
use privet_party::session::{Client, Event};
use privet_party::sharing::Truncation;
use privet_party::{Error, Options as AnyOptions, Plan as AnyPlan, Silent};

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL, Shelf, dealer, over, server};

fn plan(fixture: &Fixture, truncation: Truncation) -> Plan {
    Plan::new(fixture.program().clone(), Options { truncation }).expect("a plan")
}

/// A session with a dealer of its own; both sides must end well.
fn session<T>([ours, theirs]: [&Shelf; 2], work: impl FnOnce(&mut Client) -> Result<T, Error>) -> (T, Vec<Event>) {
    let (connect, _dealt) = dealer();
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let serving = server(theirs).with_dealer(connect.clone());
    let (result, side) = over((near, far), &serving, |channel| {
        let mut client = Client::new(channel, ours.store())?.with_dealer(connect);
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
            let (ours, theirs) = (Shelf::new(), Shelf::new());
            let plan = plan(fixture, truncation);
            let ((outputs, offline, online), events) = session([&ours, &theirs], |client| {
                // The second run finds the setup of the first.
                client.prepare(&plan, &mut Silent)?;
                let (id, offline) = client.prepare(&plan, &mut Silent)?;
                let (outputs, online) = client.infer(&plan, &id, &fixture.case.inputs, &mut Silent)?;
                Ok((outputs, offline, online))
            });
            fixture.case.check_with(&outputs, truncation);
            let forecast = plan.forecast();
            let [
                Event::Prepared { .. },
                Event::Prepared { report: prepared, .. },
                Event::Inferred { report: inferred, .. },
            ] = events.as_slice()
            else {
                panic!("two preparations and an inference")
            };
            assert_eq!(offline.total.bytes_received, forecast.dealer_bytes_client);
            assert_eq!(prepared.total.bytes_received, forecast.dealer_bytes_server);
            assert_eq!(offline.total.bytes_sent, forecast.offline_bytes_client);
            assert_eq!(prepared.total.bytes_sent, forecast.offline_bytes_server);
            assert_eq!(online.total.bytes_sent, forecast.online_bytes_client);
            assert_eq!(online.total.bytes_received, forecast.online_bytes_server);
            assert_eq!(online.total.rounds.max(inferred.total.rounds), forecast.online_rounds);
            let material = std::fs::metadata(ours.path().join("ready")).expect("a folder");
            assert!(material.is_dir() && ours.ready().len() == 1);
        }
    }
}

#[test]
fn every_suite_is_found_by_its_name() {
    for options in AnyOptions::all() {
        assert_eq!(AnyOptions::from_name(&options.name()), Some(options));
        let plan = AnyPlan::new(CHOICE.program().clone(), options).expect("a plan");
        assert_eq!(plan.by_ref().options(), options);
    }
    assert_eq!(AnyOptions::from_name("fss malicious"), None);
}
