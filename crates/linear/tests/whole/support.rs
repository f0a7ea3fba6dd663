//! Both parties in one process, and the slow, obvious results to compare with.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::thread;

use privet_channel::{Channel, Cost, pair};
use privet_linear::{
    ClientKeys, Conv2d, Diagonal, Error, Layer, MatMul, Plan, Resharing, TransformedWeights, Workspace,
};
use privet_linear::{decrypt, encrypt, evaluate, receive_public_key};
use privet_prg::{Prg, Seed};

pub fn prg(byte: u8) -> Prg {
    Prg::from_seed(&Seed::from_bytes([byte; 16]))
}

/// Random signed weights below `2^bits`.
pub fn weights(count: usize, bits: u32, prg: &mut Prg) -> Vec<i64> {
    (0..count).map(|_| prg.below((2 << bits) - 1) as i64 - ((1 << bits) - 1)).collect()
}

pub fn elements(count: usize, bits: u32, prg: &mut Prg) -> Vec<u64> {
    (0..count).map(|_| prg.word() >> (64 - bits)).collect()
}

/// What one run gave both parties.
pub struct Outcome {
    pub client: Vec<u64>,
    pub server: Vec<u64>,
    pub client_cost: Cost,
    pub server_cost: Cost,
}

/// Runs a layer over a channel in memory. The costs leave out the public key.
pub fn run(plan: &Plan, r: &[u64], w: &[i64], seed: u8) -> Outcome {
    run_in(plan, r, w, Workspace::standard(plan), seed)
}

/// The same, with the server's memory chosen.
pub fn run_in(plan: &Plan, r: &[u64], w: &[i64], workspace: Workspace, seed: u8) -> Outcome {
    let (mut to_server, mut to_client) = pair();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let key = receive_public_key(&mut to_client, plan.parameters()).unwrap();
            let weights = TransformedWeights::new(plan, w, workspace).unwrap();
            let before = to_client.cost();
            let share = evaluate(&mut to_client, plan, &key, &weights, &mut prg(seed ^ 0x80)).unwrap();
            to_client.flush().unwrap();
            (share, to_client.cost() - before)
        });
        let mut prg = prg(seed);
        let keys = ClientKeys::generate(plan.parameters(), &mut prg);
        keys.send_public_key(&mut to_server, &mut prg).unwrap();
        let before = to_server.cost();
        encrypt(&mut to_server, plan, &keys, r, &mut prg).unwrap();
        let client = decrypt(&mut to_server, plan, &keys).unwrap();
        let client_cost = to_server.cost() - before;
        let (server, server_cost) = server.join().unwrap();
        Outcome { client, server, client_cost, server_cost }
    })
}

/// Runs a layer on random values and checks the sum of the shares against the slow result.
pub fn check(layer: &Layer, ring_bits: u32, weight_bits: u32, seed: u8) -> Plan {
    check_with(layer, ring_bits, weight_bits, Resharing::Approximate, seed)
}

/// The same, with the way of resharing chosen.
pub fn check_with(layer: &Layer, ring_bits: u32, weight_bits: u32, resharing: Resharing, seed: u8) -> Plan {
    let plan = Plan::new(layer, ring_bits, weight_bits, resharing).unwrap();
    let mut prg = prg(seed);
    let r = elements(plan.input_len(), ring_bits, &mut prg);
    let w = weights(plan.weights_len(), weight_bits, &mut prg);
    let expected = apply(layer, &r, &w);
    assert_eq!(plan.output_len(), expected.len());
    let outcome = run(&plan, &r, &w, seed);
    assert_eq!(outcome.client_cost, plan.cost(), "{layer:?}");
    for (i, expected) in expected.iter().enumerate() {
        let sum = outcome.client[i].wrapping_add(outcome.server[i]);
        let error = (sum.wrapping_sub(*expected) << (64 - ring_bits)) as i64 >> (64 - ring_bits);
        assert!(error.unsigned_abs() <= plan.error_bound(), "result {i} of {layer:?} is off by {error}");
    }
    plan
}

/// The layer in plain loops, modulo 2^64.
pub fn apply(layer: &Layer, x: &[u64], w: &[i64]) -> Vec<u64> {
    match layer {
        Layer::Conv2d(layer) => convolve(layer, x, w),
        Layer::MatMul(layer) => multiply(layer, x, w),
        Layer::Diagonal(Diagonal { len }) => (0..*len).map(|i| x[i].wrapping_mul(w[i] as u64)).collect(),
    }
}

fn multiply(layer: &MatMul, x: &[u64], w: &[i64]) -> Vec<u64> {
    let &MatMul { rows, inner, columns } = layer;
    let mut y = vec![0_u64; rows * columns];
    for i in 0..rows {
        for j in 0..columns {
            for k in 0..inner {
                y[i * columns + j] =
                    y[i * columns + j].wrapping_add(x[i * inner + k].wrapping_mul(w[k * columns + j] as u64));
            }
        }
    }
    y
}

fn convolve(layer: &Conv2d, x: &[u64], w: &[i64]) -> Vec<u64> {
    let &Conv2d { batch, in_channels, height, width, out_channels, kernel, stride, padding, dilation, groups } = layer;
    let [top, left, bottom, right] = padding;
    let rows = (height + top + bottom - dilation[0] * (kernel[0] - 1) - 1) / stride[0] + 1;
    let columns = (width + left + right - dilation[1] * (kernel[1] - 1) - 1) / stride[1] + 1;
    let (per_in, per_out) = (in_channels / groups, out_channels / groups);
    let mut y = Vec::new();
    for n in 0..batch {
        for o in 0..out_channels {
            for i in 0..rows {
                for j in 0..columns {
                    let mut sum = 0_u64;
                    for c in 0..per_in {
                        let channel = o / per_out * per_in + c;
                        for a in 0..kernel[0] {
                            for b in 0..kernel[1] {
                                let (row, column) = (i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]);
                                if row < top || column < left || row >= top + height || column >= left + width {
                                    continue;
                                }
                                let at = ((n * in_channels + channel) * height + row - top) * width + column - left;
                                let weight = w[((o * per_in + c) * kernel[0] + a) * kernel[1] + b];
                                sum = sum.wrapping_add(x[at].wrapping_mul(weight as u64));
                            }
                        }
                    }
                    y.push(sum);
                }
            }
        }
    }
    y
}

/// The result of one party when the other is played by `peer`.
pub fn against<T: Send>(
    party: impl FnOnce(&mut Channel) -> Result<T, Error> + Send,
    peer: impl FnOnce(&mut Channel) + Send,
) -> Result<T, Error> {
    let (mut near, mut far) = pair();
    thread::scope(|scope| {
        let party = scope.spawn(move || party(&mut near));
        peer(&mut far);
        drop(far);
        party.join().unwrap()
    })
}
