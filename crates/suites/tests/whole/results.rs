//! What the client learns equals the fixed-point executor's result within the bound, whenever the material was made.

use privet_suites::session::Event;
use privet_suites::sharing::{Options, Rounds, Truncation};
use privet_suites::{Error, Silent, registry};

use crate::parties::{CHOICE, RESIDUAL, StoreFolder, infer, prepare, server, session, session_over};

#[test]
fn private_results_are_those_of_the_executor() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for plan in Options::made().map(|options| fixture.plan(options)) {
            session(&server, &client_folder, |client| {
                let id = prepare(client, &plan);
                infer(client, fixture, &plan, &id);
            });
        }
    }
}

#[test]
fn exact_results_are_those_of_the_executor_to_the_last_bit() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    let exact = || Options::made().filter(|options| options.truncation == Truncation::Exact);
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for plan in exact().map(|options| fixture.plan(options)) {
            let beside = if plan.options().is_prime() { 1 } else { 2 };
            assert_eq!(plan.product_ring().bits(), plan.program().ring_bits() + beside);
            for _ in 0..4 {
                session(&server, &client_folder, |client| {
                    let id = prepare(client, &plan);
                    let outputs = infer(client, fixture, &plan, &id);
                    assert!(fixture.case.errors(&outputs, Truncation::Exact).iter().all(|(error, _)| *error == 0));
                });
            }
        }
    }
}

#[test]
fn material_of_one_mode_serves_no_other() {
    let names: Vec<String> = Options::made()
        .chain(Options::dealt())
        .chain(Options::one_shot())
        .map(|options| {
            assert_eq!(registry::parse(&options.name()).expect("a config").label(), options.name());
            options.name()
        })
        .collect();
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    for unknown in ["gmw log exact relu7", "gmw log", "fss", ""] {
        assert!(registry::parse(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn one_session_carries_many_requests_in_any_order() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    let (plan, other_plan) = (RESIDUAL.plan(Rounds::Log), CHOICE.plan(Rounds::Linear));
    let ((), events) = session_over(privet_channel::pair(), &server, &client_folder, |client| {
        let ids = [(); 2].map(|()| prepare(client, &plan));
        let choice = prepare(client, &other_plan);
        infer(client, &RESIDUAL, &plan, &ids[1]);
        assert_eq!(client.describe(Some("choice"), None).expect("a program"), CHOICE.public);
        infer(client, &CHOICE, &other_plan, &choice);
        infer(client, &RESIDUAL, &plan, &ids[0]);
    });
    let kinds: String = events
        .iter()
        .map(|event| match event {
            Event::Described { .. } => 'd',
            Event::Kept { .. } => 'k',
            Event::Prepared { .. } => 'p',
            Event::Inferred { .. } => 'i',
        })
        .collect();
    assert_eq!(kinds, "pppidii");
}

#[test]
fn material_of_one_session_serves_in_a_later_one() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = RESIDUAL.plan(Rounds::Log);
    let ids = session(&server(&server_folder), &client_folder, |client| [(); 2].map(|()| prepare(client, &plan)));
    // Another server object, as after a restart.
    let server = server(&server_folder);
    for id in ids {
        session(&server, &client_folder, |client| {
            assert!(client.ready(&plan).expect("a list").contains(&id));
            infer(client, &RESIDUAL, &plan, &id);
            assert!(!client.ready(&plan).expect("a list").contains(&id));
        });
    }
    assert!(client_folder.ready().is_empty() && server_folder.ready().is_empty());
}

#[test]
fn inputs_that_do_not_fit_spend_nothing_and_do_not_end_the_session() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Log);
    session(&server(&server_folder), &client_folder, |client| {
        let id = prepare(client, &plan);
        let short = CHOICE.case.inputs[0][1..].to_vec();
        for inputs in [vec![], vec![short], [CHOICE.case.inputs.clone(), CHOICE.case.inputs.clone()].concat()] {
            let refused = client.infer(&plan, &id, &inputs, &mut Silent).map(drop);
            assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
        }
        infer(client, &CHOICE, &plan, &id);
    });
}
