//! Material whose correlations are stored in chunks.

use std::io::Write;

use privet_channel::pair;
use privet_ot::{BaseOts, STOCK_HEADER_BYTES};
use privet_seal::Stored;
use privet_suites::sharing::{self, ClientMaterial, Plan, Rounds, ServerMaterial};
use privet_suites::{Error, Report, Silent};

use crate::parties::{CHOICE, Fixture, PATIENCE, RESIDUAL, both};

/// Both parties' entries as they lie in the store, and their reports.
fn prepared(fixture: &Fixture, plan: &Plan) -> [(Vec<u8>, Report); 2] {
    let (mut near, mut far) = pair();
    near.set_timeout(PATIENCE);
    let (mut ours, mut theirs, model) = (Vec::new(), Vec::new(), fixture.model(plan));
    let (client, server) = both(
        || {
            let made = sharing::prepare_client(&mut near, plan, &mut BaseOts::default(), &mut ours, &mut Silent);
            made.map(|(material, report)| (material.head(plan), report))
        },
        || {
            let base = &mut BaseOts::default();
            let made =
                sharing::prepare_server(&mut far, plan, (plan.extension(), base), &model, &mut theirs, &mut Silent);
            made.map(|(material, report)| (material.head(plan), report))
        },
    );
    let entry = |body: Vec<u8>, made: Result<(Vec<u8>, Report), Error>| {
        let (head, report) = made.expect("material");
        ([body, head].concat(), report)
    };
    [entry(ours, client), entry(theirs, server)]
}

fn file(bytes: &[u8]) -> Stored {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room on the disk");
    Stored::plain(file)
}

type Inferred = (Result<(Vec<Vec<i64>>, Report), Error>, Result<Report, Error>);

fn inferred(fixture: &Fixture, plan: &Plan, [ours, theirs]: [&[u8]; 2]) -> Inferred {
    let ((mut near, mut far), model) = (pair(), fixture.model(plan));
    near.set_timeout(PATIENCE);
    let ours = ClientMaterial::read(file(ours), plan).expect("the client's half");
    let theirs = ServerMaterial::read(file(theirs), plan).expect("the server's half");
    both(
        move || sharing::infer_client(&mut near, plan, ours, &fixture.case.inputs, &mut Vec::new(), &mut Silent),
        move || sharing::infer_server(&mut far, plan, &model, theirs, &mut Vec::new(), &mut Silent),
    )
}

#[test]
fn chunks_give_the_same_results_and_cost_what_is_forecast() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for depth in [Rounds::Linear, Rounds::Log] {
            let (whole, plan) = (fixture.plan(depth), fixture.plan(depth).storing(0));
            let (forecast, of_whole) = (plan.forecast(), whole.forecast());
            let [ours, theirs] = prepared(fixture, &plan);
            // The chunks: a header each, and all but the first begin a preparation of their own.
            let lengths = [&ours, &theirs].map(|(entry, _)| entry.len() as u64);
            let stored = [forecast.material_bytes_client, forecast.material_bytes_server];
            assert_eq!(lengths, stored.map(|bytes| bytes + STOCK_HEADER_BYTES));
            let headers = (forecast.material_bytes_client - of_whole.material_bytes_client) / STOCK_HEADER_BYTES;
            assert!(headers >= 1, "{headers} chunks behind the first in {depth:?}");
            assert_eq!(ours.1.total.bytes_sent, forecast.offline_bytes_client);
            assert_eq!(ours.1.total.bytes_received, forecast.offline_bytes_server);
            assert_eq!(ours.1.total.rounds, forecast.offline_rounds);

            let (client, server) = inferred(fixture, &plan, [&ours.0, &theirs.0]);
            let (outputs, report) = client.expect("an inference");
            fixture.case.check(&outputs, plan.options());
            server.expect("an inference");
            assert_eq!(report.total.bytes_sent, of_whole.online_bytes_client);
            let loads = report.layers.iter().filter(|layer| layer.operator == "load").count() as u64;
            assert_eq!(loads, headers);
        }
    }
}

#[test]
fn material_that_was_stored_in_one_piece_is_used_where_chunks_would_be_made_now() {
    let (whole, plan) = (RESIDUAL.plan(Rounds::Log), RESIDUAL.plan(Rounds::Log).storing(0));
    let [ours, theirs] = prepared(&RESIDUAL, &whole);
    let (client, server) = inferred(&RESIDUAL, &plan, [&ours.0, &theirs.0]);
    RESIDUAL.case.check(&client.expect("an inference").0, plan.options());
    server.expect("an inference");
}

#[test]
fn a_damaged_chunk_ends_the_inference() {
    let plan = RESIDUAL.plan(Rounds::Linear).storing(0);
    let [ours, theirs] = prepared(&RESIDUAL, &plan);
    // Another party's chunk where one of the client's should be, and one that is none.
    for at in [12, 13] {
        let mut damaged = ours.0.clone();
        damaged[at] ^= 1;
        let (client, server) = inferred(&RESIDUAL, &plan, [&damaged, &theirs.0]);
        let error = client.map(|(outputs, _)| outputs).expect_err("the chunk is damaged");
        assert!(matches!(error, Error::Correlations(_) | Error::Misuse(_)), "{error:?}");
        assert!(server.is_err());
    }
}
