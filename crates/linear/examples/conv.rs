//! Times both parties of five layers, one after the other in one process, with both ways of resharing.
//!
//! `cargo run --release -p privet-linear --example conv`

use std::time::{Duration, Instant};

use privet_channel::pair;
use privet_linear::{ClientKeys, Conv2d, Error, Keep, Layer, MatMul, Plan, Resharing, TransformedWeights, Workspace};
use privet_linear::{decrypt, encrypt, evaluate, receive_public_key};
use privet_prg::Prg;

const RING_BITS: u32 = 37;
const WEIGHT_BITS: u32 = 16;
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let convolution = |channels, size, outputs, kernel| {
        Layer::Conv2d(Conv2d {
            batch: 1,
            in_channels: channels,
            height: size,
            width: size,
            out_channels: outputs,
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [kernel / 2; 4],
            dilation: [1; 2],
            groups: 1,
        })
    };
    let layers = [
        ("conv 56x56x64 -> 64, 3x3", convolution(64, 56, 64, 3)),
        ("matmul 1x1024x1024", Layer::MatMul(MatMul { rows: 1, inner: 1024, columns: 1024 })),
        ("conv 32x32x64 -> 64, 3x3", convolution(64, 32, 64, 3)),
        ("conv 56x56x64 -> 256, 1x1", convolution(64, 56, 256, 1)),
        ("conv 7x7x512 -> 512, 3x3", convolution(512, 7, 512, 3)),
    ];
    println!("{} threads, best of {RUNS}, milliseconds", rayon::current_num_threads());
    println!(
        "{:28} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "layer", "weights", "encrypt", "evaluate", "decrypt", "total", "KB up", "KB down"
    );
    for (name, layer) in layers {
        let mut both = Vec::new();
        for resharing in [Resharing::Approximate, Resharing::Exact] {
            both.push(show(name, &Plan::new(&layer, RING_BITS, WEIGHT_BITS, resharing)?)?);
        }
        println!("    exact : approximate  time {:.2}, bytes {:.2}", both[1].0 / both[0].0, both[1].1 / both[0].1);
    }
    Ok(())
}

/// Times and prints a layer; gives milliseconds and kilobytes in all.
fn show(name: &str, plan: &Plan) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut best = [Duration::MAX; 4];
    for _ in 0..RUNS {
        best.iter_mut().zip(time(plan)?).for_each(|(best, time)| *best = time.min(*best));
    }
    let [weights, encrypt, evaluate, decrypt] = best.map(|time| time.as_secs_f64() * 1e3);
    let total = encrypt + evaluate + decrypt;
    let (up, down) = (plan.cost().bytes_sent as f64 / 1e3, plan.cost().bytes_received as f64 / 1e3);
    println!("{name:28} {weights:8.1} {encrypt:8.1} {evaluate:8.1} {decrypt:8.1} {total:8.1} {up:9.1} {down:9.1}");
    println!("    {:?}: {plan}", plan.parameters().resharing());
    let threads = rayon::current_num_threads();
    let (server, client) = (plan.server_memory(Workspace::standard(plan), threads), plan.client_memory(threads));
    let least = plan.server_memory(Workspace { keep: Keep::Plain, sections: 1 }, threads);
    let [kept, working, least_kept, least_working, encrypting, decrypting] =
        [server.weights, server.evaluating, least.weights, least.evaluating, client.encrypting, client.decrypting]
            .map(|bytes| bytes as f64 / 1e6);
    println!(
        "    server keeps {kept:.1} MB, works in {working:.1} MB (at least {least_kept:.1} MB, {least_working:.1} MB); \
         client encrypts in {encrypting:.1} MB, decrypts in {decrypting:.1} MB"
    );
    Ok((total, up + down))
}

/// Transforming the weights, encrypting, evaluating, decrypting.
fn time(plan: &Plan) -> Result<[Duration; 4], Box<dyn std::error::Error>> {
    let mut prg = Prg::from_os()?;
    let mut r = vec![0; plan.input_len()];
    prg.fill_words(&mut r);
    let w: Vec<i64> = (0..plan.weights_len()).map(|_| (prg.word() >> (64 - WEIGHT_BITS)) as i64 - (1 << 15)).collect();
    let (mut to_server, mut to_client) = pair();
    let keys = ClientKeys::generate(plan.parameters(), &mut prg);
    keys.send_public_key(&mut to_server, &mut prg)?;
    to_server.flush()?;
    let key = receive_public_key(&mut to_client, plan.parameters())?;
    let (weights, transforming) = timed(|| TransformedWeights::new(plan, &w, Workspace::standard(plan)))?;
    let (_, encrypting) = timed(|| {
        encrypt(&mut to_server, plan, &keys, &r, &mut prg)?;
        Ok(to_server.flush()?)
    })?;
    let (_, evaluating) = timed(|| {
        evaluate(&mut to_client, plan, &key, &weights, &mut prg)?;
        Ok(to_client.flush()?)
    })?;
    let (_, decrypting) = timed(|| decrypt(&mut to_server, plan, &keys))?;
    Ok([transforming, encrypting, evaluating, decrypting])
}

fn timed<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<(T, Duration), Error> {
    let start = Instant::now();
    Ok((work()?, start.elapsed()))
}
