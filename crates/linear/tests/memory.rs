//! The figures of `Plan::server_memory` and `Plan::client_memory` hold, and not by being far too large.
//!
//! Alone in its process, as the allocator counts for all threads. Both parties take turns over a channel in memory, whose
//! queue counts too: what it holds at most is known, and taken into account in the direction that makes the test harder.

#[path = "whole/support.rs"]
mod support;

use peak_alloc::PeakAlloc;
use privet_bfv::{Parameters, PublicKey, SecretKey, Sum};
use privet_channel::{Channel, pair};
use privet_linear::{
    ClientKeys, Conv2d, Diagonal, Keep, Layer, MatMul, Plan, Resharing, TransformedWeights, Workspace,
};
use privet_linear::{decrypt, encrypt, evaluate, receive_public_key};
use support::{elements, prg, weights};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What queues, task lists and pools take beside what the figures count.
const SLACK: u64 = 1 << 20;

/// Result of `work`, and the most bytes beyond those before it that were allocated at a time.
fn measured<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work();
    (result, (MEMORY.peak_usage() - before) as u64)
}

fn layers() -> Vec<Layer> {
    let conv = Conv2d {
        batch: 1,
        in_channels: 16,
        height: 112,
        width: 112,
        out_channels: 16,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    let pointwise = Conv2d { kernel: [1, 1], padding: [0; 4], ..conv.clone() };
    vec![
        Layer::Conv2d(conv.clone()),
        Layer::Conv2d(Conv2d { groups: 16, ..conv.clone() }),
        Layer::Conv2d(Conv2d { in_channels: 64, height: 56, width: 56, out_channels: 64, ..conv.clone() }),
        // Channels in blocks: one to a ciphertext, and four.
        Layer::Conv2d(Conv2d { in_channels: 64, height: 56, width: 56, out_channels: 200, ..pointwise.clone() }),
        Layer::Conv2d(Conv2d { batch: 3, in_channels: 40, height: 28, width: 28, out_channels: 30, ..pointwise }),
        Layer::MatMul(MatMul { rows: 1, inner: 2048, columns: 1000 }),
        Layer::MatMul(MatMul { rows: 100, inner: 700, columns: 300 }),
        Layer::Diagonal(Diagonal { len: 5000 }),
        // Merged: many outputs, and lanes.
        Layer::MatMul(MatMul { rows: 64, inner: 512, columns: 768 }),
        Layer::Diagonal(Diagonal { len: 20_000 }),
    ]
}

fn pair_with_keys(plan: &Plan) -> (Channel, Channel, ClientKeys, privet_linear::PublicKey) {
    let (mut to_server, mut to_client) = pair();
    let keys = ClientKeys::generate(plan.parameters(), &mut prg(1));
    keys.send_public_key(&mut to_server, &mut prg(2)).unwrap();
    to_server.flush().unwrap();
    let key = receive_public_key(&mut to_client, plan.parameters()).unwrap();
    (to_server, to_client, keys, key)
}

/// `figure` covers `peak`, of which a queue made up `queued` at most, and is not more than `looseness` of it.
fn close(what: &str, figure: u64, peak: u64, queued: u64, looseness: u64) {
    assert!(peak <= figure + queued + SLACK, "{what}: {peak} bytes, of which {queued} queued, beyond {figure}");
    let least = looseness * (peak + queued + SLACK);
    assert!(figure <= least, "{what}: {figure} is far above the {peak} bytes taken");
}

/// What one thread takes to reply and to open, which is less than [`SLACK`].
fn one_reply_is_covered(resharing: Resharing) {
    const FEW: u64 = 4096;
    let parameters = Parameters::choose(37, 16, 64, 4096, resharing).unwrap();
    let (secret, degree) = (SecretKey::generate(&parameters, &mut prg(1)), parameters.degree());
    let public = PublicKey::from_bytes(&parameters, &secret.public_key(&mut prg(2))).unwrap();
    let (sum, mut reply) = (Sum::new(&parameters), Vec::with_capacity(parameters.reply_bytes(degree)));
    let positions = || (0..degree).collect::<Vec<usize>>();
    let share = 8 * degree as u64;
    let (_, peak) = measured(|| sum.reply(&public, &positions(), &mut prg(3), &mut reply).unwrap());
    let figure = parameters.reply_memory() + share;
    assert!(peak <= figure + FEW, "replying, {resharing:?}: {peak} bytes, beyond {figure}");
    let (_, peak) = measured(|| secret.open(&reply, &positions()).unwrap());
    let figure = parameters.open_memory() + share;
    assert!(peak <= figure + FEW, "opening, {resharing:?}: {peak} bytes, beyond {figure}");
}

#[test]
fn figures_cover_what_is_allocated() {
    let threads = rayon::current_num_threads();
    rayon::join(|| (), || ());
    [Resharing::Approximate, Resharing::Exact].into_iter().for_each(one_reply_is_covered);
    for layer in layers() {
        let plan = Plan::new(&layer, 37, 16, Resharing::Approximate).unwrap();
        let r = elements(plan.input_len(), 37, &mut prg(3));
        let w = weights(plan.weights_len(), 16, &mut prg(4));
        let (up, down) = (plan.cost().bytes_sent, plan.cost().bytes_received);
        for keep in [Keep::Transformed, Keep::Plain] {
            for sections in [1, 3, plan.sections()] {
                let workspace = Workspace { keep, sections };
                let (server, client) = (plan.server_memory(workspace, threads), plan.client_memory(threads));
                let what = |step| format!("{step} of {layer:?} in {workspace:?}");
                let (mut to_server, mut to_client, keys, key) = pair_with_keys(&plan);

                let before = MEMORY.current_usage();
                let (weights, peak) = measured(|| TransformedWeights::new(&plan, &w, workspace).unwrap());
                close(&what("making"), server.making, peak, 0, 2);
                close(&what("keeping"), server.weights, (MEMORY.current_usage() - before) as u64, 0, 2);

                let (_, peak) = measured(|| encrypt(&mut to_server, &plan, &keys, &r, &mut prg(5)).unwrap());
                // The queue holds chunks, in sum as many bytes as were sent.
                close(&what("encrypting"), client.encrypting, peak, up, 2);
                to_server.flush().unwrap();

                let (_, peak) = measured(|| evaluate(&mut to_client, &plan, &key, &weights, &mut prg(6)).unwrap());
                close(&what("evaluating"), server.evaluating, peak, down, 2);
                to_client.flush().unwrap();

                let (_, peak) = measured(|| decrypt(&mut to_server, &plan, &keys).unwrap());
                close(&what("decrypting"), client.decrypting, peak, 0, 2);
            }
        }
    }
}
