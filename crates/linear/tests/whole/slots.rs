//! Layers in slots: shares add up to plain loops modulo `p` for every kind of layer and packing, and costs are those on the wire.

use std::collections::HashSet;
use std::thread;

use crate::support::{apply, prg, weights};
use privet_channel::pair;
use privet_linear::slots::{ClientKeys, Plan, ServerKeys, Weights, decrypt, encrypt, evaluate};
use privet_linear::{Conv2d, Diagonal, Error, Layer, MatMul, Misuse};
use privet_ring::{Field, Modulus};

fn field() -> Field {
    Field::over(Modulus::new(37)).unwrap()
}

/// Runs layers under shared keys on random values, holds the sum of the shares against the slow result, and the wire against
/// the costs.
fn check(layers: &[Layer], seed: u8) -> Vec<Plan> {
    let plans = Plan::for_program(layers, field()).unwrap();
    let all: Vec<&Plan> = plans.iter().collect();
    let mut prg_all = prg(seed);
    let r: Vec<Vec<u64>> =
        plans.iter().map(|plan| (0..plan.input_len()).map(|_| prg_all.below(field().prime())).collect()).collect();
    let w: Vec<Vec<i64>> = plans.iter().map(|plan| weights(plan.weights_len(), 16, &mut prg_all)).collect();
    let (mut to_server, mut to_client) = pair();
    let (client, server) = thread::scope(|scope| {
        let (w, plans, all) = (&w, &plans, &all);
        let server = scope.spawn(move || {
            let keys = ServerKeys::receive(&mut to_client, plans[0].parameters(), all).unwrap();
            let of_layer = |(plan, w): (&Plan, &Vec<i64>)| {
                let weights = Weights::new(plan, w).unwrap();
                evaluate(&mut to_client, plan, &keys, &weights, &mut prg(seed ^ 0x80)).unwrap()
            };
            let shares: Vec<Vec<u64>> = plans.iter().zip(w).map(of_layer).collect();
            to_client.flush().unwrap();
            shares
        });
        let mut prg = prg(seed);
        let keys = ClientKeys::generate(plans[0].parameters(), &mut prg);
        keys.send(&mut to_server, all, &mut prg).unwrap();
        assert_eq!(to_server.cost(), Plan::keys_cost(all));
        let before = to_server.cost();
        for (plan, r) in plans.iter().zip(&r) {
            encrypt(&mut to_server, plan, &keys, r, &mut prg).unwrap();
        }
        let client: Vec<Vec<u64>> = plans.iter().map(|plan| decrypt(&mut to_server, plan, &keys).unwrap()).collect();
        let cost = to_server.cost() - before;
        let of_plans =
            |part: fn(&privet_channel::Cost) -> u64| plans.iter().map(|plan| part(&plan.cost())).sum::<u64>();
        assert_eq!(cost.bytes_sent, of_plans(|cost| cost.bytes_sent));
        assert_eq!(cost.bytes_received, of_plans(|cost| cost.bytes_received));
        assert_eq!((cost.messages_received, cost.rounds), (of_plans(|cost| cost.messages_received), 1));
        (client, server.join().unwrap())
    });
    for (i, (layer, plan)) in layers.iter().zip(&plans).enumerate() {
        // Below 2^63 in absolute value, so that plain loops modulo 2^64 are exact.
        let expected = apply(layer, &r[i], &w[i]);
        assert_eq!(plan.output_len(), expected.len());
        for (at, expected) in expected.iter().enumerate() {
            let sum = field().add(client[i][at], server[i][at]);
            assert_eq!(sum, field().from_signed(*expected as i64), "result {at} of {layer:?}: {plan}");
        }
    }
    plans
}

/// A square convolution with as much padding as keeps its size at stride 1.
fn convolution(channels: usize, size: usize, outputs: usize, kernel: usize, stride: usize) -> Conv2d {
    Conv2d {
        batch: 1,
        in_channels: channels,
        height: size,
        width: size,
        out_channels: outputs,
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [kernel / 2; 4],
        dilation: [1; 2],
        groups: 1,
    }
}

#[test]
fn every_kind_of_layer_under_one_set_of_keys() {
    let conv = |layer| Layer::Conv2d(layer);
    let plans = check(
        &[
            conv(convolution(3, 9, 5, 3, 1)),
            conv(Conv2d { batch: 2, ..convolution(2, 6, 3, 3, 2) }),
            conv(Conv2d { dilation: [2, 1], padding: [0, 1, 3, 2], ..convolution(1, 8, 2, 3, 1) }),
            conv(Conv2d { groups: 6, ..convolution(6, 5, 6, 3, 1) }),
            conv(Conv2d { groups: 3, ..convolution(6, 5, 9, 3, 2) }),
            Layer::MatMul(MatMul { rows: 1, inner: 10, columns: 7 }),
            Layer::MatMul(MatMul { rows: 3, inner: 33, columns: 70 }),
            Layer::Diagonal(Diagonal { len: 9000 }),
        ],
        1,
    );
    // Elementwise products never rotate.
    assert_eq!(plans[7].rotations(), 0);
}

#[test]
fn kernels_that_reach_beyond_small_images() {
    let layer =
        |size, kernel, padding| Layer::Conv2d(Conv2d { padding: [padding; 4], ..convolution(2, size, 3, kernel, 1) });
    let apart = Layer::Conv2d(Conv2d { padding: [3; 4], dilation: [4; 2], ..convolution(2, 4, 3, 3, 1) });
    check(&[layer(1, 3, 1), layer(2, 5, 2), layer(3, 1, 2), layer(2, 3, 4), apart], 2);
}

#[test]
fn many_channels_on_small_images_swap_rows() {
    // Planes of 4 x 4 in blocks of 16: a row has 256, so both inputs and outputs take rows of their own.
    let plans = check(&[Layer::Conv2d(convolution(260, 4, 257, 1, 1))], 3);
    assert_eq!((plans[0].input_ciphertexts(), plans[0].output_ciphertexts()), (1, 1));
}

#[test]
fn many_inputs_to_few_outputs_share_rows() {
    let plans = check(&[Layer::MatMul(MatMul { rows: 1, inner: 4100, columns: 3 })], 4);
    assert!(plans[0].rotations() <= 4, "{}", plans[0]);
}

#[test]
fn few_inputs_to_many_outputs_take_every_copy() {
    let plans = check(&[Layer::MatMul(MatMul { rows: 1, inner: 4, columns: 9000 })], 5);
    assert_eq!((plans[0].input_ciphertexts(), plans[0].output_ciphertexts()), (1, 2));
}

#[test]
fn large_images_go_in_strips() {
    let plans = check(&[Layer::Conv2d(convolution(2, 100, 3, 3, 1)), Layer::Conv2d(convolution(1, 130, 2, 7, 2))], 6);
    assert!(plans.iter().all(|plan| plan.input_ciphertexts() > 1));
}

#[test]
fn a_dense_image_takes_hardly_more_ciphertexts_than_elements_need() {
    let plan = Plan::for_program(&[Layer::Conv2d(convolution(512, 7, 512, 3, 1))], field()).unwrap().remove(0);
    // 25,088 elements in planes of 49 of 64 slots.
    assert_eq!((plan.input_ciphertexts(), plan.output_ciphertexts()), (4, 4));
}

#[test]
fn images_wider_than_a_row_of_slots_are_refused() {
    let wide = Layer::Conv2d(Conv2d { height: 1, width: 5000, padding: [0; 4], ..convolution(1, 1, 1, 1, 1) });
    let error = Plan::for_program(&[wide], field()).unwrap_err();
    assert!(matches!(error, Error::Misuse(Misuse::KernelTooLarge { .. })), "{error}");
    assert!(matches!(Plan::for_program(&[], field()), Err(Error::Misuse(Misuse::NoLayers))));
}

#[test]
fn keys_and_weights_of_other_layers_are_refused() {
    let one = |columns| Layer::MatMul(MatMul { rows: 1, inner: 300, columns });
    let plan = |layer| Plan::for_program(&[layer], field()).unwrap().remove(0);
    let (small, large) = (plan(one(1)), plan(Layer::Conv2d(convolution(512, 7, 512, 3, 1))));
    let (mut to_server, _to_client) = pair();
    let keys = ClientKeys::generate(small.parameters(), &mut prg(1));
    let result = encrypt(&mut to_server, &large, &keys, &vec![0; large.input_len()], &mut prg(1));
    assert_eq!(result, Err(Misuse::PlansDiffer { what: "keys" }.into()));
    let result = encrypt(&mut to_server, &small, &keys, &[0; 3], &mut prg(1));
    assert_eq!(result, Err(Misuse::WrongLength { what: "r", expected: 300, actual: 3 }.into()));
    assert!(Weights::new(&small, &[1; 7]).is_err());
}

/// The client's keys and ciphertexts of one run in parts of 16 bytes, and the server's shares.
fn one_run(plan: &Plan, r: &[u64], w: &[i64], seed: u8) -> (Vec<Vec<u8>>, Vec<u64>) {
    let ((mut client, mut eavesdropper), (mut proxy, mut server)) = (pair(), pair());
    let mut random = prg(seed);
    let keys = ClientKeys::generate(plan.parameters(), &mut random);
    keys.send(&mut client, &[plan], &mut random).unwrap();
    encrypt(&mut client, plan, &keys, r, &mut random).unwrap();
    client.flush().unwrap();
    let mut parts = Vec::new();
    for _ in 0..Plan::keys_cost(&[plan]).messages_sent + plan.cost().messages_sent {
        let message = eavesdropper.recv_at_most(1 << 24).unwrap();
        proxy.send(&message).unwrap();
        parts.extend(message.chunks_exact(16).map(<[u8]>::to_vec));
    }
    proxy.flush().unwrap();
    let keys = ServerKeys::receive(&mut server, plan.parameters(), &[plan]).unwrap();
    let weights = Weights::new(plan, w).unwrap();
    (parts, evaluate(&mut server, plan, &keys, &weights, &mut random).unwrap())
}

#[test]
fn two_runs_on_the_same_values_share_no_part_of_a_message() {
    let plan = Plan::for_program(&[Layer::Conv2d(convolution(40, 20, 4, 3, 1))], field()).unwrap().remove(0);
    assert!(plan.input_ciphertexts() > 1);
    let (r, w) = (vec![5; plan.input_len()], weights(plan.weights_len(), 16, &mut prg(9)));
    let ((first, shares), (second, second_shares)) = (one_run(&plan, &r, &w, 5), one_run(&plan, &r, &w, 6));
    let parts: HashSet<_> = first.iter().collect();
    assert_eq!(parts.len(), first.len(), "a part repeats within a run");
    assert!(second.iter().all(|part| !parts.contains(part)), "two runs share a part");
    let equal = shares.iter().zip(&second_shares).filter(|(one, other)| one == other).count();
    assert_eq!(equal, 0, "1,600 shares of 37 bits agree by chance with probability 2^-26");
    // The comparison sees what it should: the same seed gives the same messages.
    assert_eq!(one_run(&plan, &r, &w, 5), (first, shares));
}
