//! Several layers under one key: one round, and nothing that repeats or depends on the input.

use std::collections::HashSet;
use std::thread;

use crate::support::{apply, elements, prg, run, weights};
use privet_channel::{Cost, pair};
use privet_linear::{
    ClientKeys, Conv2d, Diagonal, Layer, MatMul, Plan, Resharing, Saving, TransformedWeights, Workspace,
};
use privet_linear::{decrypt, encrypt, evaluate, receive_public_key};

fn program() -> Vec<Layer> {
    let conv = Conv2d {
        batch: 1,
        in_channels: 3,
        height: 12,
        width: 12,
        out_channels: 8,
        kernel: [3, 3],
        stride: [2, 2],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    vec![
        Layer::Conv2d(conv),
        Layer::Diagonal(Diagonal { len: 40 }),
        Layer::MatMul(MatMul { rows: 1, inner: 288, columns: 10 }),
    ]
}

#[test]
fn all_layers_take_one_round_under_one_key() {
    let [work, bytes] = [Saving::Work, Saving::Bytes].map(|saving| {
        let layers = [program(), vec![Layer::MatMul(MatMul { rows: 64, inner: 96, columns: 80 })]].concat();
        let plans = Plan::for_program_saving(&layers, 37, 16, Resharing::Approximate, saving).unwrap();
        one_round(&layers, &plans)
    });
    assert!(bytes < work, "{bytes} bytes where bytes are saved, {work} where work is");
}

/// Bytes that such plans take, both ways.
fn one_round(layers: &[Layer], plans: &[Plan]) -> u64 {
    assert!(plans.iter().all(|plan| plan.parameters().agrees_with(plans[0].parameters())));
    let mut random = prg(1);
    let inputs: Vec<_> = plans.iter().map(|plan| elements(plan.input_len(), 37, &mut random)).collect();
    let private: Vec<_> = plans.iter().map(|plan| weights(plan.weights_len(), 16, &mut random)).collect();

    let (mut to_server, mut to_client) = pair();
    let (client, server) = thread::scope(|scope| {
        let private = &private;
        let server = scope.spawn(move || {
            let key = receive_public_key(&mut to_client, plans[0].parameters()).unwrap();
            let shares = plans.iter().zip(private).map(|(plan, w)| {
                let w = TransformedWeights::new(plan, w, Workspace::standard(plan)).unwrap();
                evaluate(&mut to_client, plan, &key, &w, &mut prg(2)).unwrap()
            });
            shares.collect::<Vec<_>>()
        });
        let keys = ClientKeys::generate(plans[0].parameters(), &mut random);
        keys.send_public_key(&mut to_server, &mut random).unwrap();
        for (plan, r) in plans.iter().zip(&inputs) {
            encrypt(&mut to_server, plan, &keys, r, &mut random).unwrap();
        }
        let client: Vec<_> = plans.iter().map(|plan| decrypt(&mut to_server, plan, &keys).unwrap()).collect();
        let expected = plans.iter().fold(plans[0].public_key_cost(), |sum, plan| sum + plan.cost());
        assert_eq!(to_server.cost(), Cost { rounds: 1, ..expected });
        (client, server.join().unwrap())
    });
    for (i, layer) in layers.iter().enumerate() {
        for (j, expected) in apply(layer, &inputs[i], &private[i]).into_iter().enumerate() {
            let sum = client[i][j].wrapping_add(server[i][j]);
            let error = (sum.wrapping_sub(expected) << 27) as i64 >> 27;
            assert!(error.abs() <= 1, "layer {i}, result {j} is off by {error}");
        }
    }
    let cost = plans.iter().map(Plan::cost).fold(plans[0].public_key_cost(), |sum, cost| sum + cost);
    cost.bytes_sent + cost.bytes_received
}

#[test]
fn costs_mirror_and_do_not_depend_on_values() {
    let layer = &program()[0];
    let plan = Plan::new(layer, 37, 16, Resharing::Approximate).unwrap();
    let mut random = prg(3);
    let zeros = run(&plan, &vec![0; plan.input_len()], &vec![0; plan.weights_len()], 1);
    let r = elements(plan.input_len(), 37, &mut random);
    let some = run(&plan, &r, &weights(plan.weights_len(), 16, &mut random), 2);
    assert_eq!(zeros.client_cost, some.client_cost);
    assert_eq!(zeros.server_cost, some.server_cost);
    assert_eq!((some.server_cost.bytes_sent, some.server_cost.bytes_received), {
        let cost = plan.cost();
        (cost.bytes_received, cost.bytes_sent)
    });
}

/// The client's key, input and reply messages of one run.
fn messages(plan: &Plan, r: &[u64], w: &[i64], seed: u8) -> Vec<Vec<u8>> {
    let (mut client, mut eavesdropper) = pair();
    let (mut proxy, mut server) = pair();
    let mut random = prg(seed);
    let keys = ClientKeys::generate(plan.parameters(), &mut random);
    keys.send_public_key(&mut client, &mut random).unwrap();
    encrypt(&mut client, plan, &keys, r, &mut random).unwrap();
    client.flush().unwrap();
    let mut transcript = Vec::new();
    let cost = plan.cost();
    for _ in 0..1 + cost.messages_sent {
        let message = eavesdropper.recv_at_most(1 << 24).unwrap();
        proxy.send(&message).unwrap();
        transcript.push(message);
    }
    proxy.flush().unwrap();
    let key = receive_public_key(&mut server, plan.parameters()).unwrap();
    let w = TransformedWeights::new(plan, w, Workspace::standard(plan)).unwrap();
    evaluate(&mut server, plan, &key, &w, &mut random).unwrap();
    server.flush().unwrap();
    transcript.extend((0..cost.messages_received).map(|_| proxy.recv_at_most(1 << 24).unwrap()));
    transcript
}

#[test]
fn two_runs_on_the_same_values_share_no_message_nor_any_part_of_one() {
    let several = Layer::MatMul(MatMul { rows: 1, inner: 10_000, columns: 2 });
    for layer in [&program()[0], &several] {
        let plan = Plan::new(layer, 37, 16, Resharing::Approximate).unwrap();
        assert_eq!(plan.input_ciphertexts() > 1, layer == &several);
        let mut random = prg(4);
        let r = elements(plan.input_len(), 37, &mut random);
        let w = weights(plan.weights_len(), 16, &mut random);
        let parts = |seed| {
            let transcript = messages(&plan, &r, &w, seed);
            transcript.iter().flat_map(|message| message.chunks_exact(16)).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let (first, second) = (parts(5), parts(6));
        let first_parts: HashSet<_> = first.iter().collect();
        assert_eq!(first_parts.len(), first.len(), "a part repeats within a run");
        assert!(second.iter().all(|part| !first_parts.contains(part)), "two runs share a part");
        // The comparison sees what it should: the same seed gives the same messages.
        assert_eq!(parts(5), first);
    }
}

#[test]
fn masks_repeat_neither_within_a_run_nor_between_runs() {
    let plan =
        Plan::new(&Layer::MatMul(MatMul { rows: 1, inner: 300, columns: 400 }), 50, 8, Resharing::Approximate).unwrap();
    assert!(plan.output_ciphertexts() > 1);
    let (r, w) = (vec![0; 300], vec![0; 300 * 400]);
    let shares: Vec<u64> = [1, 2].into_iter().flat_map(|seed| run(&plan, &r, &w, seed).server).collect();
    let distinct: HashSet<_> = shares.iter().collect();
    assert_eq!(distinct.len(), 800, "800 of 2^50 values repeat with probability 2^-31");
}

#[test]
fn merged_replies_have_masks_that_repeat_neither_within_a_run_nor_between_runs() {
    let layer = Layer::MatMul(MatMul { rows: 64, inner: 128, columns: 1024 });
    let plan = Plan::new(&layer, 39, 12, Resharing::Approximate).unwrap();
    let (len, degree) = (plan.output_len(), plan.parameters().degree());
    assert!(plan.folds() > 0);
    assert_eq!(plan.output_ciphertexts() * degree, len, "all replies are full");
    let (r, w) = (vec![0; plan.input_len()], vec![0; plan.weights_len()]);

    let [first, second] = [1, 2].map(|seed| run(&plan, &r, &w, seed).server);
    assert!(first.iter().zip(&second).all(|(first, second)| first != second), "2^16 pairs are alike with 2^-39 each");
    let distinct: HashSet<_> = first.iter().chain(&second).collect();
    // Of 2^33 pairs of shares a 64th is expected to be alike.
    assert!(distinct.len() + 4 > 2 * len, "{} distinct shares of {}", distinct.len(), 2 * len);

    // What travels for `C1` is the first half of a full reply.
    let reply = plan.parameters().reply_bytes(degree);
    let replies_of = |seed| {
        let transcript = messages(&plan, &r, &w, seed);
        let replies = &transcript[1 + plan.cost().messages_sent as usize..];
        replies.iter().flat_map(|m| m.chunks_exact(reply)).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let replies = [replies_of(1), replies_of(2)].concat();
    assert_eq!(replies.len(), 2 * plan.output_ciphertexts());
    let distinct: HashSet<_> = replies.iter().map(|bytes| &bytes[..reply / 2]).collect();
    assert_eq!(distinct.len(), replies.len(), "two replies have the same `C1`");
}
