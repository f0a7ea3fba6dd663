//! An honest client, inputs within the public bound, values inside the network far beyond their rings: in every exact mode the
//! outputs are those of the ideal functionality, so a client that repeats an input sees the same each time.
//!
//! The control, a plan that trusts a value to be non-negative which is not, stands beside the planner
//! (`sharing::plan::tests`); another, the extension that published systems use, in `crates/gmw/tests/whole/relations.rs`.

use privet_channel::pair;
use privet_program::{Program, Weights};
use privet_suites::policy::Policy;
use privet_suites::session::{Catalog, Client};
use privet_suites::sharing::{Options, Rounds, Truncation, load};
use privet_suites::{Error, Silent, malicious, registry};

use crate::ideal::{Rules, evaluate};
use crate::parties::{OVERFLOW, SMOOTH, StoreFolder, dealer, over, prepare, server, session, session_with_dealer};

/// How often each input is repeated.
const REPEATS: usize = 2;

/// Inputs at the public bound, or at a part of it: values inside go beyond a quarter of their rings, and beyond the rings.
fn adversarial(program: &Program) -> Vec<Vec<Vec<i64>>> {
    let input = &program.inputs()[0];
    let (len, bound) = (program.value(input.value).len(), (input.magnitude.expect("a bound") * 4096.0) as i64);
    [bound, -bound, -bound * 5 / 8].map(|x| vec![vec![x; len]]).to_vec()
}

fn weights(program: &Program) -> Weights {
    Weights::parse(&OVERFLOW.weights, program).expect("its weights")
}

/// What the rules make of every input.
fn expected(rules: Rules) -> Vec<Vec<Vec<i64>>> {
    let program = OVERFLOW.program();
    adversarial(&program).iter().map(|inputs| evaluate(&program, &weights(&program), inputs, rules)).collect()
}

/// Repeats all inputs and compares.
fn check(rules: Rules, name: &str, mut infer: impl FnMut(&[Vec<i64>]) -> Vec<Vec<i64>>) {
    let inputs = adversarial(&OVERFLOW.program());
    for (inputs, expected) in inputs.iter().zip(expected(rules)) {
        for _ in 0..REPEATS {
            assert_eq!(infer(inputs), expected, "{name}");
        }
    }
}

fn exact(options: impl Iterator<Item = Options>) -> impl Iterator<Item = Options> {
    options.filter(|options| options.truncation == Truncation::Exact)
}

#[test]
fn the_functionality_is_the_executors_where_nothing_overflows() {
    let program = OVERFLOW.program();
    let all = exact(Options::made().chain(Options::dealt())).map(|options| Rules::of(options, &program));
    for rules in all.chain([Rules::of_malicious()]) {
        let outputs = evaluate(&program, &weights(&program), &OVERFLOW.case.inputs, rules);
        assert_eq!(outputs, OVERFLOW.case.expected());
    }
}

#[test]
fn inputs_within_the_bound_overflow() {
    // The same program in a ring that holds everything gives other outputs.
    let text = String::from_utf8(OVERFLOW.public.clone()).expect("JSON");
    let wide = Program::parse(text.replace("\"ring_bits\":30", "\"ring_bits\":48").as_bytes()).expect("a program");
    for rules in [Rules::of(Options::from(Rounds::Log), &wide), Rules::of_malicious()] {
        let whole =
            adversarial(&wide).iter().map(|inputs| evaluate(&wide, &weights(&wide), inputs, rules)).collect::<Vec<_>>();
        let wrapped = expected(rules).iter().zip(&whole).filter(|(wrapped, whole)| wrapped != whole).count();
        assert!(wrapped >= 1, "none of {} wrap", whole.len());
    }
}

#[test]
fn outputs_made_without_a_dealer_depend_on_the_input_alone() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    for plan in exact(Options::made()).map(|options| OVERFLOW.plan(options)) {
        session(&server, &client_folder, |client| {
            check(Rules::of(plan.options(), plan.program()), &plan.options().name(), |inputs| {
                let id = prepare(client, &plan);
                client.infer(&plan, &id, inputs, &mut Silent).expect("an inference").0
            });
        });
    }
}

#[test]
fn outputs_of_one_shot_inferences_depend_on_the_input_alone() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    for plan in exact(Options::one_shot()).map(|options| OVERFLOW.plan(options)) {
        session(&server, &client_folder, |client| {
            check(Rules::of(plan.options(), plan.program()), &plan.options().name(), |inputs| {
                client.infer_unprepared(&plan, inputs, &mut Silent).expect("an inference").0
            });
        });
    }
}

#[test]
fn outputs_of_dealt_material_depend_on_the_input_alone() {
    for plan in exact(Options::dealt()).map(|options| OVERFLOW.plan(options)) {
        let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
        session_with_dealer([&client_folder, &server_folder], &dealer().0, |client| {
            check(Rules::of(plan.options(), plan.program()), &plan.options().name(), |inputs| {
                let id = prepare(client, &plan);
                client.infer(&plan, &id, inputs, &mut Silent).expect("an inference").0
            });
        });
    }
}

/// Outputs of each exact mode, of dense layers around a GELU whose weights make its arguments leave their ring.
#[test]
fn what_follows_functions_by_lines_depends_on_the_input_alone() {
    let fixture = SMOOTH.with_weights(|place, _| [32749, 30011, -20011][place % 3]);
    let len = fixture.program().value(0).len();
    let inputs = [8191, -8191, 5003].map(|x| vec![vec![x; len]]);
    let mut groups: Vec<Vec<Vec<Vec<i64>>>> = Vec::new();
    let in_ring = |options: &Options| !options.is_prime();
    for plan in exact(Options::dealt().chain(Options::made()).filter(in_ring)).map(|options| fixture.plan(options)) {
        let mut catalog = Catalog::default();
        catalog.add(load(fixture.public.clone(), &fixture.weights).expect("a served program"));
        let (client_folder, server_folder, (connect, _dealt)) = (StoreFolder::new(), StoreFolder::new(), dealer());
        let serving = registry::server(catalog, server_folder.store(), Policy::unrestricted()).expect("a folder");
        let serving = serving.with_dealer(connect.clone());
        let (outputs, side) = over(pair(), &serving, |channel| {
            let mut client = Client::new(channel, client_folder.store())?.with_dealer(connect);
            let mut outputs = Vec::new();
            for inputs in (0..8).flat_map(|_| &inputs) {
                let (id, _) = client.prepare(&plan, &mut Silent)?;
                outputs.push(client.infer(&plan, &id, inputs, &mut Silent)?.0);
            }
            client.close()?;
            Ok::<_, Error>(outputs)
        });
        side.result.expect("the server ends well");
        groups.extend(outputs.expect("the client ends well").chunks(inputs.len()).map(<[_]>::to_vec));
    }
    assert!(groups.iter().all(|outputs| outputs == &groups[0]), "{groups:?}");
}

#[test]
fn outputs_against_malicious_parties_depend_on_the_input_alone() {
    let config = malicious::Config { truncation: Truncation::Exact };
    let plan = malicious::Plan::new(OVERFLOW.program(), config).expect("a plan");
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    session_with_dealer([&client_folder, &server_folder], &dealer().0, |client: &mut Client| {
        check(Rules::of_malicious(), "fss malicious", |inputs| {
            let (id, _) = client.prepare(&plan, &mut Silent).expect("material");
            client.infer(&plan, &id, inputs, &mut Silent).expect("an inference").0
        });
    });
}
