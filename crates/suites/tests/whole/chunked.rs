//! Material whose correlations are stored in chunks.

use std::io::Write;

use privet_channel::pair;
use privet_ot::{BaseOts, Extension, Role, STOCK_HEADER_BYTES, Size};
use privet_seal::Stored;
use privet_suites::sharing::{self, Correlated, Material, Options, Plan, Rounds};
use privet_suites::{Error, Report, Silent};

use crate::parties::{CHOICE, Fixture, PATIENCE, PRODUCTS, RESIDUAL, both, head};

/// Both parties' entries as they lie in the store, and their reports.
fn prepared(fixture: &Fixture, plan: &Plan) -> [(Vec<u8>, Report); 2] {
    let (mut near, mut far) = pair();
    near.set_timeout(PATIENCE);
    let (mut client_body, mut server_body, model) = (Vec::new(), Vec::new(), fixture.model(plan));
    let (client, server) = both(
        || {
            let result =
                sharing::prepare_client(&mut near, plan, &mut BaseOts::default(), None, &mut client_body, &mut Silent);
            result.map(|(material, report)| (head(&material, plan), report))
        },
        || {
            let base = &mut BaseOts::default();
            let result = sharing::prepare_server(
                &mut far,
                plan,
                (plan.extension(), base),
                &model,
                None,
                &mut server_body,
                &mut Silent,
            );
            result.map(|(material, report)| (head(&material, plan), report))
        },
    );
    let entry = |body: Vec<u8>, result: Result<(Vec<u8>, Report), Error>| {
        let (head, report) = result.expect("material");
        ([body, head].concat(), report)
    };
    [entry(client_body, client), entry(server_body, server)]
}

fn file(bytes: &[u8]) -> Stored {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room on the disk");
    Stored::plain(file)
}

type Inferred = (Result<(Vec<Vec<i64>>, Report), Error>, Result<Report, Error>);

fn inferred(fixture: &Fixture, plan: &Plan, [client_half, server_half]: [&[u8]; 2]) -> Inferred {
    let ((mut near, mut far), model) = (pair(), fixture.model(plan));
    near.set_timeout(PATIENCE);
    let client_half = Material::read(file(client_half), plan, Role::Client).expect("the client's half");
    let server_half = Material::read(file(server_half), plan, Role::Server).expect("the server's half");
    both(
        move || sharing::infer_client(&mut near, plan, client_half, &fixture.case.inputs, &mut Vec::new(), &mut Silent),
        move || sharing::infer_server(&mut far, plan, &model, server_half, &mut Vec::new(), &mut Silent),
    )
}

#[test]
fn chunks_give_the_same_results_and_cost_what_is_forecast() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for depth in [Rounds::Linear, Rounds::Log] {
            let (whole, plan) = (fixture.plan(depth), fixture.plan(depth).storing(0));
            let (forecast, of_whole) = (plan.forecast(), whole.forecast());
            let [client_half, server_half] = prepared(fixture, &plan);
            // The chunks: a header each, and all but the first begin a preparation of their own.
            let lengths = [&client_half, &server_half].map(|(entry, _)| entry.len() as u64);
            let stored = [forecast.material_bytes_client, forecast.material_bytes_server];
            assert_eq!(lengths, stored.map(|bytes| bytes + STOCK_HEADER_BYTES));
            assert!(stored[0] > of_whole.material_bytes_client, "one chunk in {depth:?}");
            assert_eq!(client_half.1.total.bytes_sent, forecast.offline_bytes_client);
            assert_eq!(client_half.1.total.bytes_received, forecast.offline_bytes_server);
            assert_eq!(client_half.1.total.rounds, forecast.offline_rounds);

            let (client, server) = inferred(fixture, &plan, [&client_half.0, &server_half.0]);
            let (outputs, report) = client.expect("an inference");
            fixture.case.check(&outputs, plan.options());
            server.expect("an inference");
            assert_eq!(report.total.bytes_sent, of_whole.online_bytes_client);
            let loads = report.layers.iter().filter(|layer| layer.operator == "load").count() as u64;
            let chunks = 1 + loads;
            assert!(chunks > 1 && stored[0] >= of_whole.material_bytes_client + loads * STOCK_HEADER_BYTES);
        }
    }
}

#[test]
fn layers_and_products_are_opened_one_by_one_where_nothing_may_be_sent_ahead() {
    for extensions in [Extension::ALL.to_vec(), vec![Extension::Silent(Size::Small)]] {
        for fixture in [&*RESIDUAL, &*PRODUCTS] {
            let plan = || fixture.plan(Rounds::Log).extending(extensions.clone());
            let (ahead, plan) = (plan(), plan().storing(0).sending_ahead(0));
            let (forecast, of_ahead) = (plan.forecast(), ahead.forecast());
            assert!(forecast.offline_rounds > of_ahead.offline_rounds + 1);
            let [client_half, server_half] = prepared(fixture, &plan);
            assert_eq!(client_half.1.total.bytes_sent, forecast.offline_bytes_client);
            assert_eq!(client_half.1.total.bytes_received, forecast.offline_bytes_server);
            assert_eq!(client_half.1.total.rounds, forecast.offline_rounds, "{extensions:?}");
            let (client, server) = inferred(fixture, &plan, [&client_half.0, &server_half.0]);
            fixture.case.check(&client.expect("an inference").0, plan.options());
            server.expect("an inference");
        }
    }
}

#[test]
fn material_that_was_stored_in_one_piece_is_used_where_chunks_would_be_made_now() {
    let (whole, plan) = (RESIDUAL.plan(Rounds::Log), RESIDUAL.plan(Rounds::Log).storing(0));
    let [client_half, server_half] = prepared(&RESIDUAL, &whole);
    let (client, server) = inferred(&RESIDUAL, &plan, [&client_half.0, &server_half.0]);
    RESIDUAL.case.check(&client.expect("an inference").0, plan.options());
    server.expect("an inference");
    // An entry of the one-shot mode is correlations alone.
    let one_shot = Options::one_shot().next().expect("a mode");
    let (whole, plan) = (RESIDUAL.plan(one_shot), RESIDUAL.plan(one_shot).storing(0));
    let [client_half, server_half] = prepared(&RESIDUAL, &whole);
    let stocks = [
        Material::read(file(&client_half.0), &plan, Role::Client).expect("the client's half").correlated,
        Material::read(file(&server_half.0), &plan, Role::Server).expect("the server's half").correlated,
    ];
    for correlated in stocks {
        let Correlated::Stock(stock, None) = correlated else { panic!("a stock in one part") };
        assert_eq!(stock.left(), plan.online_cost().demand);
    }
}

#[test]
fn material_without_its_later_chunks_is_refused_before_anything_is_sent() {
    let plan = RESIDUAL.plan(Rounds::Log).storing(0);
    let ((mut near, mut far), model) = (pair(), RESIDUAL.model(&plan));
    let base = || BaseOts::default();
    let (client, _) = both(
        || sharing::prepare_client(&mut near, &plan, &mut base(), None, &mut std::io::sink(), &mut Silent),
        || {
            let base = (plan.extension(), &mut base());
            sharing::prepare_server(&mut far, &plan, base, &model, None, &mut std::io::sink(), &mut Silent).map(drop)
        },
    );
    let material = client.expect("material").0;
    let refused =
        sharing::infer_client(&mut near, &plan, material, &RESIDUAL.case.inputs, &mut Vec::new(), &mut Silent);
    assert!(matches!(refused.map(drop), Err(Error::Misuse(_))));
}

#[test]
fn a_damaged_chunk_ends_the_inference() {
    let plan = RESIDUAL.plan(Rounds::Linear).storing(0);
    let [client_half, server_half] = prepared(&RESIDUAL, &plan);
    // Another party's chunk where one of the client's should be, and one that is none.
    for at in [12, 13] {
        let mut damaged = client_half.0.clone();
        damaged[at] ^= 1;
        let (client, server) = inferred(&RESIDUAL, &plan, [&damaged, &server_half.0]);
        let error = client.map(|(outputs, _)| outputs).expect_err("the chunk is damaged");
        assert!(matches!(error, Error::Correlations(_) | Error::Misuse(_)), "{error:?}");
        assert!(server.is_err());
    }
}
