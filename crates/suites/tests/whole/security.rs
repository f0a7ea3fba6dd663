//! The security budget: its counts are those of the wire and of an independent count, and no suite's sum is below what is promised.

use privet_channel::pair;
use privet_linear::Resharing;
use privet_ot::Role;
use privet_program::Operator;
use privet_suites::config::Config as _;
use privet_suites::security::{PROMISED_BITS, Security};
use privet_suites::sharing::{Encrypted, Options, Plan, Truncation};
use privet_suites::suite::SuiteConfig;
use privet_suites::{Silent, malicious, stream};

use crate::parties::{CHOICE, Fixture, RESIDUAL, StoreFolder, server, session_over};

/// Elements that leave operations with weights, by the program alone.
fn results(fixture: &Fixture) -> u64 {
    let program = fixture.program();
    let weighted = program.operations().iter().filter(|operation| {
        matches!(operation.operator, Operator::Conv2d { .. } | Operator::Dense { .. } | Operator::Scale { .. })
    });
    weighted.map(|operation| program.value(operation.output).len() as u64).sum()
}

fn budgets(fixture: &Fixture) -> Vec<(String, Security)> {
    let sharing = Options::made().chain(Options::dealt()).chain(Options::one_shot());
    let mut all: Vec<_> = sharing.map(|options| (options.name(), fixture.plan(options).security())).collect();
    for config in malicious::Config::all() {
        let plan = malicious::Plan::new(fixture.program(), config).expect("a plan");
        all.push((config.label(), plan.security()));
    }
    all
}

#[test]
fn no_sum_is_below_what_is_promised() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for (name, budget) in budgets(fixture) {
            assert!(budget.inference_bits.is_none_or(|bits| bits >= PROMISED_BITS), "{name}: {budget:?}");
            assert!(budget.computational_bits >= 110.0, "{name}: {budget:?}");
            assert!(budget.key_bits.is_none_or(|bits| bits >= 30.0), "{name}: {budget:?}");
        }
    }
}

#[test]
fn results_that_are_counted_are_those_on_the_wire() {
    let options = Options::made().filter(|options| !options.is_prime());
    for (fixture, options) in [&*RESIDUAL, &*CHOICE].into_iter().zip(options) {
        let plan = fixture.plan(options);
        let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
        let (report, _) = session_over(pair(), &server(&server_folder), &client_folder, |client| {
            client.prepare(&plan, &mut Silent).expect("material").1
        });
        let received: u64 =
            report.layers.iter().filter(|layer| layer.operator == "decrypt").map(|layer| layer.bytes_received).sum();
        let (mut sent, mut bits) = (0, 0);
        for layer in plan.linear() {
            let Encrypted::Ring(layer) = &layer.plan else { panic!("layers in the ring") };
            let parameters = layer.parameters();
            assert_eq!(parameters.resharing(), Resharing::Approximate);
            bits = u64::from(parameters.reply_bits());
            let whole = (parameters.degree() as u64 * bits).div_ceil(8);
            sent += layer.output_ciphertexts() as u64 * whole + 5 * layer.cost().messages_received;
        }
        // Each reply is filled up to a byte, which for so few replies is less than a result.
        let on_the_wire = 8 * (received - sent) / bits;
        assert_eq!((on_the_wire, plan.replied_results()), (results(fixture), results(fixture)));
        assert_eq!(plan.security().losses[0].count, on_the_wire);
    }
}

#[test]
fn a_budget_is_the_sum_of_an_independent_count() {
    let exact = |options: &Options| options.truncation == Truncation::Exact && !options.is_prime();
    let options = Options::made().find(exact).expect("the exact mode");
    let plan: Plan = CHOICE.plan(options);
    let budget = plan.security();

    // The rounding of a coefficient: a sum of 4096 ternary terms of half a unit stays below the eight guard bits.
    let range = 256.0 - 1.0 - 0.5;
    let failure = 2.0 * (-range * range / (2.0 * 4096.0 * (2.0 / 3.0) * 0.25_f64)).exp();
    let expected = -(21.0 * failure).log2();
    let bits = budget.inference_bits.expect("a loss");
    assert!((bits - expected).abs() < 0.1, "{bits} beside {expected}");

    // 256 base OTs, the seeds of SoftSpokenOT's trees and the hash's targets of 16 sessions that follow from them, an odd delta,
    // the key and one secret for each reply.
    let strength = plan.extension().strength(&plan.online_cost().demand);
    assert!(strength.lpn_bits.is_none(), "a small demand");
    let demand = plan.online_cost().demand;
    // A table of 8 entries is made of three OTs, one of 16 of four; every entry is hashed.
    let hashes = |sender| {
        let tables = demand.tables(sender);
        demand.ots(sender) + 5 * tables.eights + 12 * tables.sixteens
    };
    let hashed = hashes(Role::Server).max(hashes(Role::Client));
    let replies = plan.forecast().linear.iter().map(|layer| layer.ciphertexts[1]).sum::<u64>();
    let sessions = 16.0 * (strength.seeds as f64 + 2.0 * hashed.min(4096) as f64);
    let terms = 256.0 * 4.0 + sessions + (1 + replies) as f64;
    assert!((budget.computational_bits - (128.0 - terms.log2())).abs() < 1e-6, "{budget:?}");
    assert_eq!(budget.assumptions.len(), 4);
}

#[test]
fn suite_stream_states_both_ciphers() {
    let program = CHOICE.program();
    for cipher in stream::Cipher::ALL {
        let plan = stream::Plan::new(program.clone(), cipher).expect("a plan");
        let budget = plan.security();
        assert!(budget.inference_bits.is_none_or(|bits| bits >= PROMISED_BITS), "{budget:?}");
        assert!(budget.key_inferences.is_some_and(|count| count >= 1024));
    }
}
