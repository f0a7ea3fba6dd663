//! An honest client, inputs within the public bound, values inside the network far beyond their rings: in every exact mode the
//! outputs are those of the ideal functionality, so a client that repeats an input sees the same each time.
//!
//! The control, a plan that trusts a value to be non-negative which is not, stands beside the planner
//! (`sharing::plan::tests`); another, the extension that published systems use, in `crates/gmw/tests/whole/relations.rs`.

use privet_program::{Program, Weights};
use privet_suites::session::Client;
use privet_suites::sharing::{Options, Rounds, Truncation};
use privet_suites::{Silent, malicious};

use crate::ideal::{Rules, evaluate};
use crate::parties::{OVERFLOW, StoreFolder, dealer, prepare, server, session, session_with_dealer};

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
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&theirs);
    for plan in exact(Options::made()).map(|options| OVERFLOW.plan(options)) {
        session(&server, &ours, |client| {
            check(Rules::of(plan.options(), plan.program()), &plan.options().name(), |inputs| {
                let id = prepare(client, &plan);
                client.infer(&plan, &id, inputs, &mut Silent).expect("an inference").0
            });
        });
    }
}

#[test]
fn outputs_of_one_shot_inferences_depend_on_the_input_alone() {
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&theirs);
    for plan in exact(Options::one_shot()).map(|options| OVERFLOW.plan(options)) {
        session(&server, &ours, |client| {
            check(Rules::of(plan.options(), plan.program()), &plan.options().name(), |inputs| {
                client.infer_unprepared(&plan, inputs, &mut Silent).expect("an inference").0
            });
        });
    }
}

#[test]
fn outputs_of_dealt_material_depend_on_the_input_alone() {
    for plan in exact(Options::dealt()).map(|options| OVERFLOW.plan(options)) {
        let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
        session_with_dealer([&ours, &theirs], &dealer().0, |client| {
            check(Rules::of(plan.options(), plan.program()), &plan.options().name(), |inputs| {
                let id = prepare(client, &plan);
                client.infer(&plan, &id, inputs, &mut Silent).expect("an inference").0
            });
        });
    }
}

#[test]
fn outputs_against_malicious_parties_depend_on_the_input_alone() {
    let config = malicious::Config { truncation: Truncation::Exact };
    let plan = malicious::Plan::new(OVERFLOW.program(), config).expect("a plan");
    let (ours, theirs) = (StoreFolder::new(), StoreFolder::new());
    session_with_dealer([&ours, &theirs], &dealer().0, |client: &mut Client| {
        check(Rules::of_malicious(), "fss malicious", |inputs| {
            let (id, _) = client.prepare(&plan, &mut Silent).expect("material");
            client.infer(&plan, &id, inputs, &mut Silent).expect("an inference").0
        });
    });
}
