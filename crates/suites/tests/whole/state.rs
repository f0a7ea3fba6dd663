//! State that stays shared between the parties from one inference of a session to the next.

use std::sync::LazyLock;

use privet_channel::{AbortReason, Channel, PeerMisbehaved as Link, pair};
use privet_program::{Program, Weights};
use privet_suites::policy::Policy;
use privet_suites::session::{Catalog, Client, Served, Server, VERSION};
use privet_suites::sharing::{Options, Plan, Rounds, Truncation};
use privet_suites::{MaterialId, Silent, registry};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::parties::{CHOICE, PATIENCE, StoreFolder, over, prepare, session};

/// A tensors' file without tensors.
const NO_WEIGHTS: &[u8] = b"\x08\0\0\0\0\0\0\0{}      ";

/// Adds its input to its state, and gives what is positive of the sum.
static PUBLIC: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let value = |_| json!({"shape": [3], "scale": 12});
    let commitment: String = Sha256::digest(NO_WEIGHTS).iter().map(|byte| format!("{byte:02x}")).collect();
    let file = json!({
        "format": "privet-program", "version": 1, "model": "sum", "ring_bits": 37, "scale_bits": 12, "weight_bits": 16,
        "weights_commitment": commitment, "values": ([0, 1, 2, 3].map(value)),
        "inputs": [{"name": "x", "value": 0}],
        "outputs": [{"name": "y", "value": 3, "client": null}],
        "state": [{"name": "sum", "input": 1, "output": 2}],
        "operations": [
            {"op": "add", "name": "add", "inputs": [0, 1], "output": 2},
            {"op": "relu", "name": "relu", "inputs": [2], "output": 3},
        ],
    });
    file.to_string().into_bytes()
});

fn program() -> Program {
    Program::parse(&PUBLIC).expect("a program")
}

fn plan() -> Plan {
    Plan::new(program(), Options::gmw(Rounds::Log, Truncation::Exact)).expect("a plan")
}

fn server(folder: &StoreFolder) -> Server {
    let mut catalog = Catalog::default();
    let weights = Weights::parse(NO_WEIGHTS, &program()).expect("no weights");
    catalog.add(Served::with_weights(PUBLIC.clone(), program(), weights));
    let weights = Weights::parse(&CHOICE.weights, &CHOICE.program()).expect("weights");
    catalog.add(Served::with_weights(CHOICE.public.clone(), CHOICE.program(), weights));
    registry::server(catalog, folder.store(), Policy::unrestricted()).expect("a folder for counts")
}

fn step(client: &mut Client, plan: &Plan, x: [i64; 3]) -> Vec<Vec<i64>> {
    let id = prepare(client, plan);
    client.infer(plan, &id, &[x.to_vec()], &mut Silent).expect("an inference").0
}

/// Asks a server by hand for an inference, and nothing else; why it refuses.
fn ask(server: &Server, program: &Program, material: &MaterialId, step: Option<u64>) -> AbortReason {
    let mut request = json!({"request": "infer", "program": program.hash().to_string(), "material": material});
    if let Some(step) = step {
        request["step"] = json!(step);
    }
    let (reason, _) = over(pair(), server, |mut channel: Channel| {
        channel.set_timeout(PATIENCE);
        channel.send(&[b"PRIVET".as_slice(), &VERSION.to_le_bytes()].concat()).expect("a greeting");
        channel.send(request.to_string().as_bytes()).expect("a request");
        loop {
            match channel.recv_at_most(1 << 20) {
                Ok(_) => {}
                Err(privet_channel::Error::PeerMisbehaved(Link::Aborted { reason, .. })) => return reason,
                Err(other) => panic!("not an abort: {other:?}"),
            }
        }
    });
    reason
}

#[test]
fn a_sequence_goes_on_where_it_ended_and_another_begins_with_nothing() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), plan());
    let server = server(&server_folder);
    session(&server, &client_folder, |client| {
        assert_eq!(step(client, &plan, [5, -3, 1 << 20]), [[5, 0, 1 << 20]]);
        assert_eq!(step(client, &plan, [5, 1, -1]), [[10, 0, (1 << 20) - 1]]);
        assert_eq!(client.step(&plan), 2);
        assert_eq!(step(client, &plan, [-11, 9, 0]), [[0, 7, (1 << 20) - 1]]);
        client.end_sequence();
        assert_eq!(step(client, &plan, [1, 1, 1]), [[1, 1, 1]]);
    });
    // Another session has nothing of it.
    session(&server, &client_folder, |client| assert_eq!(step(client, &plan, [2, 2, 2]), [[2, 2, 2]]));
}

#[test]
fn a_step_of_another_session_is_refused_before_material_is_spent() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), plan());
    let server = server(&server_folder);
    let id = session(&server, &client_folder, |client| {
        step(client, &plan, [1, 2, 3]);
        prepare(client, &plan)
    });
    for wrong in [1, 2] {
        assert_eq!(ask(&server, plan.program(), &id, Some(wrong)), AbortReason::StaleSession);
    }
    assert_eq!(ask(&server, plan.program(), &id, None), AbortReason::BadRequest);
    assert_eq!(server_folder.ready(), std::slice::from_ref(&id));
    // The control: the same entry serves the step that is due.
    session(&server, &client_folder, |client| client.infer(&plan, &id, &[vec![4, 4, 4]], &mut Silent).expect("step 0"));
}

#[test]
fn a_program_without_state_has_no_steps() {
    let (client_folder, server_folder, plan) = (StoreFolder::new(), StoreFolder::new(), CHOICE.plan(Rounds::Log));
    let server = server(&server_folder);
    let id = session(&server, &client_folder, |client| prepare(client, &plan));
    assert_eq!(ask(&server, plan.program(), &id, Some(0)), AbortReason::BadRequest);
    assert_eq!(server_folder.ready(), [id]);
}

#[test]
fn a_program_whose_state_changes_its_form_is_refused() {
    // The state is left as a second input, of the same shape and scale as the control, of another, or never written.
    let parse = |output: usize, shape: [usize; 1], scale: u32| {
        let mut file: serde_json::Value = serde_json::from_slice(&PUBLIC).expect("JSON");
        file["values"].as_array_mut().expect("values").push(json!({"shape": shape, "scale": scale}));
        file["inputs"].as_array_mut().expect("inputs").push(json!({"name": "z", "value": 4}));
        file["state"][0]["output"] = json!(output);
        Program::parse(file.to_string().as_bytes())
    };
    assert!(parse(4, [3], 12).is_ok());
    for (output, shape, scale) in [(4, [4], 12), (4, [3], 11), (9, [3], 12)] {
        let refused = parse(output, shape, scale).expect_err("another form").to_string();
        assert!(refused.contains("state sum"), "{refused}");
    }
}
