//! The server's side of linear layers under BFV.

use std::error::Error;
use std::time::Instant;

use privet_channel::pair;
use privet_kernels::{Bench, Limit};
use privet_linear::{ClientKeys, Conv2d, Keep, Layer, MatMul, Plan, Resharing, TransformedWeights, Workspace};
use privet_linear::{decrypt, encrypt, evaluate, receive_public_key};
use privet_prg::Prg;

use crate::cipher::{PRODUCT, TRANSFORM};

pub fn conv(channels: usize, size: usize, outputs: usize, kernel: usize, groups: usize) -> Layer {
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
        groups,
    })
}

/// Layers that this page and `untransformed` compare.
pub fn shapes() -> [(&'static str, Layer); 5] {
    [
        ("conv-56x56x64-64-3x3", conv(64, 56, 64, 3, 1)),
        ("conv-56x56x64-256-1x1", conv(64, 56, 256, 1, 1)),
        ("conv-7x7x512-512-3x3", conv(512, 7, 512, 3, 1)),
        ("conv-56x56x128-depthwise", conv(128, 56, 128, 3, 128)),
        ("matmul-1x1024x1024", Layer::MatMul(MatMul { rows: 1, inner: 1024, columns: 1024 })),
    ]
}

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    for (name, layer) in shapes() {
        let plan = Plan::new(&layer, 37, 16, Resharing::Approximate)?;
        let mut prg = Prg::from_os()?;
        let mut r = vec![0; plan.input_len()];
        prg.fill_words(&mut r);
        let weights: Vec<i64> = (0..plan.weights_len()).map(|_| (prg.word() >> 48) as i64 - (1 << 15)).collect();
        let (mut near, mut far) = pair();
        let keys = ClientKeys::generate(plan.parameters(), &mut prg);
        keys.send_public_key(&mut near, &mut prg)?;
        near.flush()?;
        let key = receive_public_key(&mut far, plan.parameters())?;
        // As servers keep layers of up to 64 MiB, but for those that need no transform. Weights of larger ones they transform anew at each
        // evaluation, which is not in these figures.
        let workspace = Workspace { keep: Keep::Transformed, ..Workspace::standard(&plan) };
        let weights = TransformedWeights::new(&plan, &weights, workspace)?;
        let (inputs, outputs) = (plan.input_ciphertexts() as f64, plan.output_ciphertexts() as f64);
        let limit = Limit {
            vectors: plan.products() as f64 * PRODUCT + (3.0 * outputs + 4.5 * plan.folds() as f64) * TRANSFORM,
            bytes: 131_072.0 * inputs + plan.kept_bytes(Keep::Transformed) as f64,
            why: "the plan's products, three transforms a reply and 4.5 a fold; ciphertexts written and read, weights read",
            ..Limit::default()
        };
        bench.run_timed(&format!("server-{name}"), limit, || {
            encrypt(&mut near, &plan, &keys, &r, &mut prg).and_then(|()| Ok(near.flush()?)).expect("ciphertexts");
            let start = Instant::now();
            evaluate(&mut far, &plan, &key, &weights, &mut prg).and_then(|_| Ok(far.flush()?)).expect("replies");
            let time = start.elapsed();
            decrypt(&mut near, &plan, &keys).expect("shares");
            time
        });
    }
    Ok(())
}
